// What attention's forward and backward are made of: a register tile that multiplies, the packed
// copies it reads, and the sizes of blocks.
//
// All working copies have rows of whole vectors, the last filled up with 0: no product has an edge.
//
//   rows        (T, padded(D))              q, dy as left operands, v, k, q, dy as right ones
//   transposed  (T / kCols, D, kCols)       k^T and v^T, in panels of kCols keys
//   scores      (queries, kKeys)            a block of p or ds
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "kernels/kernel.h"
#include "kernels/simd.h"

namespace pellucid::attention {

// As in gemm.cpp: kRows x 2 vectors of sums, two of b and one element of a fill the registers.
constexpr int kRows = kVectorBytes == 64 ? 14 : 6;
template <class T>
constexpr int kCols = 2 * kLanes<T>;

// Queries and keys of a block: its scores are 32 KiB of floats.
constexpr int64_t kQueries = 64, kKeys = 128;
// Tasks to aim at, whatever the number of threads.
constexpr int64_t kTasks = 8;

inline int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }
inline int64_t round_up(int64_t n, int64_t d) { return ceil_div(n, d) * d; }

// Length of a row in a working copy: an odd number of vectors, or the rows would share a few sets
// of the L1 cache.
template <class T>
int64_t padded(int64_t D) {
  return (ceil_div(D, kLanes<T>) | 1) * kLanes<T>;
}

// Working memory of this thread, kept between calls; each slot serves one use at a time.
enum Slot { kTask, kCall, kSlots };
template <class T>
T* scratch(Slot slot, int64_t count) {
  constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(void* p) const { ::operator delete(p, kPage); }
  };
  thread_local std::unique_ptr<void, Free> memory[kSlots];
  thread_local std::size_t size[kSlots];
  const std::size_t bytes = std::size_t(count) * sizeof(T);
  if (bytes > size[slot]) {
    memory[slot].reset();
    size[slot] = 0;
    memory[slot].reset(::operator new(bytes, kPage));
    size[slot] = bytes;
  }
  return static_cast<T*>(memory[slot].get());
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

// Pack n rows transposed: panel j / kCols holds to[d * kCols + j % kCols] = row j, element d.
template <class T>
void pack_transposed(T* to, HeadRows<const T> from, int64_t n, int64_t D) {
  constexpr int W = kLanes<T>, P = kCols<T>;
  for (int64_t j0 = 0; j0 < round_up(n, P); j0 += W) {
    T* panel = to + j0 / P * P * D + j0 % P;
    const int64_t lanes = std::clamp(n - j0, int64_t{0}, int64_t{W});
    // Transpose squares, the last of which may overlap the one before.
    for (int64_t d0 = 0; D >= W && d0 < D; d0 += W) {
      const int64_t d = std::min(d0, D - W);
      Vector<T> square[W];
#pragma GCC unroll 16
      for (int l = 0; l < W; ++l) square[l] = l < lanes ? load(from[j0 + l] + d) : Vector<T>{};
      transpose<T>(square);
#pragma GCC unroll 16
      for (int l = 0; l < W; ++l) store(panel + (d + l) * P, square[l]);
    }
    for (int64_t d = 0; D < W && d < D; ++d)
      for (int l = 0; l < W; ++l) panel[d * P + l] = l < lanes ? from[j0 + l][d] : T(0);
  }
}

// Multiply one tile: c (R, Q vectors) = a (R, K) b (K, Q vectors), or c += it.
template <class T, int R, int Q>
void multiply_tile(T* c, int64_t c_row, const T* a, int64_t a_row, int64_t a_col, const T* b,
                   int64_t b_row, int64_t K, bool add) {
  constexpr int W = kLanes<T>;
  Vector<T> sum[R][Q] = {};
  for (int64_t k = 0; k < K; ++k) {
    Vector<T> y[Q];
    for (int q = 0; q < Q; ++q) y[q] = load(b + q * W);
    const T* x = a;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      for (int q = 0; q < Q; ++q) sum[i][q] += y[q] * *x;
      x += a_row;
    }
    a += a_col;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
    for (int q = 0; q < Q; ++q) {
      T* to = c + i * c_row + q * W;
      store(to, add ? load(to) + sum[i][q] : sum[i][q]);
    }
}

// kTile<T, Q>[R - 1] is the tile of R rows.
template <class T, int Q, std::size_t... I>
constexpr auto tiles(std::index_sequence<I...>) {
  return std::array{&multiply_tile<T, int(I) + 1, Q>...};
}
template <class T, int Q>
constexpr auto kTile = tiles<T, Q>(std::make_index_sequence<kRows>());

// Rows of the tiles that M rows are cut into, evenly. One where a number is not finite: a tile
// takes all terms that any of its rows needs, and 0 * NaN is NaN.
inline int64_t tile_rows(int64_t M, bool finite) {
  return finite ? ceil_div(M, ceil_div(M, kRows)) : 1;
}

// c (M, D) += a (M, K) b (K, D); terms(i0, i1) are the [k0, k1) that rows [i0, i1) need.
template <class T, class Terms>
void add_product(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t M, int64_t D,
                 int64_t rows, const Terms& terms) {
  const int64_t Ds = padded<T>(D);
  for (int64_t d = 0; d < D; d += kCols<T>) {
    const auto* tile = D - d > kLanes<T> ? kTile<T, 2>.data() : kTile<T, 1>.data();
    for (int64_t i = 0; i < M; i += rows) {
      const int64_t n = std::min(rows, M - i);
      const auto [k0, k1] = terms(i, i + n);
      if (k0 < k1)
        tile[n - 1](c + i * Ds + d, Ds, a + i * a_row + k0 * a_col, a_row, a_col, b + k0 * Ds + d,
                    Ds, k1 - k0, true);
    }
  }
}

// scores (M, keys) = a (M, D) b^T, b transposed in panels; rows [i0, i1) need keys(i1 - 1) of them.
template <class T, class Keys>
void score_product(T* scores, const T* a, const T* b, int64_t M, int64_t D, int64_t rows,
                   const Keys& keys) {
  const int64_t Ds = padded<T>(D);
  for (int64_t j = 0; j < keys(M - 1); j += kCols<T>, b += D * kCols<T>)
    for (int64_t i = 0; i < M; i += rows) {
      const int64_t n = std::min(rows, M - i), wanted = keys(i + n - 1) - j;
      if (wanted <= 0) continue;
      const auto* tile = wanted > kLanes<T> ? kTile<T, 2>.data() : kTile<T, 1>.data();
      tile[n - 1](scores + i * kKeys + j, kKeys, a + i * Ds, Ds, 1, b, kCols<T>, D, false);
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
