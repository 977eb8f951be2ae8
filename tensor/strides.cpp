// Strides, offsets, broadcasting, and the reshape that needs no copy.
#include "tensor/strides.h"

namespace pellucid {

Shape row_major(const Shape& sizes) {
  Shape strides = sizes;
  int64_t stride = 1;
  for (int d = sizes.dim() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  return strides;
}

int64_t offset_of(const Shape& index, const Shape& strides) {
  int64_t offset = 0;
  for (int d = 0; d < index.dim(); ++d) offset += index[d] * strides[d];
  return offset;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  Shape y = a.dim() >= b.dim() ? a : b;
  for (int d = 1; d <= std::min(a.dim(), b.dim()); ++d) {
    CHECK_ARG(a[-d] == b[-d] || a[-d] == 1 || b[-d] == 1, op, ": shapes ", a, " and ", b,
              " do not broadcast: they differ in axis -", d);
    y[-d] = a[-d] == 1 ? b[-d] : a[-d];
  }
  return y;
}

Shape expanded_strides(const Shape& sizes, const Shape& strides, const Shape& to) {
  Shape y = to;
  const int lead = to.dim() - sizes.dim();
  CHECK_ARG(lead >= 0, "expand: shape ", sizes, " has more dimensions than ", to);
  for (int d = 0; d < to.dim(); ++d) {
    const bool repeat = d < lead || (sizes[d - lead] == 1 && to[d] != 1);
    CHECK_ARG(repeat || sizes[d - lead] == to[d], "expand: shape ", sizes,
              " does not broadcast to ", to);
    y[d] = repeat ? 0 : strides[d - lead];
  }
  return y;
}

// Dimensions that lie evenly in memory form a run: one step reaches the next element all along it.
// The new sizes, from the last, must fill each run exactly.
std::optional<Shape> view_strides(const Shape& sizes, const Shape& strides, const Shape& to) {
  Shape y = row_major(to);
  if (sizes.numel() == 0 || sizes.dim() == 0) return y;
  int next = to.dim() - 1;
  int64_t step = strides[-1], run = 1, full = 1;
  for (int d = sizes.dim() - 1; d >= 0; --d) {
    run *= sizes[d];
    if (d > 0 && (sizes[d - 1] == 1 || strides[d - 1] == run * step)) continue;
    for (; next >= 0 && full < run; --next) {
      y[next] = full * step;
      full *= to[next];
    }
    if (full != run) return std::nullopt;
    if (d > 0) step = strides[d - 1], run = full = 1;
  }
  return y;
}

}  // namespace pellucid
