// The idea is BLIS's (Van Zee and van de Geijn, 2015): a tile of c stays in registers while the
// terms stream past it, and blocking only decides from which cache they come.
//
//   for each block of terms, kDepth long              one parallel_for
//     for each block of c, rows x kBlockCols          one task: a thread of its own, no sharing
//       pack b's block into panels, kDepth x kCols    in the L2 cache; kept for the next row block
//       for each panel of b                           in the L1 cache, or streaming from L2
//         for each kRows rows of a                    read where they lie, by two strides
//           multiply_tile                             kRows x kCols sums in registers
//
// The tile reads a(i, k) by two strides and b(k, j) by one, so packing changes nothing but the
// strides, and an operand that already lies well is not packed.
#include "kernels/gemm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <utility>

#include "kernels/simd.h"
#include "kernels/thread_pool.h"

namespace pellucid {
namespace {

// The tile: kRows x 2 vectors of sums, two vectors of b and one broadcast element of a fill the
// registers: 14 x 2 + 3 = 31 of 32, 6 x 2 + 3 = 15 of 16.
constexpr int kRows = kVectorBytes == 64 ? 14 : 6;
template <class T>
constexpr int kCols = 2 * kLanes<T>;
template <class T>
constexpr int kPackedRows = (kRows + kLanes<T> - 1) / kLanes<T>* kLanes<T>;  // whole vectors

// Terms of a block: a panel of b, kDepth x kCols. At 8 lanes it is 16 KiB, half of a 32 KiB L1
// cache. At 16 lanes it is 64 KiB and streams from the L2 cache, which costs less than to read and
// write c twice as often (2048 x 1536 x 384: 1.10 of the speed with 256 terms).
constexpr int64_t kDepth = kVectorBytes == 64 ? 512 : 256;
// Columns of a block: its panels leave half of a 1 MiB L2 cache, or more, to a and c. Fewer columns
// read a more often (192 instead of 256: 1152 x 384 x 2048 TN at 0.92).
template <class T>
constexpr int64_t kBlockCols = (kVectorBytes == 64 ? 512 : 384) * 1024 /
                               (kDepth * int64_t(sizeof(T)));
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

int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }
int64_t round_up(int64_t n, int64_t d) { return ceil_div(n, d) * d; }

// What this thread's panels of b hold: the number of the call, of the columns, and the first term.
std::atomic<int64_t> calls{0};
thread_local std::array<int64_t, 3> held;

// Working memory of this thread, kept between calls; each use has its slot. Only `owner` has a
// destructor, so a product at the end of the program finds empty slots, not freed ones.
enum Slot { kPackedA, kPackedB, kPartialSums, kSlots };
struct Scratch {
  void* memory = nullptr;
  std::size_t bytes = 0;
};
thread_local Scratch slots[kSlots];

template <class T>
T* scratch(Slot slot, int64_t count) {
  constexpr std::align_val_t kPage{4096};
  struct Owner {
    ~Owner() {
      for (Scratch& s : slots) ::operator delete(std::exchange(s, {}).memory, kPage);
    }
  };
  [[maybe_unused]] thread_local Owner owner;
  Scratch& s = slots[slot];
  const std::size_t bytes = std::size_t(count) * sizeof(T);
  if (bytes > s.bytes) {
    ::operator delete(std::exchange(s, {}).memory, kPage);
    s.memory = ::operator new(bytes, kPage);
    s.bytes = bytes;
  }
  return static_cast<T*>(s.memory);
}

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

// Multiply one tile: c (R, n) = a (R, K) b (K, n), its sums in R x Q registers, n <= Q vectors.
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

// kTile<T, Q>[R - 1] is the tile of R rows.
template <class T, int Q, std::size_t... I>
constexpr auto tiles(std::index_sequence<I...>) {
  return std::array{&multiply_tile<T, int(I) + 1, Q>...};
}
template <class T, int Q>
constexpr auto kTile = tiles<T, Q>(std::make_index_sequence<kRows>());

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
  const int64_t rows = ceil_div(t.i1 - t.i0, ceil_div(t.i1 - t.i0, kRows));  // evenly, not 14 14 4

