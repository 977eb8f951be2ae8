// Matrix products. Their backward is written in products again, so it serves every order.
#include "autograd/ops.h"
#include "kernels/matmul.h"
#include "tensor/launch.h"

namespace pellucid {

namespace {

// x seen as (rows, its last dimension); a copy only if no stride reaches all the rows.
Tensor as_rows(const Tensor& x) {
  int64_t rows = 1;
  for (int d = 0; d < x.dim() - 1; ++d) rows *= x.size(d);
  return reshape(x, {rows, x.size(-1)});
}

// The shape of the matrices' places: x.shape() without the last two dimensions.
Shape leading(const Tensor& x) {
  Shape shape;
  for (int d = 0; d < x.dim() - 2; ++d) shape.push_back(x.size(d));
  return shape;
}

Shape with_matrix(Shape shape, int64_t rows, int64_t cols) {
  shape.push_back(rows);
  shape.push_back(cols);
  return shape;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  CHECK_ARG(a.dim() >= 1 && b.dim() >= 1, "matmul: a number is no matrix; got ", a.shape(), " and ",
            b.shape(), "; use mul");
  CHECK_ARG(a.dtype() == b.dtype(), "matmul: one dtype wanted; got a ", name(a.dtype()), " ",
            a.shape(), " and b ", name(b.dtype()), " ", b.shape(), "; convert one of them");
  const int64_t K = a.size(-1), b_rows = b.size(b.dim() == 1 ? 0 : -2);
  CHECK_ARG(K == b_rows, "matmul: wanted (..., M, K) (..., K, N); got ", a.shape(), " and ",
            b.shape(), ": the last dimension of a is ", K, ", that of b's rows is ", b_rows,
            "; transpose one of them?");

  // A vector is a row on the left and a column on the right; the dimension goes away again.
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, -1)), -1);
  if (a.dim() == 1) return squeeze(matmul(unsqueeze(a, 0), b), -2);

  const int64_t M = a.size(-2), N = b.size(-1);
  const Shape batch = broadcast_shape("matmul", leading(a), leading(b));
  Tensor y = empty_like(a, with_matrix(batch, M, N));  // (..., M, N)
  LAUNCH(a, matmul, y, expanded(a, with_matrix(batch, M, K)), expanded(b, with_matrix(batch, K, N)),
         maybe(Tensor()));

  // backward: da = dy b^T, db = a^T dy. One b for a whole batch gets its gradient from one product
  // of all the rows, not from a batch of gradients that are then added.
  return record("matmul", y, {a, b}, [a = SavedTensor(a), b = SavedTensor(b)](const Tensor& dy) {
    Tensor da, db;
    if (needs_input_grad(0)) da = matmul(dy, transpose(b(), -1, -2));  // (..., M, K)
    if (needs_input_grad(1)) {
      const bool shared = b().dim() == 2 && dy.dim() > 2;
      const Tensor x = shared ? as_rows(a()) : a(), dz = shared ? as_rows(dy) : dy;
      db = matmul(transpose(x, -1, -2), dz);  // (..., K, N)
    }
    return TensorList{da, db};
  });
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  CHECK_ARG(x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(1),
            "linear: wanted x (..., K) and w (N, K); got x ", x.shape(), " and w ", w.shape(),
            "; w has a row for each output");
  check_floating("linear", x);
  const auto check_dtype = [&](const char* of, const Tensor& other) {
    CHECK_ARG(other.dtype() == x.dtype(), "linear: one dtype wanted; got x ", name(x.dtype()), " ",
              x.shape(), " and ", of, " ", name(other.dtype()), " ", other.shape(),
              "; convert one of them");
  };
  check_dtype("w", w);
  if (b.defined()) check_dtype("b", b);
  const int64_t N = w.size(0), K = w.size(1);
  CHECK_ARG(!b.defined() || b.shape() == Shape{N}, "linear: wanted b of shape (", N,
            "), the rows of w ", w.shape(), "; got ", b.shape());
  Shape shape = x.shape();
  shape[-1] = N;
  Tensor rows;  // (R, K)
  {
    NoGradGuard untaped;
    rows = as_rows(x);
  }
  Tensor y = empty_like(x, shape);  // (..., N)
  LAUNCH(x, matmul, alias(y, {rows.size(0), N}, {N, 1}), rows,
         alias(w, {K, N}, {w.stride(1), w.stride(0)}), maybe(b));

  // backward: dx = dy w, dw = dy^T x, db = dy, which the engine sums over the rows.
  return record("linear", y, {x, w, b}, [x = SavedTensor(x), w = SavedTensor(w)](const Tensor& dy) {
    Tensor dx, dw;
    if (needs_input_grad(0)) dx = matmul(dy, w());                                     // (..., K)
    if (needs_input_grad(1)) dw = matmul(transpose(as_rows(dy), 0, 1), as_rows(x()));  // (N, K)
    return TensorList{dx, dw, needs_input_grad(2) ? dy : Tensor()};
  });
}

Tensor outer(const Tensor& a, const Tensor& b) {
  CHECK_ARG(a.dim() == 1 && b.dim() == 1, "outer: wanted a (M) and b (N); got a ", a.shape(),
            " and b ", b.shape(), "; reshape them to (-1)");
  CHECK_ARG(a.dtype() == b.dtype() && is_floating(a.dtype()),
            "outer: one floating dtype wanted; got a ", name(a.dtype()), " and b ", name(b.dtype()),
            "; convert one of them");
  return unsqueeze(a, 1) * b;
}

}  // namespace pellucid
