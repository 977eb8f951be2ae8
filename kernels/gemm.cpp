// The idea is BLIS's (Van Zee and van de Geijn, 2015): a tile of c stays in registers while the
// terms stream past it, and blocking only decides from which cache they come.
//
//   for each block of terms, kDepth long              one parallel_for
//     for each block of c, rows x kBlockCols          one task: a thread of its own, no sharing
//       pack b's block, in panels kTileCols wide      in the L2 cache; kept for the next row block
//       for each panel of b                           in the L1 cache, or streaming from L2
//         for each kTileRows rows of a                read where they lie, by two strides
//           multiply_tile (kernels/tile.h)            kTileRows x kTileCols sums in registers
//
// Packing changes nothing but the strides, so an operand that already lies well is not packed.
#include "kernels/gemm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "kernels/scratch.h"
#include "kernels/thread_pool.h"
#include "kernels/tile.h"

namespace pellucid {
namespace {

// Rows of a panel of a, in whole vectors.
template <class T>
constexpr int kPackedRows = (kTileRows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;

// Terms of a block: a panel of b, kDepth x kTileCols. At 8 lanes it is 16 KiB, half of a 32 KiB L1
// cache. At 16 lanes it is 64 KiB and streams from the L2 cache, which costs less than to read and
// write c twice as often (2048 x 1536 x 384: 1.10 of the speed with 256 terms).
constexpr int64_t kDepth = kVectorBytes == 64 ? 512 : 256;
// Columns of a block: its panels leave half of a 1 MiB L2 cache, or more, to a and c. Fewer columns
// read a more often (192 instead of 256: 1152 x 384 x 2048 TN at 0.92).
template <class T>
constexpr int64_t kBlockCols =
    (kVectorBytes == 64 ? 512 : 384) * 1024 / (kDepth * int64_t(sizeof(T)));
// Rows of a block: at most 224 KiB of a (float), in the L2 cache beside the panels.
constexpr int64_t kBlockRows = 112;
// Blocks of c to aim at, whatever the number of threads; the least multiply-adds of one, 1 us.
constexpr int64_t kTasks = 8, kGrain = 1 << 17;
// Blocks of c that take all their terms before the next ones begin: 5 MiB of c, in the L3 cache.
constexpr int64_t kGroup = 32;
// b with contiguous rows is read in place if c has few rows (32 x 3072 x 768: 429 instead of 212
// GFLOP/s) or if b fits in the L1 cache.
constexpr int64_t kInPlaceRows = 112, kInPlaceSize = 16384;
// Up to so many rows, a product along contiguous K is made of dot products.
constexpr int64_t kDotRows = 8;
// A long K is cut into chunks of kChunk terms where c has at most kSplitSize elements: 512 KiB.
constexpr int64_t kChunk = 512, kSplitSize = 1 << 17;

// What this thread's panels of b hold: the number of the call, of the columns, and the first term.
std::atomic<int64_t> calls{0};
thread_local std::array<int64_t, 3> held;

// One matrix of the batch, number s: c (M, N) = a (M, K) b (K, N), c with contiguous rows.
template <class T>
struct Product {
  Matrix<T> c;
  Matrix<const T> a, b;
  int64_t M, N, K;
  bool add;
  int64_t s;
  const Epilogue& epilogue;

  void finish(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    if (epilogue) epilogue(s, i0, i1, j0, j1);
  }
};

// Pack lanes [0, lanes) in panels that begin `apart` lanes from each other; from(l, k), K terms,
// and `readable` lanes exist. Rows of contiguous lanes are read a few whole rows at a time, as the
// hardware prefetches them.
template <class T, int P>
void pack(T* to, Matrix<const T> from, int64_t lanes, int64_t apart, int64_t readable, int64_t K) {
  const int64_t step = from.row == 1 ? 8 : K;
  for (int64_t k = 0; k < K; k += step)
    for (int64_t l = 0, q = 0; l < lanes; l += apart, ++q)
      pack_panel<T, P>(to + (q * K + k) * P, from.at(0, l, k).data, from.row, from.col,
                       readable - l, std::min(step, K - k));
}

struct Block {
  int64_t i0, i1, j0, j1, k0, k1;
};

// Multiply a block. Columns before `packed_from` are read where b lies, the others in `panels`.
template <class T>
void multiply_block(const Product<T>& p, const Block& t, const T* panels, int64_t packed_from) {
  constexpr int P = kPackedRows<T>;
  const int64_t K = t.k1 - t.k0;
  const int64_t M = t.i1 - t.i0, rows = ceil_div(M, ceil_div(M, kTileRows));  // not 14 14 4

  // a is read where it lies, except that a transposed one is packed if its terms are a multiple of
  // 4096 bytes apart, in one set of the L1 cache (3072 x 768 x 512: 449 instead of 431 GFLOP/s, at
  // 8 lanes 235 instead of 170), or so far apart that a block's pages overflow the TLB.
  Matrix<const T> a = p.a.at(0, t.i0, t.k0);
  int64_t next_rows = rows * a.row;
  const int64_t apart = std::max(a.row, a.col) * int64_t(sizeof(T));
  if (a.col != 1 && (apart % 4096 == 0 || apart > 1 << 16) && t.j1 - t.j0 > kTileCols<T>) {
    T* packed = scratch<T>(Slot::kGemmA, ceil_div(M, rows) * P * K);
    pack<T, P>(packed, a, M, rows, p.M - t.i0, K);
    a = {packed, 1, P};
    next_rows = P * K;
  }

  // A single row takes tiles four times as wide, to read longer pieces of the rows of b.
  for (int64_t j = t.j0, width; j < t.j1; j += width) {
    const bool in_place = j < packed_from, wide = rows == 1 && j + 4 * kTileCols<T> <= packed_from;
    width = (wide ? 4 : 1) * kTileCols<T>;
    const T* b = in_place ? p.b.at(0, t.k0, j).data : panels + (j - packed_from) * K;
    const int64_t n = std::min(width, t.j1 - j);
    const auto* tile = tiles<T>(n);
    const T* x = a.data;
    for (int64_t i = t.i0; i < t.i1; i += rows, x += next_rows)
      (wide ? multiply_tile<T, 1, 8> : tile[std::min(rows, t.i1 - i) - 1])(
          p.c.at(0, i, j).data, p.c.row, x, a.row, a.col, b, in_place ? p.b.row : kTileCols<T>, K,
          n, p.add || t.k0 > 0);
  }
}

// Cut c into blocks, the same for any number of threads, and multiply them.
template <class T>
void blocked_product(const Product<T>& p) {
  const bool in_place = p.b.col == 1 && (p.M <= kInPlaceRows || p.K * p.N <= kInPlaceSize);
  const int64_t panels = ceil_div(p.N, kTileCols<T>);
  const int64_t depth = p.K <= kDepth ? p.K : round_up(ceil_div(p.K, ceil_div(p.K, kDepth)), 16);
  const int64_t most = p.M * p.N * p.K / kGrain;
  int64_t rows = 1, cols = ceil_div(p.N, kBlockCols<T>);
  if (most > 1) {
    rows = round_up(ceil_div(p.M, kBlockRows), ceil_div(kTasks, cols));
    rows = std::min({rows, most & ~1, ceil_div(p.M, kTileRows)});
    cols = std::min(panels, std::max(cols, std::min(most / rows, ceil_div(kTasks, rows))));
  }

  // A thread keeps the panels it packed last: its next block often has the same columns.
  const int64_t call = ++calls;
  const int64_t group = ceil_div(rows * cols, ceil_div(rows * cols, kGroup));
  auto multiply = [&](int64_t first, int64_t k0, int64_t k1) {
    parallel_for(std::min(group, rows * cols - first), 1, [&](int64_t task, int64_t) {
      const int64_t r = (first + task) % rows, q = (first + task) / rows;
      const int64_t j0 = panels * q / cols * kTileCols<T>;
      const int64_t j1 = std::min(p.N, panels * (q + 1) / cols * kTileCols<T>);
      const int64_t packed_from = in_place ? std::max(j0, p.N / kTileCols<T> * kTileCols<T>) : j0;
      T* packed = nullptr;
      if (packed_from < j1) {
        packed = scratch<T>(Slot::kGemmB, ceil_div(panels, cols) * kTileCols<T> * depth);
        if (held != std::array{call, q, k0}) {
          held = {call, q, k0};
          pack<T, kTileCols<T>>(packed, p.b.at(0, k0, packed_from).transposed(), j1 - packed_from,
                                kTileCols<T>, p.N - packed_from, k1 - k0);
        }
      }
      const Block block{p.M * r / rows, p.M * (r + 1) / rows, j0, j1, k0, k1};
      multiply_block(p, block, packed, packed_from);
      if (k1 == p.K) p.finish(block.i0, block.i1, j0, j1);
    });
  };
  for (int64_t first = 0; first < rows * cols; first += group)
    for (int64_t k0 = 0; k0 < p.K; k0 += depth) multiply(first, k0, std::min(p.K, k0 + depth));
}

// Split a long K, as the gradient of a weight has it: chunk 0 goes to c, the others to sums of
// their own, which are added in the order of the chunks.
template <class T>
void split_product(const Product<T>& p) {
  static const Epilogue nothing;
  const int64_t chunks = ceil_div(p.K, kChunk), MN = p.M * p.N;
  T* partial = scratch<T>(Slot::kGemmSums, (chunks - 1) * MN);
  parallel_for(chunks, 1, [&](int64_t s0, int64_t s1) {
    for (int64_t s = s0; s < s1; ++s) {
      const int64_t k = s * kChunk;
      const Matrix<T> c = s == 0 ? p.c : Matrix<T>{partial + (s - 1) * MN, p.N, 1};
      blocked_product(Product<T>{c, p.a.at(0, 0, k), p.b.at(0, k, 0), p.M, p.N,
                                 std::min(kChunk, p.K - k), s == 0 && p.add, 0, nothing});
    }
  });
  parallel_for(p.M, ceil_div(p.M, kTasks), [&](int64_t i0, int64_t i1) {
    for (int64_t i = i0; i < i1; ++i) {
      T* c = p.c.at(0, i, 0).data;
      for (int64_t s = 0; s < chunks - 1; ++s) {
        const T* from = partial + s * MN + i * p.N;
        for (int64_t j = 0; j < p.N; ++j) c[j] += from[j];
      }
    }
    p.finish(i0, i1, 0, p.N);
  });
}

// Multiply R rows of a by Q columns of b, both contiguous along K: R x Q dot products.
template <class T, int R, int Q>
void dot_tile(const Product<T>& p, int64_t j) {
  constexpr int W = kLanes<T>;
  Vector<T> sum[R][Q] = {};
  const T *a = p.a.data, *b = p.b.at(0, 0, j).data;
  int64_t k = 0;
  for (; k + W <= p.K; k += W) {
    Vector<T> y[Q];
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) y[q] = load(b + q * p.b.col + k);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector<T> x = load(a + r * p.a.row + k);
#pragma GCC unroll 16
      for (int q = 0; q < Q; ++q) sum[r][q] += x * y[q];
    }
  }
  T total[R][Q];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) total[r][q] = sum_lanes<T>(sum[r][q]);

