// Elements and rows chosen by an index tensor. embedding and scatter_add_rows, gather and
// scatter_add are each other's adjoint.
#include <limits>

#include "autograd/ops.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/gather.h"
#include "tensor/launch.h"

namespace pellucid {

// The kernels trust their indices, so each is looked at first.
static void check_index(const char* op, const char* what, const Tensor& index, int64_t size) {
  CHECK_ARG(index.defined() && index.dtype() == kInt64, op, ": ", what, " must be int64; got ",
            index.defined() ? name(index.dtype()) : "an undefined tensor");
  const Tensor flat = packed(index);
  const auto* id = static_cast<const int64_t*>(flat.data());
  for (int64_t n = 0; n < index.numel(); ++n) {
    if (id[n] >= 0 && id[n] < size) continue;
    fail(op, ": ", what, index_of(n, index.shape()), " is ", id[n], ", outside [0, ", size, ")");
  }
}

// For a result with the shape of ids and one dimension more, of size C.
static Shape shape_of_rows(const char* op, const Tensor& ids, int64_t C) {
  CHECK_ARG(ids.dim() < kMaxDim, op, ": ids of shape ", ids.shape(),
            " leave no room for one dimension more; a tensor has at most ", kMaxDim);
  Shape shape = ids.shape();
  shape.push_back(C);
  return shape;
}

// Rows of C elements that no memory could hold.
static void check_room(const char* op, int64_t rows, int64_t C) {
  CHECK_ARG(C == 0 || rows <= std::numeric_limits<int64_t>::max() / 8 / C, op, ": ", rows,
            " rows of ", C, " elements are more than int64 counts bytes");
}

// ---- Rows.

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  CHECK_ARG(weight.dim() == 2, "embedding: weight must have shape (V, C); got ", weight.shape());
  const int64_t V = weight.size(0), C = weight.size(1);
  check_index("embedding", "ids", ids, V);
  check_room("embedding", ids.numel(), C);
  Tensor y = empty_like(weight, shape_of_rows("embedding", ids, C));  // (..., C)
  LAUNCH_ANY(weight, embedding, y, weight, ids, ids.numel(), C);
  return record("embedding", y, {weight, ids}, [ids = SavedTensor(ids), V](const Tensor& dy) {
    return TensorList{scatter_add_rows(dy, ids(), V), {}};
  });
}

Tensor scatter_add_rows(const Tensor& x, const Tensor& ids, int64_t V) {
  CHECK_ARG(V >= 0, "scatter_add_rows: V must not be negative; got ", V);
  check_index("scatter_add_rows", "ids", ids, V);
  const int64_t C = x.dim() > 0 ? x.size(-1) : 0;
  CHECK_ARG(x.dim() > 0 && x.shape() == shape_of_rows("scatter_add_rows", ids, C),
            "scatter_add_rows: x must have the shape of ids and one dimension more; got x ",
            x.shape(), ", ids ", ids.shape());
  check_room("scatter_add_rows", V, C);
  Tensor y = empty_like(x, {V, C});
  if (y.numel() > 0) LAUNCH(x, scatter_add_rows, y, x, ids, ids.numel(), C, V);
  return record("scatter_add_rows", y, {x, ids}, [ids = SavedTensor(ids)](const Tensor& dy) {
    return TensorList{embedding(dy, ids()), {}};
  });
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  CHECK_ARG(classes >= 0, "one_hot: classes must not be negative; got ", classes);
  check_index("one_hot", "ids", ids, classes);
  check_room("one_hot", ids.numel(), classes);
  const Shape shape = shape_of_rows("one_hot", ids, classes);  // (..., classes)
  return astype(equal(expand(unsqueeze(ids, -1), shape), arange(classes)), dtype);
}

// x as a table of rows, one for each place in dimension `at`; and back, to the shape that x had but
// for that dimension.
static Tensor as_table(const Tensor& x, int at) {
  const Tensor first = transpose(x, 0, at);
  Shape rest;
  for (int d = 1; d < x.dim(); ++d) rest.push_back(first.size(d));
  return reshape(first, {first.size(0), rest.numel()});
}
static Tensor from_table(const Tensor& table, Shape shape, int at) {
  shape[at] = shape[0];
  shape[0] = table.size(0);
  return transpose(reshape(table, shape), 0, at);
}

