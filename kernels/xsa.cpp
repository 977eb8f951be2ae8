#include "kernels/xsa.h"

#include <vector>

#include "kernels/thread_pool.h"
#include "kernels/xsa_row.h"

namespace pellucid::cpu {
namespace {
// Elements of a block of tokens: 10 us of work, and the partial sums of dgate stay few.
constexpr int64_t kBlock = 1 << 15;
int64_t block_tokens(int64_t H, int64_t D) { return std::max<int64_t>(1, kBlock / (H * D + 1)); }
}  // namespace

template <class T>
void xsa_forward(T* z, const T* y, const T* v, const T* gate, int64_t N, int64_t H, int64_t Hkv,
                 int64_t D, double floor, double eps) {
  const XsaDivisor divisor{floor, eps};
  parallel_for(N, block_tokens(H, D), [&](int64_t n0, int64_t n1) {
    for (int64_t row = n0 * H; row < n1 * H; ++row) {
      // Row n H + h of y goes with row n Hkv + h / G of v, which is (n H + h) / G.
      const T *y_row = y + row * D, *v_row = v + row / (H / Hkv) * D;
      const double g = gate ? double(gate[row % H]) : 1;
      const double gc = g * divisor.quotient(row_dots(y_row, v_row, D));
      T* z_row = z + row * D;
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) z_row[d] = T(double(y_row[d]) - gc * double(v_row[d]));
    }
  });
}
INSTANTIATE(xsa_forward);

template <class T>
void xsa_backward(T* dy, T* dv, T* dgate, const T* dz, const T* y, const T* v, const T* gate,
                  int64_t N, int64_t H, int64_t Hkv, int64_t D, double floor, double eps) {
  const XsaDivisor divisor{floor, eps};
  const int64_t grain = block_tokens(H, D), blocks = (N + grain - 1) / grain;
  std::vector<double> partial(dgate ? blocks * H : 0);
  parallel_for(N, grain, [&](int64_t n0, int64_t n1) {
    double* dg = dgate ? partial.data() + n0 / grain * H : nullptr;
    for (int64_t row = n0 * H; row < n1 * H; ++row) {
      const int64_t G = H / Hkv, v_at = row / G * D;
      const T *dz_row = dz + row * D, *y_row = y + row * D, *v_row = v + v_at;
      const double g = gate ? double(gate[row % H]) : 1;
      const RowDots dots = row_dots(dz_row, v_row, D);
      const double c = divisor.quotient(row_dots(y_row, v_row, D)), u = divisor.quotient(dots);
      if (dg) dg[row % H] -= c * dots.product();

      // With y at hand instead of z: dv = -g (c dz + u y - 2 kappa c u v). Where v is tiny c u
      // overflows, u v does not.
      const double kc = 2 * divisor.kappa(dots) * c;
      if (dy) {
        T* to = dy + row * D;
#pragma omp simd
        for (int64_t d = 0; d < D; ++d) to[d] = T(double(dz_row[d]) - g * u * double(v_row[d]));
      }
      if (dv) {
        // The first head of a group writes, the others add: one block has them all, so no two
        // threads meet and the order is fixed.
        T* to = dv + v_at;
        if (row % G == 0) std::fill(to, to + D, T(0));
#pragma omp simd
        for (int64_t d = 0; d < D; ++d)
          to[d] -=
              T(g * (c * double(dz_row[d]) + u * double(y_row[d]) - kc * (u * double(v_row[d]))));
      }
    }
  });

  // Add the blocks in their order.
  for (int64_t h = 0; dgate && h < H; ++h) {
    double sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += partial[b * H + h];
    dgate[h] = T(sum);
  }
}
INSTANTIATE(xsa_backward);

}  // namespace pellucid::cpu
