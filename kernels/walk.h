// A walk over several views of one shape at once, in rows along which each view has one step.
#pragma once
#include <algorithm>

#include "kernels/kernel.h"

namespace pellucid {

// Dimensions that every view walks evenly are merged, sizes of 1 dropped: contiguous views become
// one row, a broadcast row or column keeps two dimensions. Dimension 0 is the innermost here.
template <int K>
struct Walk {
  int dim = 0;
  int64_t sizes[kMaxDim + 1], strides[kMaxDim + 1][K];  // one more for in_pieces

  template <class First, class... Views>
  explicit Walk(const Strided<First>& y, const Views&... x) {
    // Let y, where the writing is, step the least in the innermost dimension.
    int order[kMaxDim];
    for (int d = 0; d < y.dim; ++d) {
      int at = d;
      for (; at > 0 && y.strides[order[at - 1]] < y.strides[d] && !y.contiguous; --at)
        order[at] = order[at - 1];
      order[at] = d;
    }
    for (int d = y.dim - 1; d >= 0; --d)
      append(y.sizes[order[d]], {y.strides[order[d]], x.strides[order[d]]...});
    close();
  }
  Walk() = default;

  void append(int64_t size, const int64_t (&steps)[K]) {
    if (size == 1) return;
    bool merge = dim > 0;
    for (int k = 0; k < K && merge; ++k) merge = steps[k] == sizes[dim - 1] * strides[dim - 1][k];
    if (merge) {
      sizes[dim - 1] *= size;
    } else {
      push(size, steps);
    }
  }

  // After the last append: a single element is a row of one.
  void close() {
    if (dim == 0) sizes[dim++] = 1, std::fill(strides[0], strides[0] + K, 1);
  }

  // Does a view jump along dimension 0 and step along dimension 1, as a transposed one?
  bool is_transposed() const {
    bool found = false;
    for (int k = 0; k < K && dim > 1; ++k) found |= strides[1][k] == 1 && strides[0][k] > 1;
    return found;
  }
  // The first count * width elements of dimension 0, a piece of width elements all the way down
  // dimension 1 before the next: then what one row reads beside its own is still there for the
  // next.
  Walk in_pieces(int64_t width, int64_t count) const {
    Walk pieces;
    pieces.push(width, strides[0]);
    pieces.push(sizes[1], strides[1]);
    pieces.push(count, strides[0], width);
    for (int d = 2; d < dim; ++d) pieces.push(sizes[d], strides[d]);
    return pieces;
  }
  void push(int64_t size, const int64_t (&steps)[K], int64_t times = 1) {
    sizes[dim] = size;
    for (int k = 0; k < K; ++k) strides[dim][k] = steps[k] * times;
    ++dim;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < dim; ++d) n *= sizes[d];
    return n;
  }

  // Calls row(n, offsets, steps) for the pieces of elements [begin, end), in order.
  template <class F>
  void rows(int64_t begin, int64_t end, const F& row) const {
    int64_t index[kMaxDim + 1], offsets[K] = {};
    for (int64_t d = 0, rest = begin; d < dim; rest /= sizes[d++]) {
      index[d] = rest % sizes[d];
      for (int k = 0; k < K; ++k) offsets[k] += index[d] * strides[d][k];
    }
    while (begin < end) {
      const int64_t n = std::min(sizes[0] - index[0], end - begin);
      row(n, offsets, strides[0]);
      begin += n;
      index[0] += n;
      for (int k = 0; k < K; ++k) offsets[k] += n * strides[0][k];
      // Carry into the outer dimensions.
      for (int d = 0; d + 1 < dim && index[d] == sizes[d]; ++d) {
        index[d] = 0;
        ++index[d + 1];
        for (int k = 0; k < K; ++k) offsets[k] += strides[d + 1][k] - sizes[d] * strides[d][k];
      }
    }
  }
};

}  // namespace pellucid
