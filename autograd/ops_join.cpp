// Tensors put together from others, taken apart, repeated, reversed and masked.
#include <algorithm>

#include "autograd/ops.h"
#include "kernels/elementwise.h"
#include "kernels/flip.h"
#include "tensor/launch.h"

namespace pellucid {

// Checks that all tensors agree in dtype and shape, but for the size of dimension `free` if >= 0.
static void check_list(const char* op, const TensorList& list, int free) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    Shape shape = list[i].shape();
    if (free >= 0 && free < shape.dim()) shape[free] = list[0].size(free);
    CHECK_ARG(list[i].dtype() == list[0].dtype() && shape == list[0].shape(), op, ": tensor ", i,
              " is ", name(list[i].dtype()), " of shape ", list[i].shape(), ", tensor 0 is ",
              name(list[0].dtype()), " of shape ", list[0].shape(),
              "; wanted one dtype and one shape", free >= 0 ? " but for the dimension of dim" : "");
  }
}

Tensor cat(const TensorList& list, int dim) {
  CHECK_ARG(!list.empty(), "cat: wanted at least one tensor; got an empty list");
  const int at = axis("cat", dim, list[0]);
  check_list("cat", list, at);
  Shape sizes = list[0].shape();
  std::vector<int64_t> starts = {0};  // of each tensor in y, and the end
  for (const Tensor& x : list) starts.push_back(starts.back() + x.size(at));
  sizes[at] = starts.back();
  Tensor y = empty_like(list[0], sizes);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].numel() > 0)
      LAUNCH_ANY(y, copy, alias(y, list[i].shape(), y.strides(), starts[i] * y.stride(at)),
                 list[i]);
  return record("cat", y, list, [at, starts](const Tensor& dy) {
    TensorList dx(starts.size() - 1);
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (needs_input_grad(i)) dx[i] = slice(dy, at, starts[i], starts[i + 1]);
    return dx;
  });
}

Tensor stack(const TensorList& list, int dim) {
  CHECK_ARG(!list.empty(), "stack: wanted at least one tensor; got an empty list");
  check_list("stack", list, -1);
  CHECK_ARG(dim >= -list[0].dim() - 1 && dim <= list[0].dim(), "stack: dimension ", dim,
            " is outside [", -list[0].dim() - 1, ", ", list[0].dim(), "] for shape ",
            list[0].shape());
  TensorList rows;
  for (const Tensor& x : list) rows.push_back(unsqueeze(x, dim));
  return cat(rows, dim);
}

TensorList split(const Tensor& x, int64_t size, int dim) {
  const int at = axis("split", dim, x);
  CHECK_ARG(size >= 1, "split: size must be at least 1; got ", size);
  TensorList parts;
  for (int64_t i = 0; i == 0 || i < x.size(at); i += size) {
    const int64_t length = std::min(size, x.size(at) - i);
    parts.push_back(slice(x, at, i, i + length));
    if (length < size) break;
  }
  return parts;
}

TensorList chunk(const Tensor& x, int64_t n, int dim) {
  const int at = axis("chunk", dim, x);
  CHECK_ARG(n >= 1, "chunk: wanted at least 1 part; got ", n);
  return split(x, std::max<int64_t>(1, (x.size(at) - 1) / n + 1), at);
}

Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& sizes, double value) {
  int d = x.dim() - static_cast<int>(sizes.size());
  CHECK_ARG(d >= 0, "pad: ", sizes.size(), " pairs for the ", x.dim(), " dimensions of shape ",
            x.shape());
  Tensor y = x;
  const Tensor filler = number_like("pad", x, value);
  for (const auto& [before, after] : sizes) {
    CHECK_ARG(before >= 0 && after >= 0, "pad: wanted no negative size; got {", before, ", ", after,
              "} for dimension ", d, " of ", x.shape(), "; slice() cuts");
    Shape first = y.shape(), last = y.shape();
    first[d] = before, last[d] = after;
    y = cat({expanded(filler, first), y, expanded(filler, last)}, d++);
  }
  return y;
}

Tensor flip(const Tensor& x, const Dims& dims) {
  const auto mask = static_cast<int64_t>(dims.mask("flip", x));
  Tensor y = empty_like(x);
  LAUNCH_ANY(x, flip, y, x, mask);
  return record("flip", y, {x}, [dims](const Tensor& dy) { return TensorList{flip(dy, dims)}; });
}

// Each dimension in turn: (outer, inner) -> (outer, count, inner).
Tensor repeat(const Tensor& x, const Shape& counts) {
  const int lead = counts.dim() - x.dim();
  CHECK_ARG(
      lead >= 0 && std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0; }),
      "repeat: wanted a count of at least 0 for each dimension of ", x.shape(),
      ", and maybe more in front; got ", counts);
  Shape sizes = counts;
  for (int d = 0; d < counts.dim(); ++d) sizes[d] = d < lead ? 1 : x.size(d - lead);
  Tensor y = reshape(x, sizes);
  for (int d = 0; d < counts.dim(); ++d) {
    int64_t outer = 1, inner = 1;
    for (int k = 0; k < counts.dim(); ++k) (k < d ? outer : inner) *= sizes[k];
    y = expand(reshape(y, {outer, 1, inner}), {outer, counts[d], inner});
    sizes[d] *= counts[d];
    y = reshape(y, sizes);
  }
  if (&y.storage() != &x.storage()) return y;
  return reshape(cat({reshape(y, {-1})}), sizes);  // a copy, never a view
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  CHECK_ARG(mask.dtype() == kBool && reduces_to(x.shape(), mask.shape()),
            "masked_fill: wanted a bool mask that broadcasts to ", x.shape(), "; got ",
            name(mask.dtype()), " of shape ", mask.shape());
  return where(mask, number_like("masked_fill", x, value), x);
}

// Of the last two dimensions; row is already moved by the diagonal.
static Tensor triangle(const char* op, const Tensor& x, int64_t diagonal, bool lower) {
  CHECK_ARG(x.dim() >= 2, op, ": wanted at least two dimensions; got shape ", x.shape());
  const int64_t R = x.size(-2), C = x.size(-1), k = std::clamp(diagonal, -R, C);
  const Tensor row = reshape(arange(k, k + R, 1), {R, 1}), column = arange(C);  // (R, 1), (C)
  return masked_fill(x, lower ? greater(column, row) : greater(row, column), 0);
}

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle("tril", x, diagonal, true); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle("triu", x, diagonal, false); }

}  // namespace pellucid
