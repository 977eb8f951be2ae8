// Rows chosen by an index tensor. embedding and scatter_add_rows are each other's adjoint.
#include "autograd/ops.h"
#include "kernels/embedding.h"
#include "tensor/launch.h"

namespace pellucid {

// The kernels trust their ids, so each is looked at first.
static void check_ids(const char* op, const Tensor& ids, int64_t V) {
  CHECK_ARG(ids.defined() && ids.dtype() == kInt64, op, ": ids must be int64; got ",
            ids.defined() ? name(ids.dtype()) : "an undefined tensor");
  CHECK_ARG(ids.dim() < kMaxDim, op, ": ids of shape ", ids.shape(),
            " leave no room for one dimension more; a tensor has at most ", kMaxDim);
  const Tensor flat = packed(ids);
  const auto* id = static_cast<const int64_t*>(flat.data());
  for (int64_t n = 0; n < ids.numel(); ++n) {
    if (id[n] >= 0 && id[n] < V) continue;
    Shape index = ids.shape();
    for (int64_t d = ids.dim() - 1, rest = n; d >= 0; --d) {
      index[static_cast<int>(d)] = rest % ids.size(static_cast<int>(d));
      rest /= ids.size(static_cast<int>(d));
    }
    fail(op, ": ids", index, " is ", id[n], ", outside [0, ", V, ")");
  }
}

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  CHECK_ARG(weight.dim() == 2, "embedding: weight must have shape (V, C); got ", weight.shape());
  const int64_t V = weight.size(0), C = weight.size(1);
  check_ids("embedding", ids, V);
  Shape shape = ids.shape();
  shape.push_back(C);
  Tensor y = empty_like(weight, shape);  // (..., C)
  LAUNCH(weight, embedding, y, weight, ids, ids.numel(), C);
  return record("embedding", y, {weight, ids}, [ids = SavedTensor(ids), V](const Tensor& dy) {
    return TensorList{scatter_add_rows(dy, ids(), V), {}};
  });
}

Tensor scatter_add_rows(const Tensor& x, const Tensor& ids, int64_t V) {
  CHECK_ARG(V >= 0, "scatter_add_rows: V must not be negative; got ", V);
  check_ids("scatter_add_rows", ids, V);
  Shape wanted = ids.shape();
  wanted.push_back(x.dim() > 0 ? x.size(-1) : 0);
  CHECK_ARG(x.shape() == wanted,
            "scatter_add_rows: x must have the shape of ids and one dimension ", "more; got x ",
            x.shape(), ", ids ", ids.shape());
  const int64_t C = x.size(-1);
  Tensor y = empty_like(x, {V, C});
  if (y.numel() > 0) LAUNCH(x, scatter_add_rows, y, x, ids, ids.numel(), C, V);
  return record("scatter_add_rows", y, {x, ids}, [ids = SavedTensor(ids)](const Tensor& dy) {
    return TensorList{embedding(dy, ids()), {}};
  });
}

}  // namespace pellucid
