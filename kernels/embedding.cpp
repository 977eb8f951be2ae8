#include "kernels/embedding.h"

#include <algorithm>
#include <vector>

#include "kernels/thread_pool.h"

namespace pellucid::cpu {

template <class T>
void embedding(T* y, const T* w, const int64_t* ids, int64_t N, int64_t C) {
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, C));
  parallel_for(N, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) std::copy_n(w + ids[n] * C, C, y + n * C);
  });
}
INSTANTIATE_ANY(embedding);

// Sort the rows by id (counting sort: stable), then sum each id's rows in registers, kColumns at a
// time. A block of columns belongs to one thread and each sum runs in order: the same bytes for any
// number of threads. The sums are double: a frequent id may have a million rows.
template <class T>
void scatter_add_rows(T* y, const T* x, const int64_t* ids, int64_t N, int64_t C, int64_t V) {
  std::vector<int64_t> first(static_cast<std::size_t>(V + 1), 0);  // of an id, in order
  for (int64_t n = 0; n < N; ++n) ++first[ids[n] + 1];
  for (int64_t v = 0; v < V; ++v) first[v + 1] += first[v];
  std::vector<int64_t> order(static_cast<std::size_t>(N)), next(first.begin(), first.end() - 1);
  for (int64_t n = 0; n < N; ++n) order[next[ids[n]]++] = n;

  constexpr int64_t kColumns = 64;
  parallel_for(C, kColumns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kColumns) {
      const int64_t width = std::min(kColumns, end - at);
      for (int64_t v = 0; v < V; ++v) {
        double total[kColumns] = {};
        for (int64_t k = first[v]; k < first[v + 1]; ++k) {
          const T* row = x + order[k] * C + at;
          for (int64_t c = 0; c < width; ++c) total[c] += static_cast<double>(row[c]);
        }
        for (int64_t c = 0; c < width; ++c) y[v * C + at + c] = static_cast<T>(total[c]);
      }
    }
  });
}
INSTANTIATE(scatter_add_rows);

}  // namespace pellucid::cpu
