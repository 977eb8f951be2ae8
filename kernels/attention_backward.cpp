// A first pass over the rows undoes XSA, z = y - g c v, and leaves dy. Because y is linear in the
// attention's weights, the sum that the softmax's backward needs is dy.y = dz.z, whatever the gate:
// y itself is never stored (tests/kernels/attention_test.cpp checks each formula).
//
//   u = dz.v / d,  dy = dz - g u v,  delta = dz.z,  dv0 = -g (c dy + u z - 2 (kappa - g) c u v)
//
// Then, block by block, with p recomputed from lse:
//
//   p = exp(scale q k^T - lse),  ds = p (dy v^T - delta)
//   dv = dv0 + p^T dy,  dk = scale ds^T q,  dq = scale ds k
//
// A sink lowers every weight of its row: the derivative of p_j by it is -p_j p_sink, with p_sink =
// exp(sink - lse). So its gradient is, over the rows that see a key, where sum_j p_j dy.v_j = dy.y,
//
//   dsink = -sum p_sink delta
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_tile.h"
#include "kernels/math.h"
#include "kernels/thread_pool.h"
#include "kernels/xsa_row.h"

namespace pellucid::cpu {
namespace {

using namespace attention;

// What forward saved of one query head, and the gradient that arrives.
template <class T>
struct QueryHead {
  HeadRows<const T> q, z, dz;
  const T *lse, *c;  // (Tq); c may be null
  double g, sink;    // sink -inf: none
};

// What a head's rows give to the gradients of its gate and its sink.
struct HeadSums {
  double gate = 0, sink = 0;
};

// The keys [key0, key1) of one key head, and all queries of one of its query heads at a time.
template <class T>
struct Backward {
  Mask mask;
  int64_t D, Ds, key0, key1;
  HeadRows<const T> v;
  bool keys_finite = true, finite = true, has_sink = false;
  T *k_transposed, *v_transposed, *k_rows, *dk, *dv;  // panels twice, (keys, Ds) three times
  T *q_rows, *dy, *dq, *delta;                        // (Tq, Ds) three times, (Tq)
  T *p, *ds;                                          // (kQueries, kKeys)

  Backward(Arena<T>& arena, const Mask& m, int64_t D_, int64_t key0_, int64_t key1_)
      : mask(m), D(D_), Ds(padded<T>(D_)), key0(key0_), key1(key1_) {
    const int64_t keys = key1 - key0, panels = round_up(keys, kTileCols<T>) * D;
    for (T** x : {&k_transposed, &v_transposed}) *x = arena.take(panels);
    for (T** x : {&k_rows, &dk, &dv}) *x = arena.take(keys * Ds);
    for (T** x : {&q_rows, &dy, &dq}) *x = arena.take(mask.Tq * Ds);
    delta = arena.take(mask.Tq);
    for (T** x : {&p, &ds}) *x = arena.take(kQueries * kKeys);
  }

  void load_keys(HeadRows<const T> k, HeadRows<const T> values) {
    const int64_t keys = key1 - key0;
    v = values;
    keys_finite = copy_rows(k_rows, k.from(key0), keys, D, T(1));
    pack_transposed(k_transposed, {k_rows, Ds}, keys, D);
    pack_transposed(v_transposed, v.from(key0), keys, D);
    std::fill_n(dk, keys * Ds, T(0));
    std::fill_n(dv, keys * Ds, T(0));
  }

  // Copy the head's queries, times the scale, and undo XSA. Returns the part of the gate's gradient
  // that belongs to this task's keys, and all of the sink's: each row counts once, with key 0.
  HeadSums load_queries(const QueryHead<T>& head, T scale, const XsaDivisor& divisor) {
    const int64_t first = mask.first_query(key0), n = mask.Tq - first;
    const bool q_finite = copy_rows(q_rows + first * Ds, head.q.from(first), n, D, scale);
    const bool dz_finite = copy_rows(dy + first * Ds, head.dz.from(first), n, D, T(1));
    finite = keys_finite && q_finite && dz_finite;
    std::fill_n(dq, mask.Tq * Ds, T(0));
    has_sink = head.sink != -std::numeric_limits<double>::infinity();
    HeadSums sums;
    for (int64_t t = first; t < mask.Tq; ++t) {
      const double dot = row_dots(head.dz[t], head.z[t], D).product();
      delta[t] = T(dot);
      if (has_sink && key0 == 0 && mask.keys(t) > 0)
        sums.sink -= std::exp(head.sink - double(head.lse[t])) * dot;
      if (head.c && mask.position(t) >= 0) sums.gate += undo_xsa(head, t, divisor);
    }
    return sums;
  }

