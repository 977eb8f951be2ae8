// For each block of queries, over the blocks of keys from the first to the diagonal:
//
//   s = scale q k^T,  m' = max(m, max_j s),  p = exp(s - m')
//   l = l exp(m - m') + sum_j p,  o = o exp(m - m') + p v
//
// and in the end z = o / l, lse = m + log l: the softmax of all keys, from one block at a time. A
// sink is a key that was met before all others: m = sink, l = 1, o = 0. Without one m = -inf, l =
// 0.
#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/attention_tile.h"
#include "kernels/math.h"
#include "kernels/thread_pool.h"
#include "kernels/xsa_row.h"

namespace pellucid::cpu {
namespace {

using namespace attention;

// One key head's copies, and one block of queries of one of its query heads.
template <class T>
struct Forward {
  Mask mask;
  int64_t D;
  bool finite = true;
  T *k_transposed, *v_rows;  // panels, (Tk, Ds)
  T *q_rows, *o, *scores, *top,
      *total;  // (kQueries, Ds) twice, (kQueries, kKeys), (kQueries) twice

  Forward(Arena<T>& arena, const Mask& m, int64_t D_, int64_t keys) : mask(m), D(D_) {
    k_transposed = arena.take(round_up(keys, kTileCols<T>) * D);
    v_rows = arena.take(keys * padded<T>(D));
    q_rows = arena.take(kQueries * padded<T>(D));
    o = arena.take(kQueries * padded<T>(D));
    scores = arena.take(kQueries * kKeys);
    top = arena.take(kQueries);
    total = arena.take(kQueries);
  }

  void load_keys(HeadRows<const T> k, HeadRows<const T> v, int64_t keys) {
    pack_transposed(k_transposed, k, keys, D);
    finite = copy_rows(v_rows, v, keys, D, T(1));
  }

  // Queries [q0, q1): leaves o, the sums l in total, the maxima m in top.
  void attend(HeadRows<const T> q, int64_t q0, int64_t q1, T scale, T sink) {
    const int64_t M = q1 - q0, Ds = padded<T>(D), keys = mask.keys(q1 - 1);
    const int64_t rows = tile_rows(M, finite);
    copy_rows(q_rows, q.from(q0), M, D, scale);
    std::fill_n(o, M * Ds, T(0));
    const T inf = std::numeric_limits<T>::infinity();
    std::fill_n(top, M, sink);
    std::fill_n(total, M, sink == -inf ? T(0) : math::exp(sink - sink));  // 1, or NaN

    for (int64_t k0 = 0; k0 < keys; k0 += kKeys) {
      const auto seen = [&](int64_t i) {
        return std::clamp(mask.keys(q0 + i) - k0, int64_t{0}, kKeys);
      };
      score_product(scores, q_rows, k_transposed + k0 * D, M, D, rows, seen);
      for (int64_t i = 0; i < M; ++i)
        softmax_row(i, seen(i), seen(std::min(i / rows * rows + rows, M) - 1));
      add_product(o, scores, kKeys, 1, v_rows + k0 * Ds, M, D, rows, [&](int64_t, int64_t i1) {
        return std::pair{int64_t{0}, seen(i1 - 1)};
      });
    }
  }

  // Turn n scores of row i into exp(s - m), followed by zeros up to `end`.
  void softmax_row(int64_t i, int64_t n, int64_t end) {
    constexpr int W = kLanes<T>;
    const T inf = std::numeric_limits<T>::infinity();
    T* s = scores + i * kKeys;
    if (n > 0) {
      Vector<T> most = Vector<T>{} + top[i];
      for (int64_t j = 0; j < n; j += W) {
        const Vector<T> x = keep_lanes<T>(load(s + j), n - j, -inf);
        most = most > x ? most : x;
      }
      const T m = max_lanes<T>(most);
      if (m != top[i] && total[i] != 0) rescale(i, top[i] - m);
      top[i] = m;

      Vector<T> sum{};
      for (int64_t j = 0; j < n; j += W) {
        const Vector<T> p = math::exp_fast(keep_lanes<T>(load(s + j), n - j, -inf) - m);
        store(s + j, p);
        sum += p;
      }
      total[i] += sum_lanes<T>(sum);
    }
    for (int64_t j = round_up(n, W); j < end; j += W) store(s + j, Vector<T>{});
  }