  // a is read where it lies, except that a transposed one is packed if its terms are a multiple of
  // 4096 bytes apart, in one set of the L1 cache (3072 x 768 x 512: 449 instead of 431 GFLOP/s, at
  // 8 lanes 235 instead of 170), or so far apart that a block's pages overflow the TLB.
  Matrix<const T> a = p.a.at(0, t.i0, t.k0);
  int64_t next_rows = rows * a.row;
  const int64_t apart = std::max(a.row, a.col) * int64_t(sizeof(T));
  if (a.col != 1 && (apart % 4096 == 0 || apart > 1 << 16) && t.j1 - t.j0 > kCols<T>) {
    T* packed = scratch<T>(kPackedA, ceil_div(t.i1 - t.i0, rows) * P * K);
    pack<T, P>(packed, a, t.i1 - t.i0, rows, p.M - t.i0, K);
    a = {packed, 1, P};
    next_rows = P * K;
  }

  // A single row takes tiles four times as wide, to read longer pieces of the rows of b.
  for (int64_t j = t.j0, width; j < t.j1; j += width) {
    const bool in_place = j < packed_from, wide = rows == 1 && j + 4 * kCols<T> <= packed_from;
    width = (wide ? 4 : 1) * kCols<T>;
    const T* b = in_place ? p.b.at(0, t.k0, j).data : panels + (j - packed_from) * K;
    const int64_t n = std::min(width, t.j1 - j);
    const auto* tile = n > kLanes<T> ? kTile<T, 2>.data() : kTile<T, 1>.data();
    const T* x = a.data;
    for (int64_t i = t.i0; i < t.i1; i += rows, x += next_rows)
      (wide ? multiply_tile<T, 1, 8> : tile[std::min(rows, t.i1 - i) - 1])(
          p.c.at(0, i, j).data, p.c.row, x, a.row, a.col, b, in_place ? p.b.row : kCols<T>, K, n,
          p.add || t.k0 > 0);
  }
}

// Cut c into blocks, the same for any number of threads, and multiply them.
template <class T>
void blocked_product(const Product<T>& p) {
  const bool in_place = p.b.col == 1 && (p.M <= kInPlaceRows || p.K * p.N <= kInPlaceSize);
  const int64_t panels = ceil_div(p.N, kCols<T>);
  const int64_t depth = p.K <= kDepth ? p.K : round_up(ceil_div(p.K, ceil_div(p.K, kDepth)), 16);
  const int64_t most = p.M * p.N * p.K / kGrain;
  int64_t rows = 1, cols = ceil_div(p.N, kBlockCols<T>);
  if (most > 1) {
    rows = round_up(ceil_div(p.M, kBlockRows), ceil_div(kTasks, cols));
    rows = std::min({rows, most & ~1, ceil_div(p.M, kRows)});
    cols = std::min(panels, std::max(cols, std::min(most / rows, ceil_div(kTasks, rows))));
  }

  // A thread keeps the panels it packed last: its next block often has the same columns.
  const int64_t call = ++calls;
  const int64_t group = ceil_div(rows * cols, ceil_div(rows * cols, kGroup));
  auto multiply = [&](int64_t first, int64_t k0, int64_t k1) {
    parallel_for(std::min(group, rows * cols - first), 1, [&](int64_t task, int64_t) {
      const int64_t r = (first + task) % rows, q = (first + task) / rows;
      const int64_t j0 = panels * q / cols * kCols<T>;
      const int64_t j1 = std::min(p.N, panels * (q + 1) / cols * kCols<T>);
      const int64_t packed_from = in_place ? std::max(j0, p.N / kCols<T> * kCols<T>) : j0;
      T* packed = nullptr;
      if (packed_from < j1) {
        packed = scratch<T>(kPackedB, ceil_div(panels, cols) * kCols<T> * depth);
        if (held != std::array{call, q, k0}) {
          held = {call, q, k0};
          pack<T, kCols<T>>(packed, p.b.at(0, k0, packed_from).transposed(), j1 - packed_from,
                            kCols<T>, p.N - packed_from, k1 - k0);
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
  T* partial = scratch<T>(kPartialSums, (chunks - 1) * MN);
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
