#include "kernels/cumsum.h"

#include "kernels/rows.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

template <class T>
void cumsum(T* y, const T* x, int64_t N, int64_t C) {
  parallel_for(N, row_grain(C), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      double total = 0;
      for (int64_t c = 0; c < C; ++c) {
        total += double(x[n * C + c]);
        y[n * C + c] = T(total);
      }
    }
  });
}
INSTANTIATE(cumsum);

}  // namespace pellucid::cpu
