// Your turn: the arithmetic of layouts. You write the five functions that tensor/strides.h
// declares, and every tensor of the library stands on them.
//
//   ./pellucid grade 01-tensors            points for each check, and the first case that fails
//   ./pellucid grade 01-tensors --watch    the same again each time you save this file
//   ./pellucid grade 01-tensors --hint     a hint for the first check that fails
//
// If you began with --student-build, give it each time: without it all of Pellucid is built.
//
// Begin anywhere: what you have not written yet costs only its own points. A Shape is a short list
// of numbers, of sizes or of strides:
//   Shape s = {2, 3, 4};    s.dim() is 3;    s[0] is 2;    s[-1] is 4, counted from the end;
//   s.push_back(5);         s == Shape{2, 3, 4, 5};        s.numel() is the product, 120.
// Helpers of your own go into an unnamed namespace:  namespace { ... }
#include "tensor/strides.h"

namespace pellucid {

// 1. The strides of a tensor without gaps, the last index running fastest: row_major({2, 3, 4}) is
//    (12, 4, 1).
Shape row_major(const Shape& sizes) { throw std::logic_error("row_major is not written yet"); }

// 2. How many elements lie before the one with this index: offset_of({1, 2}, {4, 1}) is 6.
int64_t offset_of(const Shape& index, const Shape& strides) {
  throw std::logic_error("offset_of is not written yet");
}

// 3. The shape of a + b. Aligned at the last dimension, two sizes are equal or one of them is 1.
//    The shorter shape counts as filled up with ones on the left: (2, 1, 4) and (3, 1) give
//    (2, 3, 4).
//    Shapes that do not fit are refused: CHECK_ARG(condition, op, ": what is wrong") throws
//    std::invalid_argument if the condition is false. `op` is the name of who asks, for the
//    message.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  throw std::logic_error("broadcast_shape is not written yet");
}

// 4. The strides that show a tensor in the larger shape `to` without copying an element:
//    expanded_strides({3, 1}, {1, 1}, {2, 3, 4}) is (0, 1, 0). Refuse what does not broadcast to
//    `to`.
Shape expanded_strides(const Shape& sizes, const Shape& strides, const Shape& to) {
  throw std::logic_error("expanded_strides is not written yet");
}

// 5. The strides that show the same memory in the shape `to`, which has as many elements, in
//    the same order: view_strides({2, 3, 4}, {12, 4, 1}, {6, 4}) is (4, 1). Return std::nullopt
//    if no strides can do that; then reshape() has to copy.
std::optional<Shape> view_strides(const Shape& sizes, const Shape& strides, const Shape& to) {
  throw std::logic_error("view_strides is not written yet");
}

}  // namespace pellucid