  void rescale(int64_t i, T difference) {
    const Vector<T> factor = math::exp_fast(Vector<T>{} + difference);
    const int64_t Ds = padded<T>(D);
    total[i] *= factor[0];
    for (T* x = o + i * Ds; x < o + (i + 1) * Ds; x += kLanes<T>) store(x, load(x) * factor);
  }

  // Write row i of z, its log-sum-exp, and XSA's quotient if c is there.
  void finish(int64_t i, int64_t q0, T* z, T* lse, T* c, double g, const XsaDivisor& divisor) {
    const T* y = o + i * padded<T>(D);
    if (lse) *lse = top[i] + math::log(total[i]);
    const T inverse = mask.keys(q0 + i) == 0 ? T(1) : T(1) / total[i];  // no keys: o is 0
    const int64_t p = mask.position(q0 + i);
    if (c) *c = 0;
    if (!c || p < 0) {
      for (int64_t d = 0; d < D; ++d) z[d] = y[d] * inverse;
      return;
    }
    // The value is still in the cache. For the first token, y = v, this is exactly 1 and z is 0.
    const T* v = v_rows + p * padded<T>(D);
    RowDots dots = row_dots(y, v, D);
    dots.xv *= double(inverse);
    *c = T(divisor.quotient(dots));
    const T gc = T(g) * *c;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) z[d] = y[d] * inverse - gc * v[d];
  }
};

}  // namespace

template <class T>
void attention_forward(T* z, Acc<T>* lse, Acc<T>* c, Strided<const T> q, Strided<const T> k,
                       Strided<const T> v, const T* gate, const T* sink, bool causal, double scale,
                       double floor, double eps) {
  const int64_t B = q.sizes[0], Tq = q.sizes[1], H = q.sizes[2], D = q.sizes[3];
  const int64_t Tk = k.sizes[1], Hkv = k.sizes[2], group = H / std::max<int64_t>(Hkv, 1);
  const Mask mask{Tq, Tk, causal};
  const XsaDivisor divisor{floor, eps};

  // A task is one key head of one batch, or, where those are few, some blocks of its queries.
  const int64_t blocks = ceil_div(Tq, kQueries);
  const int64_t parts = std::min(blocks, ceil_div(kTasks, std::max<int64_t>(B * Hkv, 1)));
  parallel_for(B * Hkv * parts, 1, [&](int64_t task, int64_t) {
    const int64_t b = task / parts / Hkv, h_kv = task / parts % Hkv, part = task % parts;
    const int64_t block0 = blocks * part / parts, block1 = blocks * (part + 1) / parts;
    const auto first = [&](int64_t block) { return Tq * block / blocks; };
    const int64_t keys = mask.keys(first(block1) - 1);

    Arena<T> arena;
    Forward<T> count(arena, mask, D, keys);
    arena = {scratch<T>(Slot::kAttentionTask, arena.used)};
    Forward<T> f(arena, mask, D, keys);
    f.load_keys(head_rows(k, b, h_kv), head_rows(v, b, h_kv), keys);

    for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
      const T sink_h = sink ? sink[h] : -std::numeric_limits<T>::infinity();
      for (int64_t block = block0; block < block1; ++block) {
        const int64_t q0 = first(block), q1 = first(block + 1);
        f.attend(head_rows(q, b, h), q0, q1, T(scale), sink_h);
        for (int64_t t = q0; t < q1; ++t) {
          const int64_t at = (b * H + h) * Tq + t;
          f.finish(t - q0, q0, z + ((b * Tq + t) * H + h) * D, lse ? lse + at : nullptr,
                   c ? c + at : nullptr, gate ? double(gate[h]) : 1, divisor);
        }
      }
    }
  });
}
INSTANTIATE(attention_forward);

}  // namespace pellucid::cpu