  for (int r = 0; r < R; ++r)
    for (int q = 0; q < Q; ++q) {
      for (int64_t l = k; l < p.K; ++l) total[r][q] += a[r * p.a.row + l] * b[q * p.b.col + l];
      T& c = *p.c.at(0, r, j + q).data;
      c = p.add ? c + total[r][q] : total[r][q];
    }
}

// kDots<T>[R - 1] does columns [j0, j1) of R rows; 8 sums or more hide the latency
// of the multiply-add.
template <class T, int R>
void dot_columns(const Product<T>& p, int64_t j0, int64_t j1) {
  constexpr int kSums = kVectorBytes == 64 ? 16 : 8, Q = std::min(8, kSums / R);
  for (; j0 + Q <= j1; j0 += Q) dot_tile<T, R, Q>(p, j0);
  for (; j0 < j1; ++j0) dot_tile<T, R, 1>(p, j0);
}
template <class T, std::size_t... I>
constexpr auto dots(std::index_sequence<I...>) {
  return std::array{&dot_columns<T, int(I) + 1>...};
}
template <class T>
constexpr auto kDots = dots<T>(std::make_index_sequence<kDotRows>());

// Few rows, as in decoding: read b once, at the speed of memory. c may have any strides.
template <class T>
void dot_product(const Product<T>& p) {
  const int64_t least = kGrain / (p.M * p.K);
  parallel_for(p.N, round_up(std::max({least, ceil_div(p.N, 4 * kTasks), int64_t{1}}), 8),
               [&](int64_t j0, int64_t j1) {
                 kDots<T>[p.M - 1](p, j0, j1);
                 p.finish(0, p.M, j0, j1);
               });
}