// Checks ids for rows of x in a dimension; returns the dimension, counted from 0.
static int check_rows(const char* op, const Tensor& x, int dim, const Tensor& ids) {
  const int at = axis(op, dim, x);
  check_index(op, "ids", ids, x.size(at));
  CHECK_ARG(ids.dim() == 1, op, ": ids must have shape (N); got ", ids.shape());
  return at;
}

Tensor index_select(const Tensor& x, int dim, const Tensor& ids) {
  const int at = check_rows("index_select", x, dim, ids);
  return from_table(embedding(as_table(x, at), ids), x.shape(), at);
}

Tensor index_add(const Tensor& x, int dim, const Tensor& ids, const Tensor& src) {
  const int at = check_rows("index_add", x, dim, ids);
  check_floating("index_add", x);
  Shape wanted = x.shape();
  wanted[at] = ids.numel();
  CHECK_ARG(src.shape() == wanted && src.dtype() == x.dtype(), "index_add: src must be ",
            name(x.dtype()), " of shape ", wanted, ", that of x ", x.shape(), " with ", ids.numel(),
            " ids in dimension ", at, "; got ", name(src.dtype()), " ", src.shape());
  const Tensor added = scatter_add_rows(as_table(src, at), ids, x.size(at));
  return x + from_table(added, x.shape(), at);
}

// ---- Elements.

// Checks index for x and a dimension; returns the dimension, counted from 0.
static int check_elements(const char* op, const Tensor& x, int dim, const Tensor& index) {
  const int at = axis(op, dim, x);
  check_index(op, "index", index, x.size(at));
  bool fits = index.dim() == x.dim();
  for (int d = 0; fits && d < x.dim(); ++d) fits = d == at || index.size(d) <= x.size(d);
  CHECK_ARG(fits, op, ": index must have as many dimensions as x and, but for dimension ", at,
            ", no larger size; got x ", x.shape(), ", index ", index.shape());
  return at;
}

// A layout for the kernels: dimension `at` of x comes last, the others are cut to those of index.
static Tensor as_lines(const Tensor& x, int at, const Tensor& index) {
  Shape sizes, strides;
  for (int d = 0; d < x.dim(); ++d)
    if (d != at) sizes.push_back(index.size(d)), strides.push_back(x.stride(d));
  sizes.push_back(x.size(at));
  strides.push_back(x.stride(at));
  return alias(x, sizes, strides);
}

Tensor gather(const Tensor& x, int dim, const Tensor& index) {
  const int at = check_elements("gather", x, dim, index);
  Tensor y = empty_like(x, index.shape());
  LAUNCH_ANY(x, gather, as_lines(y, at, index), as_lines(x, at, index), as_lines(index, at, index));
  return record("gather", y, {x, index},
                [at, shape = x.shape(), index = SavedTensor(index)](const Tensor& dy) {
                  return TensorList{scatter_add(full_like(dy, shape, 0), at, index(), dy), {}};
                });
}

Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  const int at = check_elements("scatter_add", x, dim, index);
  bool covers = src.dim() == index.dim() && src.dtype() == x.dtype();
  for (int d = 0; covers && d < src.dim(); ++d) covers = index.size(d) <= src.size(d);
  CHECK_ARG(covers, "scatter_add: src must be ", name(x.dtype()),
            " and at least as large as index in each dimension; got ", name(src.dtype()), " ",
            src.shape(), ", index ", index.shape());
  Tensor part = src;
  for (int d = 0; d < src.dim(); ++d)
    if (src.size(d) > index.size(d)) part = slice(part, d, 0, index.size(d));
  Tensor y = empty_like(x);
  LAUNCH_ANY(x, copy, y, x);
  LAUNCH(x, scatter_add, as_lines(y, at, index), as_lines(index, at, index),
         as_lines(part, at, index));
  return record(
      "scatter_add", y, {x, index, part}, [at, index = SavedTensor(index)](const Tensor& dy) {
        return TensorList{dy, {}, needs_input_grad(2) ? gather(dy, at, index()) : Tensor()};
      });
}

Tensor take_along(const Tensor& x, const Tensor& index, int dim) {
  const int at = axis("take_along", dim, x);
  check_index("take_along", "index", index, x.size(at));
  CHECK_ARG(index.dim() == x.dim(), "take_along: index must have as many dimensions as x; got x ",
            x.shape(), ", index ", index.shape());
  Shape from = x.shape(), to = index.shape();
  from[at] = to[at] = 1;
  from = to = broadcast_shape("take_along", from, to);
  from[at] = x.size(at), to[at] = index.size(at);
  return gather(expand(x, from), at, expand(index, to));
}

}  // namespace pellucid
