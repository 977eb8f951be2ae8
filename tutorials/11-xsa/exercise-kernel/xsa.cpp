// Your turn: the row kernels of Exclusive Self Attention, on bare pointers. You write the two
// functions that kernels/xsa.h declares, and the library's xsa() runs on them.
//
//   ./pellucid grade 11-xsa-kernel            points for each check, and the first case that fails
//   ./pellucid grade 11-xsa-kernel --watch    the same again each time you save this file
//   ./pellucid grade 11-xsa-kernel --hint     a hint for the first check that fails
//
// All arrays are row-major: element (n, h, d) of y is y[(n * H + h) * D + d]. Begin with Hkv = H,
// no gate (a null pointer) and floor = eps = 0: that is most of the points. Add the dot products up
// in double, whatever T is. Write only what you are asked for: what is null stays unwritten.
// Helpers of your own go into an unnamed namespace:  namespace { ... }
#include "kernels/xsa.h"

#include <stdexcept>

namespace pellucid::cpu {

// z = y - g c v for each row: c = (y.v) / d, d = max(v.v, floor) + eps, and c = 0 where d = 0.
// z, y (N, H, D), v (N, Hkv, D): heads [h G, (h + 1) G) of y share head h of v, G = H / Hkv.
// g is gate[h], or 1 where gate is null.
template <class T>
void xsa_forward(T* z, const T* y, const T* v, const T* gate, int64_t N, int64_t H, int64_t Hkv,
                 int64_t D, double floor, double eps) {
  throw std::logic_error("xsa_forward is not written yet");
}
INSTANTIATE(xsa_forward);

// The gradients by y, v and gate for the gradient dz (N, H, D) of z. dy (N, H, D), dv (N, Hkv, D)
// and dgate (H) are overwritten, not added to; each may be null.
template <class T>
void xsa_backward(T* dy, T* dv, T* dgate, const T* dz, const T* y, const T* v, const T* gate,
                  int64_t N, int64_t H, int64_t Hkv, int64_t D, double floor, double eps) {
  throw std::logic_error("xsa_backward is not written yet");
}
INSTANTIATE(xsa_backward);

}  // namespace pellucid::cpu
