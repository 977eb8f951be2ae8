#include "kernels/flip.h"

#include "kernels/elementwise.h"

namespace pellucid::cpu {

// A copy that begins at the last element of each such dimension and steps backwards.
template <class T>
void flip(Strided<T> y, Strided<const T> x, int64_t mask) {
  if (y.numel == 0) return;
  for (int d = 0; d < x.dim; ++d) {
    if (!(mask >> d & 1)) continue;
    x.data += (x.sizes[d] - 1) * x.strides[d];
    x.strides[d] = -x.strides[d];
    x.contiguous = false;
  }
  copy<T>(y, x);
}
INSTANTIATE_ANY(flip);

}  // namespace pellucid::cpu
