// The arithmetic of layouts, in elements: where in a storage an element lies,
//   offset(i0, i1, ...) = i0 * strides[0] + i1 * strides[1] + ...
// and which strides show the same storage in another shape.
#pragma once
#include <optional>

#include "tensor/shape.h"

namespace pellucid {

// The strides of a tensor without gaps: each dimension steps over all that the later ones span.
Shape row_major(const Shape& sizes);

int64_t offset_of(const Shape& index, const Shape& strides);

// The shape of `a op b`. Aligned at the last dimension, two sizes are equal or one of them is 1.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

// The strides that repeat a layout along its dimensions of size 1, and along new leading ones,
// until it has the shape `to`.
Shape expanded_strides(const Shape& sizes, const Shape& strides, const Shape& to);

// The strides with which the memory of a layout has the shape `to`, of as many elements, in the
// same order; none if there are no such strides, so that the elements must be copied.
std::optional<Shape> view_strides(const Shape& sizes, const Shape& strides, const Shape& to);

}  // namespace pellucid