  double undo_xsa(const QueryHead<T>& head, int64_t t, const XsaDivisor& divisor) {
    const int64_t own = mask.position(t);
    const T *v_own = v[own], *z = head.z[t];
    T* dy_t = dy + t * Ds;
    const RowDots dots = row_dots(head.dz[t], v_own, D);
    const T g = T(head.g), u = T(divisor.quotient(dots)), c = head.c[t], gu = g * u;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) dy_t[d] -= gu * v_own[d];
    if (own < key0 || own >= key1) return 0;

    // Where v is tiny c u overflows, u v does not.
    const T rest = 2 * (T(divisor.kappa(dots)) - g) * c;
    T* to = dv + (own - key0) * Ds;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) to[d] -= g * (c * dy_t[d] + u * z[d] - rest * (u * v_own[d]));
    return -double(c) * dots.product();
  }

  // Add what the queries [q0, q1) and the keys [k0, k1) contribute to dq, dk and dv.
  void add_block(const T* lse, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
    const int64_t M = q1 - q0, N = k1 - k0, k = k0 - key0;
    const int64_t q_tile = tile_rows(M, finite), k_tile = tile_rows(N, finite);
    const auto seen = [&](int64_t i) { return std::clamp(mask.keys(q0 + i) - k0, int64_t{0}, N); };
    score_product(p, q_rows + q0 * Ds, k_transposed + k * D, M, D, q_tile, seen);
    score_product(ds, dy + q0 * Ds, v_transposed + k * D, M, D, q_tile, seen);
    for (int64_t i = 0; i < M; ++i) softmax_row(i, q0 + i, lse[q0 + i], seen(i), N);

    const auto queries = [&](int64_t j0, int64_t) {
      return std::pair{std::clamp(mask.first_query(k0 + j0) - q0, int64_t{0}, M), M};
    };
    add_product(dv + k * Ds, p, 1, kKeys, dy + q0 * Ds, N, D, k_tile, queries);
    add_product(dk + k * Ds, ds, 1, kKeys, q_rows + q0 * Ds, N, D, k_tile, queries);
    add_product(dq + q0 * Ds, ds, kKeys, 1, k_rows + k * Ds, M, D, q_tile,
                [&](int64_t, int64_t i1) {
                  return std::pair{int64_t{0}, seen(i1 - 1)};
                });
  }

  // Turn the n visible scores of row i into p and ds; the others of the block are 0.
  void softmax_row(int64_t i, int64_t t, T lse, int64_t n, int64_t end) {
    constexpr int W = kLanes<T>;
    T *p_row = p + i * kKeys, *ds_row = ds + i * kKeys;
    // A single visible key has weight 1 whatever its score, unless a sink shares it: ds is 0
    // exactly.
    const T del = n > 0 && mask.keys(t) == 1 && !has_sink ? ds_row[0] : delta[t];
    for (int64_t j = 0; j < n; j += W) {
      const Vector<T> x = math::exp_fast(load(p_row + j) - lse);
      store(p_row + j, keep_lanes<T>(x, n - j, T(0)));
      store(ds_row + j, keep_lanes<T>(x * (load(ds_row + j) - del), n - j, T(0)));
    }
    for (int64_t j = round_up(n, W); j < end; j += W) {
      store(p_row + j, Vector<T>{});
      store(ds_row + j, Vector<T>{});
    }
  }

  // All blocks of the task.
  void add_blocks(const T* lse) {
    const int64_t blocks = ceil_div(mask.Tq, kQueries);
    for (int64_t k0 = key0; k0 < key1; k0 += kKeys)
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t q0 = mask.Tq * block / blocks, q1 = mask.Tq * (block + 1) / blocks;
        if (mask.first_query(k0) < q1) add_block(lse, q0, q1, k0, std::min(k0 + kKeys, key1));
      }
  }
};

