#include "kernels/gather.h"

#include <vector>

#include "kernels/rows.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

// A line of a view: element k is data[k * step].
template <class T>
struct Line {
  T* data;
  int64_t step;
  Line(const Strided<T>& x, int64_t line) : data(x.data), step(x.strides[x.dim - 1]) {
    for (int d = x.dim - 2; d >= 0; --d) {
      data += line % x.sizes[d] * x.strides[d];
      line /= x.sizes[d];
    }
  }
  T& operator[](int64_t k) const { return data[k * step]; }
};

template <class T>
void gather(Strided<T> y, Strided<const T> x, Strided<const int64_t> index) {
  if (y.numel == 0) return;
  const int64_t K = y.sizes[y.dim - 1];
  parallel_for(y.numel / K, row_grain(K), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const Line<T> to(y, l);
      const Line<const T> from(x, l);
      const Line<const int64_t> at(index, l);
      for (int64_t k = 0; k < K; ++k) to[k] = from[at[k]];
    }
  });
}
INSTANTIATE_ANY(gather);

template <class T>
void scatter_add(Strided<T> y, Strided<const int64_t> index, Strided<const T> src) {
  if (src.numel == 0) return;
  const int64_t K = src.sizes[src.dim - 1], V = y.sizes[y.dim - 1];
  parallel_for(src.numel / K, row_grain(K + V), [&](int64_t begin, int64_t end) {
    std::vector<double> total(static_cast<std::size_t>(K == 1 ? 0 : V));
    for (int64_t l = begin; l < end; ++l) {
      const Line<T> to(y, l);
      const Line<const T> from(src, l);
      const Line<const int64_t> at(index, l);
      if (K == 1) {  // nothing adds up
        to[at[0]] += from[0];
        continue;
      }
      for (int64_t v = 0; v < V; ++v) total[v] = static_cast<double>(to[v]);
      for (int64_t k = 0; k < K; ++k) total[at[k]] += static_cast<double>(from[k]);
      for (int64_t v = 0; v < V; ++v) to[v] = static_cast<T>(total[v]);
    }
  });
}
INSTANTIATE(scatter_add);

}  // namespace pellucid::cpu
