// Ops in place: x changes, its version goes up, x is returned. All checks come before the first
// write.
#include "autograd/operands.h"

namespace pellucid {

// A copy with x's history.
static Tensor copied(const Tensor& x) {
  Tensor y = empty_like(x);
  LAUNCH_ANY(x, copy, y, x);
  return record("copy", y, {x}, [](const Tensor& dy) { return TensorList{dy}; });
}

// What an in-place op reads. A y that shares x's memory would change while it is read, and its
// history become stale, so it is copied first.
static Tensor source_for(const char* op, const Tensor& x, const Tensor& y) {
  check_in_place(op, x, y);
  check_same_dtype(op, x, y);
  CHECK_ARG(broadcast_shape(op, x.shape(), y.shape()) == x.shape(), op, ": shape ", y.shape(),
            " does not broadcast to ", x.shape(), ", the shape of what is written");
  if (&x.storage() != &y.storage() || x.impl() == y.impl()) return y;
  return copied(y);
}

Tensor add_(const Tensor& x, const Tensor& y) {
  const Tensor source = source_for("add_", floating("add_", x), y);
  LAUNCH(x, add, x, x, expanded(source, x.shape()));
  return record("add_", x, {x, source}, [](const Tensor& dy) { return TensorList{dy, dy}; });
}

// The gradient for y needs the old x, which is copied before it is lost: for mul_(x, x) too.
Tensor mul_(const Tensor& x, const Tensor& y) {
  Tensor source = source_for("mul_", floating("mul_", x), y), old;
  if (grad_enabled() && source.requires_grad()) old = copied(x);
  if (old.defined() && x.impl() == source.impl()) source = old;
  LAUNCH(x, mul, x, x, expanded(source, x.shape()));
  return record("mul_", x, {x, source},
                [x = SavedTensor(old), y = saved_for(x, source)](const Tensor& dy) {
                  return TensorList{needs_input_grad(0) ? dy * y() : Tensor(),
                                    needs_input_grad(1) ? dy * x() : Tensor()};
                });
}

Tensor copy_(const Tensor& x, const Tensor& y) {
  const Tensor source = source_for("copy_", x, y);
  LAUNCH_ANY(x, copy, x, expanded(source, x.shape()));
  return record("copy_", x, {x, source}, [](const Tensor& dy) { return TensorList{Tensor(), dy}; });
}

// The gradient ends here: 0, by a choice, for inf * 0 is not 0.
static Tensor filled(const char* op, const Tensor& x, double value) {
  check_in_place(op, x);
  LAUNCH_ANY(x, copy, x, expanded(number_like(op, x, value), x.shape()));
  return record(op, x, {x}, [](const Tensor& dy) {
    return TensorList{where(full({}, 0, kBool, dy.device()), dy, full_like(dy, {}, 0))};
  });
}
Tensor fill_(const Tensor& x, double value) { return filled("fill_", x, value); }
Tensor zero_(const Tensor& x) { return filled("zero_", x, 0); }

}  // namespace pellucid
