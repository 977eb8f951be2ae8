// The register tile that every matrix product on the CPU is made of, and the panels it reads.
//
//   c (R, n) = a (R, K) b (K, n), or c += a b;  R <= kTileRows, n <= Q vectors
//
// The sums stay in registers while the terms stream past. The tile reads a by two strides and b by
// one, so a packed operand differs from one that is read where it lies in its strides only.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/simd.h"

namespace pellucid {

// kTileRows x 2 vectors of sums, two vectors of b and one broadcast element of a fill the
// registers: 14 x 2 + 3 = 31 of 32, 6 x 2 + 3 = 15 of 16.
constexpr int kTileRows = kVectorBytes == 64 ? 14 : 6;
template <class T>
constexpr int kTileCols = 2 * kLanes<T>;

inline int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }
inline int64_t round_up(int64_t n, int64_t d) { return ceil_div(n, d) * d; }

// Multiply one tile; the whole vectors of b are read, but only n columns of c are written.
// Plain numbers, not Matrix: a structure passed in memory made 64^3 5 % slower.
template <class T, int R, int Q>
void multiply_tile(T* c, int64_t c_row, const T* a, int64_t a_row, int64_t a_col, const T* b,
                   int64_t b_row, int64_t K, int64_t n, bool add) {
  constexpr int W = kLanes<T>;
  Vector<T> sum[R][Q] = {};
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) __builtin_prefetch(c + i * c_row, 1);
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
  for (int i = 0; i < R; ++i) {
    T* to = c + i * c_row;
    if (n == Q * W) {
      for (int q = 0; q < Q; ++q, to += W) store(to, add ? load(to) + sum[i][q] : sum[i][q]);
    } else {
      T edge[Q * W];
      for (int q = 0; q < Q; ++q) store(edge + q * W, sum[i][q]);
      for (int64_t j = 0; j < n; ++j) to[j] = add ? to[j] + edge[j] : edge[j];
    }
  }
}

// tiles<T>(n)[R - 1] is the tile of R rows and n columns.
template <class T, int Q, std::size_t... I>
constexpr auto tiles_of(std::index_sequence<I...>) {
  return std::array{&multiply_tile<T, int(I) + 1, Q>...};
}
template <class T, int Q>
constexpr auto kTiles = tiles_of<T, Q>(std::make_index_sequence<kTileRows>());
template <class T>
inline const auto* tiles(int64_t n) {
  return n > kLanes<T> ? kTiles<T, 2>.data() : kTiles<T, 1>.data();
}

// Pack one panel, P wide: to[k * P + l] = from[l * lane + k * step], l < min(P, lanes). The last
// vector of lanes is filled up with 0.
template <class T, int P>
void pack_panel(T* to, const T* from, int64_t lane, int64_t step, int64_t lanes, int64_t K) {
  constexpr int W = kLanes<T>;
  for (int l0 = 0; l0 < P && lanes > 0; l0 += W, to += W, from += W * lane, lanes -= W) {
    // Contiguous lanes: copy vectors. The second loop is the same with a masked load.
    if (lane == 1 && lanes >= W) {
      for (int64_t k = 0; k < K; ++k) store(to + k * P, load(from + k * step));
    } else if (lane == 1) {
      for (int64_t k = 0; k < K; ++k)
        for (int l = 0; l < W; ++l) to[k * P + l] = l < lanes ? from[k * step + l] : T(0);
      // Contiguous terms: transpose squares, the last of which may overlap the one before.
    } else if (step == 1 && K >= W) {
      for (int64_t k0 = 0; k0 < K; k0 += W) {
        const int64_t k = std::min(k0, K - W);
        Vector<T> square[W];
#pragma GCC unroll 16
        for (int l = 0; l < W; ++l) square[l] = l < lanes ? load(from + l * lane + k) : Vector<T>{};
        transpose<T>(square);
#pragma GCC unroll 16
        for (int l = 0; l < W; ++l) store(to + (k + l) * P, square[l]);
      }
    } else {
      for (int64_t k = 0; k < K; ++k)
        for (int l = 0; l < W; ++l) to[k * P + l] = l < lanes ? from[l * lane + k * step] : T(0);
    }
  }
}

}  // namespace pellucid