// No terms: the empty sum is 0.
template <class T>
void empty_product(const Product<T>& p) {
  for (int64_t i = 0; i < p.M && !p.add; ++i) std::fill_n(p.c.at(0, i, 0).data, p.N, T(0));
  p.finish(0, p.M, 0, p.N);
}

template <class T>
void product(const Product<T>& p) {
  if (p.K == 0) return empty_product(p);
  if (p.M <= kDotRows && p.a.col == 1 && p.b.row == 1) return dot_product(p);
  if (p.K >= 2 * std::max({p.M, p.N, kChunk}) && p.M * p.N <= kSplitSize) return split_product(p);
  blocked_product(p);
}

}  // namespace

template <class T>
void gemm(Matrix<T> c, Matrix<const T> a, Matrix<const T> b, int64_t M, int64_t N, int64_t K,
          int64_t batch, bool add, const Epilogue& epilogue) {
  if (M == 0 || N == 0 || batch == 0) return;
  if (gemm_backend() == GemmBackend::kOpenBlas && K > 0 && !inside_parallel_for() &&
      std::max({M, N, K, c.row, c.col}) <= INT32_MAX)
    return detail::gemm_openblas(c, a, b, M, N, K, batch, add, epilogue);

  // Columns of c contiguous, or only a few: c^T = b^T a^T. The stride of a size 1 is free.
  if (N == 1) c.col = 1;
  const bool swap = c.col != 1 || (N <= kDotRows && N < M && K > 0 && a.col == 1 && b.row == 1);
  const Epilogue swapped = [&](int64_t s, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    epilogue(s, j0, j1, i0, i1);
  };
  const Epilogue& finish = swap && epilogue ? swapped : epilogue;
  if (swap) {
    const Matrix<const T> left = a;
    a = b.transposed(), b = left.transposed(), c = c.transposed();
    std::swap(M, N);
  }

  // One b for the whole batch and rows that follow each other: one tall product.
  if (M == 1) c.row = c.batch, a.row = a.batch;
  if (b.batch == 0 && a.batch == M * a.row && c.batch == M * c.row && c.col == 1 && !epilogue) {
    M *= batch;
    batch = 1;
  }

  // Threads share out a long batch matrix by matrix, a short one inside each matrix.
  const int64_t grain = std::min(ceil_div(batch, kTasks), kGrain / (M * N * K + 1) + 1);
  parallel_for(batch, batch < kTasks ? batch : grain, [&](int64_t s0, int64_t s1) {
    for (int64_t s = s0; s < s1; ++s)
      product(Product<T>{c.at(s, 0, 0), a.at(s, 0, 0), b.at(s, 0, 0), M, N, K, add, s, finish});
  });
}

#define INSTANTIATE_GEMM(T)                                                                  \
  template void gemm(Matrix<T>, Matrix<const T>, Matrix<const T>, int64_t, int64_t, int64_t, \
                     int64_t, bool, const Epilogue&)
INSTANTIATE_GEMM(float);
INSTANTIATE_GEMM(double);

}  // namespace pellucid
