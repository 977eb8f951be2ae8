// How the kernels that work row by row cut their rows into blocks: never by the number of threads.
#pragma once
#include <algorithm>
#include <cstdint>

namespace pellucid {

// Rows a thread takes at once: 64 KiB of floats are worth the hand-over and stay in its cache.
inline int64_t row_grain(int64_t C) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, C));
}

// The gradient of a weight sums over rows. Each block of 32 rows sums into a row of partials
// (row_blocks(N), width), and these are added up in order: the same bytes for any number of
// threads.
constexpr int64_t kBlockRows = 32;
inline int64_t row_blocks(int64_t N) { return (N + kBlockRows - 1) / kBlockRows; }

}  // namespace pellucid
