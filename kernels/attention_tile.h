// What attention's forward and backward are made of: the packed copies that the register tile
// reads, products of them, and the sizes of blocks.
//
// All working copies have rows of whole vectors, the last filled up with 0: no product has an edge.
//
//   rows        (T, padded(D))              q, dy as left operands, v, k, q, dy as right ones
//   transposed  (T / P, D, P)               k^T and v^T, in panels of P = kTileCols keys
//   scores      (queries, kKeys)            a block of p or ds
#pragma once
#include <algorithm>
#include <utility>

#include "kernels/kernel.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

namespace pellucid::attention {

// Queries and keys of a block: its scores are 32 KiB of floats.
constexpr int64_t kQueries = 64, kKeys = 128;
// Tasks to aim at, whatever the number of threads.
constexpr int64_t kTasks = 8;

// Length of a row in a working copy: an odd number of vectors, or the rows would share a few sets
// of the L1 cache.
template <class T>
int64_t padded(int64_t D) {
  return (ceil_div(D, kLanes<T>) | 1) * kLanes<T>;
}

// Cuts scratch into arrays that begin at a cache line.
template <class T>
struct Arena {
  T* at = nullptr;  // null: only counts
  int64_t used = 0;

  T* take(int64_t count) {
    T* p = at ? at + used : nullptr;
    used += round_up(count, 64);
    return p;
  }
};

// Which keys a query sees.
struct Mask {
  int64_t Tq, Tk;
  bool causal;

  int64_t position(int64_t i) const { return Tk - Tq + i; }
  // Query i sees the keys [0, keys(i)).
  int64_t keys(int64_t i) const {
    return causal ? std::clamp(position(i) + 1, int64_t{0}, Tk) : Tk;
  }
  // Key j is seen by the queries [first_query(j), Tq).
  int64_t first_query(int64_t j) const {
    return causal ? std::clamp(j - (Tk - Tq), int64_t{0}, Tq) : 0;
  }
};

// A (T, D) matrix of one head, read where it lies.
template <class T>
struct HeadRows {
  T* data;
  int64_t stride;

  T* operator[](int64_t t) const { return data + t * stride; }
  HeadRows from(int64_t t) const { return {data + t * stride, stride}; }
};
template <class T>
HeadRows<T> head_rows(const Strided<T>& x, int64_t b, int64_t h) {
  return {x.data + b * x.strides[0] + h * x.strides[2], x.strides[1]};
}

// Copy n rows, times s. False if an element is infinite or NaN: x - x is 0 for all others.
template <class T>
bool copy_rows(T* to, HeadRows<const T> from, int64_t n, int64_t D, T s) {
  const int64_t Ds = padded<T>(D), whole = D / kLanes<T> * kLanes<T>;
  Vector<T> check{};
  for (int64_t t = 0; t < n; ++t, to += Ds) {
    const T* x = from[t];
    for (int64_t d = 0; d < whole; d += kLanes<T>) {
      const Vector<T> a = load(x + d);
      check += a - a;
      store(to + d, a * s);
    }
    if (whole == D) continue;
    for (int64_t d = whole; d < D; ++d) {
      check[0] += x[d] - x[d];
      to[d] = x[d] * s;
    }
    std::fill(to + D, to + whole + kLanes<T>, T(0));
  }
  return sum_lanes<T>(check) == 0;
}

// Pack n rows transposed: panel j / P holds to[d * P + j % P] = row j, element d.
template <class T>
void pack_transposed(T* to, HeadRows<const T> from, int64_t n, int64_t D) {
  constexpr int P = kTileCols<T>;
  for (int64_t j = 0; j < n; j += P)
    pack_panel<T, P>(to + j * D, from[j], from.stride, 1, n - j, D);
}

// Rows of the tiles that M rows are cut into, evenly. One where a number is not finite: a tile
// takes all terms that any of its rows needs, and 0 * NaN is NaN.
inline int64_t tile_rows(int64_t M, bool finite) {
  return finite ? ceil_div(M, ceil_div(M, kTileRows)) : 1;
}

// Columns of the tile for n more of them: whole vectors, as the working copies have.
template <class T>
int64_t tile_width(int64_t n) {
  return n > kLanes<T> ? kTileCols<T> : kLanes<T>;
}

// c (M, D) += a (M, K) b (K, D); terms(i0, i1) are the [k0, k1) that rows [i0, i1) need.
template <class T, class Terms>
void add_product(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t M, int64_t D,
                 int64_t rows, const Terms& terms) {
  const int64_t Ds = padded<T>(D);
  for (int64_t d = 0; d < D; d += kTileCols<T>) {
    const int64_t width = tile_width<T>(D - d);
    const auto* tile = tiles<T>(width);
    for (int64_t i = 0; i < M; i += rows) {
      const int64_t n = std::min(rows, M - i);
      const auto [k0, k1] = terms(i, i + n);
      if (k0 < k1)
        tile[n - 1](c + i * Ds + d, Ds, a + i * a_row + k0 * a_col, a_row, a_col, b + k0 * Ds + d,
                    Ds, k1 - k0, width, true);
    }
  }
}

// scores (M, keys) = a (M, D) b^T, b transposed in panels; rows [i0, i1) need keys(i1 - 1) of them.
template <class T, class Keys>
void score_product(T* scores, const T* a, const T* b, int64_t M, int64_t D, int64_t rows,
                   const Keys& keys) {
  const int64_t Ds = padded<T>(D);
  for (int64_t j = 0; j < keys(M - 1); j += kTileCols<T>, b += D * kTileCols<T>)
    for (int64_t i = 0; i < M; i += rows) {
      const int64_t n = std::min(rows, M - i), wanted = keys(i + n - 1) - j;
      if (wanted <= 0) continue;
      const int64_t width = tile_width<T>(wanted);
      tiles<T>(width)[n - 1](scores + i * kKeys + j, kKeys, a + i * Ds, Ds, 1, b, kTileCols<T>, D,
                             width, false);
    }
}

template <class T, int H = kLanes<T> / 2>
inline T max_lanes(Vector<T> v) {
  if constexpr (H == 0) {
    return v[0];
  } else {
    const Vector<T> w = swap_halves<T, H>(v, std::make_index_sequence<kLanes<T>>());
    return max_lanes<T, H / 2>(v > w ? v : w);
  }
}

// x with 0, or another number, in the lanes from n on.
template <class T, std::size_t... L>
inline Vector<T> keep_lanes(Vector<T> x, int64_t n, T otherwise, std::index_sequence<L...>) {
  const Vector<T> lane{T(L)...};
  return lane < Vector<T>{} + T(n) ? x : Vector<T>{} + otherwise;
}
template <class T>
inline Vector<T> keep_lanes(Vector<T> x, int64_t n, T otherwise) {
  return n >= kLanes<T> ? x : keep_lanes<T>(x, n, otherwise, std::make_index_sequence<kLanes<T>>());
}

}  // namespace pellucid::attention