// Write n rows: to = s (from[0] + from[1] + ...), the parts `apart` elements from each other.
template <class T>
void write_rows(HeadRows<T> to, const T* from, int64_t n, int64_t D, T s, int64_t parts = 1,
                int64_t apart = 0) {
  const int64_t Ds = padded<T>(D);
  for (int64_t t = 0; t < n; ++t, from += Ds) {
    T* row = to[t];
    for (int64_t d = 0; d < D; ++d) row[d] = s * from[d];
    for (int64_t part = 1; part < parts; ++part)
      for (int64_t d = 0; d < D; ++d) row[d] += s * from[part * apart + d];
  }
}

}  // namespace

template <class T>
void attention_backward(Strided<T> dq, Strided<T> dk, Strided<T> dv, T* dgate, T* dsink,
                        const T* dz, const T* z, const Acc<T>* lse, const Acc<T>* c,
                        Strided<const T> q, Strided<const T> k, Strided<const T> v, const T* gate,
                        const T* sink, bool causal, double scale, double floor, double eps) {
  const int64_t B = q.sizes[0], Tq = q.sizes[1], H = q.sizes[2], D = q.sizes[3];
  const int64_t Tk = k.sizes[1], Hkv = k.sizes[2], group = H / std::max<int64_t>(Hkv, 1);
  const Mask mask{Tq, Tk, causal};
  const XsaDivisor divisor{floor, eps};

  // A task is one key head of one batch, or, where those are few, some blocks of its keys; then
  // each has sums of its own for dq, added in the order of the parts.
  const int64_t blocks = std::max<int64_t>(ceil_div(Tk, kKeys), 1);
  const int64_t parts = std::min(blocks, ceil_div(kTasks, std::max<int64_t>(B * Hkv, 1)));
  const int64_t apart = Tq * padded<T>(D);
  T* partial = parts > 1 ? scratch<T>(Slot::kAttentionCall, B * H * parts * apart) : nullptr;
  std::vector<HeadSums> sums(B * H * parts);

  parallel_for(B * Hkv * parts, 1, [&](int64_t task, int64_t) {
    const int64_t b = task / parts / Hkv, h_kv = task / parts % Hkv, part = task % parts;
    const int64_t key0 = std::min(Tk, blocks * part / parts * kKeys);
    const int64_t key1 = std::min(Tk, blocks * (part + 1) / parts * kKeys);

    Arena<T> arena;
    Backward<T> count(arena, mask, D, key0, key1);
    arena = {scratch<T>(Slot::kAttentionTask, arena.used)};
    Backward<T> f(arena, mask, D, key0, key1);
    f.load_keys(head_rows(k, b, h_kv), head_rows(v, b, h_kv));

    for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
      const int64_t rows = (b * Tq * H + h) * D, at = b * H + h;
      const T* lse_h = lse + at * Tq;
      if (partial) f.dq = partial + (at * parts + part) * apart;
      sums[at * parts + part] =
          f.load_queries({head_rows(q, b, h),
                          {z + rows, H * D},
                          {dz + rows, H * D},
                          lse_h,
                          c ? c + at * Tq : nullptr,
                          gate ? double(gate[h]) : 1,
                          sink ? double(sink[h]) : -std::numeric_limits<double>::infinity()},
                         T(scale), divisor);
      f.add_blocks(lse_h);
      if (!partial) write_rows(head_rows(dq, b, h), f.dq, Tq, D, T(scale));
    }
    write_rows(head_rows(dk, b, h_kv).from(key0), f.dk, key1 - key0, D, T(1));
    write_rows(head_rows(dv, b, h_kv).from(key0), f.dv, key1 - key0, D, T(1));
  });

  if (partial)
    parallel_for(B * H, 1, [&](int64_t at, int64_t) {
      write_rows(head_rows(dq, at / H, at % H), partial + at * parts * apart, Tq, D, T(scale),
                 parts, apart);
    });
  for (int64_t h = 0; h < H; ++h) {
    HeadSums sum;
    for (int64_t b = 0; b < B; ++b)
      for (int64_t part = 0; part < parts; ++part) {
        sum.gate += sums[(b * H + h) * parts + part].gate;
        sum.sink += sums[(b * H + h) * parts + part].sink;
      }
    if (dgate) dgate[h] = T(sum.gate);
    if (dsink) dsink[h] = T(sum.sink);
  }
}
INSTANTIATE(attention_backward);

}  // namespace pellucid::cpu
