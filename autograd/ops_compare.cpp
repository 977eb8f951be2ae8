// Ops whose result has no gradient (comparisons, logic, tests for NaN, rounding), and where(),
// which chooses by them.
#include "autograd/operands.h"

namespace pellucid {

#define COMPARISON(op)                                                                         \
  Tensor op(const Tensor& a, const Tensor& b) { return MAP2_TO(LAUNCH_ANY, kBool, op, a, b); } \
  Tensor op(const Tensor& a, double b) { return op(a, number_like(#op, a, b)); }
COMPARISON(equal)
COMPARISON(not_equal)
COMPARISON(greater)
COMPARISON(greater_equal)
COMPARISON(less)
COMPARISON(less_equal)

Tensor sign(const Tensor& x) { return MAP(sign, x); }
Tensor floor(const Tensor& x) { return MAP(floor, x); }
Tensor ceil(const Tensor& x) { return MAP(ceil, x); }
Tensor round(const Tensor& x) { return MAP(round, x); }
Tensor isnan(const Tensor& x) { return MAP_TO(kBool, isnan, x); }
Tensor isinf(const Tensor& x) { return MAP_TO(kBool, isinf, x); }
Tensor isfinite(const Tensor& x) { return MAP_TO(kBool, isfinite, x); }

// a, when both are bool and broadcast.
static const Tensor& checked(const char* op, const Tensor& a, const Tensor& b) {
  for (const Tensor& x : {a, b})
    CHECK_ARG(x.dtype() == kBool, op, ": wanted bool; got ", name(x.dtype()), " of shape ",
              x.shape(), "; compare first, as in not_equal(x, 0)");
  broadcast_shape(op, a.shape(), b.shape());
  return a;
}

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return where(checked("logical_and", a, b), b, full_like(b, {}, 0));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return where(checked("logical_or", a, b), full_like(b, {}, 1), b);
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return not_equal(checked("logical_xor", a, b), b);
}
Tensor logical_not(const Tensor& x) { return equal(checked("logical_not", x, x), 0); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  CHECK_ARG(condition.dtype() == kBool, "where: the condition must be bool; got ",
            name(condition.dtype()), " of shape ", condition.shape(),
            "; compare with equal() or greater()");
  check_same_dtype("where", a, b);
  const Shape both = broadcast_shape("where", a.shape(), b.shape());
  Tensor y = empty_like(a, broadcast_shape("where", condition.shape(), both));
  LAUNCH_ANY(a, where, y, expanded(condition, y.shape()), expanded(a, y.shape()),
             expanded(b, y.shape()));
  return record(
      "where", y, {condition, a, b}, [condition = SavedTensor(condition)](const Tensor& dy) {
        const Tensor zero = full_like(dy, {}, 0);
        return TensorList{Tensor(), needs_input_grad(1) ? where(condition(), dy, zero) : Tensor(),
                          needs_input_grad(2) ? where(condition(), zero, dy) : Tensor()};
      });
}

}  // namespace pellucid
