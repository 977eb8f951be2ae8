// The rows of convolution and pooling (tests/op_table.h). The references are loops over windows.
#include <algorithm>
#include <limits>

#include "op_table.h"

namespace pellucid {

namespace {

// Element (n, c, h, w) of x, 0 outside of the image.
struct Images {
  std::vector<double> values;
  Shape shape;
  explicit Images(const Tensor& x) : values(x.to_vector()), shape(x.shape()) {}
  bool inside(int64_t h, int64_t w) const {
    return 0 <= h && h < shape[2] && 0 <= w && w < shape[3];
  }
  double operator()(int64_t n, int64_t c, int64_t h, int64_t w) const {
    if (!inside(h, w)) return 0;
    return values[static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + h) * shape[3] + w)];
  }
};

struct Place {
  int64_t h, w;
};
Place place(const Conv2dOptions& o, int64_t p, int64_t q, int64_t i, int64_t j) {
  return {p * o.stride.h - o.padding.h + i * o.dilation.h,
          q * o.stride.w - o.padding.w + j * o.dilation.w};
}

// How many windows fit, by trying one after another.
int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  int64_t count = 0;
  while (count * stride + (kernel - 1) * dilation < size + 2 * padding) ++count;
  return count;
}
Place windows_in(const Tensor& x, Size2d kernel, const Conv2dOptions& o) {
  return {windows(x.size(2), kernel.h, o.stride.h, o.padding.h, o.dilation.h),
          windows(x.size(3), kernel.w, o.stride.w, o.padding.w, o.dilation.w)};
}

// y[n, o, p, q] = value(n, o, p, q).
template <class Value>
Tensor filled(int64_t N, int64_t O, Place out, const Value& value) {
  std::vector<double> y;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < O; ++o)
      for (int64_t p = 0; p < out.h; ++p)
        for (int64_t q = 0; q < out.w; ++q) y.push_back(value(n, o, p, q));
  return from_vector(y, {N, O, out.h, out.w}, kFloat64);
}

Tensor conv2d_by_loops(L x, const Conv2dOptions& options) {
  const Images image(x[0]), w(x[1]);
  const std::vector<double> b =
      x.size() > 2 ? x[2].to_vector()
                   : std::vector<double>(static_cast<std::size_t>(w.shape[0]), 0.0);
  const Size2d kernel{w.shape[2], w.shape[3]};
  return filled(x[0].size(0), w.shape[0], windows_in(x[0], kernel, options),
                [&](int64_t n, int64_t o, int64_t p, int64_t q) {
                  double sum = b[static_cast<std::size_t>(o)];
                  for (int64_t c = 0; c < w.shape[1]; ++c)
                    for (int64_t i = 0; i < kernel.h; ++i)
                      for (int64_t j = 0; j < kernel.w; ++j) {
                        const Place at = place(options, p, q, i, j);
                        sum += w(o, c, i, j) * image(n, c, at.h, at.w);
                      }
                  return sum;
                });
}

// K products and the bias; a gradient by x sums kh kw products of the filters, the others one for
// each window. In any order that errs by at most one rounding a term; with the partial sums of gemm
// random numbers stay under 8, and under 16 where the engine adds up a batch.
TensorList conv2d_bound(const Call& call) {
  const Shape& w = call.x[1].shape();
  const double area = double(w[2] * w[3]), K = area * double(w[1]);
  if (!call.dy.defined()) return terms(std::min(K + 1, 8.0) + 1)(call);
  return terms(std::min(double(call.dy.numel()) + 1, 16.0) + area)(call);
}

OpRow conv2d_row(const std::string& name, const Conv2dOptions& options,
                 const std::vector<Sample>& samples) {
  return {
      .name = name,
      .op = [=](L x) { return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options); },
      .samples = samples,
      .y = conv2d_bound,
      .dx = conv2d_bound,
      .reference = [=](L x) { return conv2d_by_loops(x, options); },
      .layout_changes_bits = "the filters are a factor of a product, in whatever layout they have"};
}

// Row (c, i, j) and column (p, q) of the matrix of windows.
Tensor unfold2d_by_loops(const Tensor& x, Size2d kernel, const Conv2dOptions& options) {
  const Images image(x);
  const Place out = windows_in(x, kernel, options);
  const int64_t area = kernel.h * kernel.w;
  const Tensor y =
      filled(x.size(0), x.size(1) * area, out, [&](int64_t n, int64_t row, int64_t p, int64_t q) {
        const int64_t i = row % area / kernel.w, j = row % kernel.w;
        const Place at = place(options, p, q, i, j);
        return image(n, row / area, at.h, at.w);
      });
  return alias(y, {x.size(0), x.size(1) * area, out.h * out.w},
               row_major({x.size(0), x.size(1) * area, out.h * out.w}));
}

// x[n, c, h, w] is the sum of the columns' elements whose place is (h, w).
Tensor fold2d_by_loops(const Tensor& columns, Size2d image, Size2d kernel,
                       const Conv2dOptions& options) {
  const int64_t area = kernel.h * kernel.w, C = columns.size(1) / area;
  Tensor x = zeros({columns.size(0), C, image.h, image.w}, kFloat64);
  const Place out = windows_in(x, kernel, options);
  const std::vector<double> y = columns.to_vector();
  auto* to = x.data<double>();
  for (std::size_t at = 0; at < y.size(); ++at) {
    const auto k = static_cast<int64_t>(at);
    const int64_t q = k % out.w, p = k / out.w % out.h, row = k / (out.w * out.h) % (C * area);
    const int64_t n = k / (out.w * out.h * C * area);
    const Place here = place(options, p, q, row % area / kernel.w, row % kernel.w);
    if (0 <= here.h && here.h < image.h && 0 <= here.w && here.w < image.w)
      to[((n * C + row / area) * image.h + here.h) * image.w + here.w] += y[at];
  }
  return x;
}

OpRow unfold2d_row(const std::string& name, Size2d kernel, const Conv2dOptions& options) {
  return {.name = name,
          .op = [=](L x) { return unfold2d(x[0], kernel, options); },
          .samples = {{in({1, 1, 5, 5})},
                      {in({2, 3, 4, 7})},
                      {in({0, 2, 5, 6})},
                      {in({2, 0, 5, 5})},
                      {in({1, 2, 3, 17})},
                      {in({3, 1, 17, 5})},
                      {in({2, 3, 31, 33})},
                      {in({5, 7, 13, 65})}},
          .y = exact(),
          .dx = terms(double(kernel.h * kernel.w)),
          .reference = [=](L x) { return unfold2d_by_loops(x[0], kernel, options); }};
}

OpRow fold2d_row(const std::string& name, Size2d image, Size2d kernel,
                 const Conv2dOptions& options) {
  OpRow row{.name = name,
            .op = [=](L x) { return fold2d(x[0], image, kernel, options); },
            .y = terms(double(kernel.h * kernel.w)),
            .dx = exact(),
            .reference = [=](L x) { return fold2d_by_loops(x[0], image, kernel, options); }};
  const Place out = windows_in(zeros({1, 1, image.h, image.w}), kernel, options);
  for (const auto& [N, C] : {std::pair{1, 1}, {2, 1}, {1, 3}, {0, 2}, {2, 0}, {3, 2}, {9, 5}})
    row.samples.push_back({in({N, C * kernel.h * kernel.w, out.h * out.w})});
  return row;
}

// Numbers of x in [-0.2, 0.2) on top of whole ones, all different within a plane: no ties.
Tensor apart(const Tensor& x) {
  std::vector<double> whole;
  const int64_t plane = x.size(2) * x.size(3);
  for (int64_t i = 0; i < x.numel(); ++i) whole.push_back(double(i % plane * 7 % plane));
  return x + from_vector(whole, x.shape(), x.dtype());
}

Tensor pool_by_loops(const Tensor& x, Size2d kernel, const Conv2dOptions& options, bool max,
                     bool count_include_pad) {
  const Images image(x);
  return filled(x.size(0), x.size(1), windows_in(x, kernel, options),
                [&](int64_t n, int64_t c, int64_t p, int64_t q) {
                  double sum = 0, top = -std::numeric_limits<double>::infinity(), count = 0;
                  for (int64_t i = 0; i < kernel.h; ++i)
                    for (int64_t j = 0; j < kernel.w; ++j) {
                      const Place at = place(options, p, q, i, j);
                      if (count_include_pad || image.inside(at.h, at.w)) ++count;
                      sum += image(n, c, at.h, at.w);
                      if (image.inside(at.h, at.w)) top = std::max(top, image(n, c, at.h, at.w));
                    }
                  return max ? top : sum / count;
                });
}

const std::vector<Sample> kPooled = {{in({1, 1, 4, 5}, -0.2, 0.2)},  {in({2, 3, 5, 4}, -0.2, 0.2)},
                                     {in({0, 2, 4, 4}, -0.2, 0.2)},  {in({2, 0, 5, 5}, -0.2, 0.2)},
                                     {in({1, 2, 11, 5}, -0.2, 0.2)}, {in({3, 1, 4, 17}, -0.2, 0.2)},
                                     {in({2, 3, 31, 33}, -0.2, 0.2)}};

OpRow max_pool2d_row(const std::string& name, Size2d kernel, Size2d stride, Size2d padding) {
  return {.name = name,
          .op = [=](L x) { return max_pool2d(apart(x[0]), kernel, stride, padding); },
          .samples = kPooled,
          .y = relative(1),
          .dx = terms(1.01),  // an element's windows are added in double
          .reference =
              [=](L x) {
                return pool_by_loops(apart(x[0]), kernel, {stride, padding}, true, false);
              }};
}

// The sum in double, its rounding and the division's; dx adds up kh kw of them.
OpRow avg_pool2d_row(const std::string& name, Size2d kernel, Size2d stride, Size2d padding,
                     bool count_include_pad) {
  return {.name = name,
          .op = [=](L x) { return avg_pool2d(x[0], kernel, stride, padding, count_include_pad); },
          .samples = kPooled,
          .y = terms(2.01),
          .dx = terms(double(kernel.h * kernel.w) + 1),
          .reference =
              [=](L x) {
                return pool_by_loops(x[0], kernel, {stride, padding}, false, count_include_pad);
              }};
}

std::vector<ErrorSample> conv2d_errors() {
  const auto call = [](const Shape& x, const Shape& w, const Conv2dOptions& options) {
    return [=] { conv2d(ones(x), ones(w), {}, options); };
  };
  return {
      {call({2, 3, 5, 5}, {4, 2, 3, 3}, {}),
       "conv2d: wanted x (N, C, H, W) and w (O, C, kh, kw) of one C; got x (2, 3, 5, 5) and w (4, "
       "2, 3, 3)"},
      {call({3, 5, 5}, {4, 3, 3, 3}, {}),
       "conv2d: x must have shape (N, C, H, W); got (3, 5, 5); unsqueeze() adds what is missing"},
      {call({2, 3, 5, 5}, {4, 3, 3}, {}),
       "conv2d: wanted x (N, C, H, W) and w (O, C, kh, kw) of one C; got x (2, 3, 5, 5) and w (4, "
       "3, 3)"},
      {call({1, 1, 2, 5}, {1, 1, 5, 3}, {.padding = 1}),
       "conv2d: the kernel reaches over (5, 3) elements, more than the (4, 7) of x (1, 1, 2, 5) "
       "with its padding; take a smaller kernel or more padding"},
      {call({1, 1, 5, 5}, {1, 1, 3, 3}, {.stride = {1, 0}}),
       "conv2d: stride must be in [1, 536870912]; got (1, 0)"},
      {call({1, 1, 5, 5}, {1, 1, 3, 3}, {.padding = -1}),
       "conv2d: padding must be in [0, 536870912]; got (-1, -1)"},
      {call({1, 1, 5, 5}, {1, 1, 3, 3}, {.dilation = 0}),
       "conv2d: dilation must be in [1, 536870912]; got (0, 0)"},
      {call({1, 1, 5, 5}, {1, 1, 0, 3}, {}),
       "conv2d: the kernel must be in [1, 536870912]; got (0, 3)"},
      {[] {
         conv2d(ones({1, 1, 5, 5}), ones({4, 1, 3, 3}), ones({3}));
       },
       "conv2d: wanted b of shape (4), the first dimension of w (4, 1, 3, 3); got (3)"},
      {[] {
         conv2d(ones({1, 1, 5, 5}), ones({4, 1, 3, 3}), ones({4}, kFloat64));
       },
       "conv2d: one dtype wanted; got x float32, w float32, b float64; convert one of them"},
      {[] {
         conv2d(ones({1, 1, 5, 5}, kInt64), ones({4, 1, 3, 3}, kInt64), {});
       },
       "conv2d: wanted float32 or float64; got int64; use astype()"},
  };
}

std::vector<ErrorSample> errors_of_windows(const std::string& op,
                                           void (*call)(const Tensor&, Size2d, Size2d)) {
  return {{[=] {
             call(ones({1, 2, 3, 4}), 3, {0, 1});
           },
           op + ": stride must be in [1, 536870912]; got (0, 1)"},
          {[=] {
             call(ones({1, 2, 3, 4}), {4, 2}, 1);
           },
           op + ": the kernel reaches over (4, 2) elements, more than the (3, 4) of x (1, 2, 3, 4) "
                "with its padding; take a smaller kernel or more padding"},
          {[=] {
             call(ones({3, 4}), 2, 1);
           },
           op + ": x must have shape (N, C, H, W); got (3, 4); unsqueeze() adds what is missing"},
          {[=] {
             call(ones({1, 1, 3, 4}, kInt64), 2, 1);
           },
           op + ": wanted float32 or float64; got int64; use astype()"}};
}

std::vector<OpRow> conv2d_rows() {
  const auto sample = [](const Shape& x, const Shape& w, bool bias) {
    Sample all{in(x), in(w)};
    if (bias) all.push_back(in({w[0]}));
    return all;
  };
  OpRow row = conv2d_row(
      "conv2d", {},
      {sample({2, 2, 4, 5}, {3, 2, 3, 2}, true), sample({1, 1, 1, 1}, {1, 1, 1, 1}, true),
       sample({2, 3, 4, 5}, {2, 3, 1, 1}, true), sample({0, 2, 4, 4}, {3, 2, 2, 2}, true),
       sample({2, 0, 3, 3}, {2, 0, 2, 2}, true), sample({1, 2, 3, 3}, {0, 2, 2, 2}, true),
       sample({1, 1, 17, 3}, {2, 1, 3, 3}, true), sample({3, 2, 3, 2}, {1, 2, 3, 2}, true),
       sample({2, 3, 31, 33}, {17, 3, 5, 3}, true)});
  row.errors = conv2d_errors();
  const Conv2dOptions mixed{.stride = {2, 3}, .padding = {1, 2}, .dilation = {2, 1}};
  OpRow options = conv2d_row(
      "conv2d with stride, padding, dilation", mixed,
      {sample({2, 2, 5, 4}, {3, 2, 2, 3}, false), sample({1, 1, 1, 1}, {1, 1, 2, 2}, true),
       sample({1, 2, 7, 9}, {2, 2, 3, 3}, true), sample({0, 1, 5, 5}, {2, 1, 3, 3}, false),
       sample({1, 1, 3, 17}, {1, 1, 1, 4}, false), sample({3, 1, 6, 0}, {2, 1, 2, 3}, true),
       sample({2, 3, 33, 31}, {5, 3, 3, 3}, false)});
  OpRow apart = conv2d_row(
      "conv2d with stride beyond the kernel", {.stride = 3},
      {sample({2, 2, 5, 8}, {2, 2, 2, 1}, false), sample({1, 1, 4, 7}, {1, 1, 1, 1}, true),
       sample({1, 3, 2, 2}, {2, 3, 1, 2}, true)});
  options.errors = apart.errors = {{[=] {
                                      conv2d(ones({1, 1, 2, 1}), ones({1, 1, 4, 1}), {}, mixed);
                                    },
                                    "conv2d: the kernel reaches over (7, 1) elements, more than "
                                    "the (4, 5) of x (1, 1, 2, 1) with its padding; take a "
                                    "smaller kernel or more padding"}};
  return {row, options, apart};
}

std::vector<OpRow> fold_rows() {
  const Conv2dOptions mixed{.stride = {2, 3}, .padding = {1, 2}, .dilation = {2, 1}};
  OpRow unfold = unfold2d_row("unfold2d", {3, 2}, {}),
        unfold_mixed = unfold2d_row("unfold2d with stride, padding, dilation", {2, 4}, mixed);
  unfold.errors = unfold_mixed.errors = errors_of_windows(
      "unfold2d", [](const Tensor& x, Size2d k, Size2d s) { unfold2d(x, k, {.stride = s}); });
  OpRow fold = fold2d_row("fold2d", {5, 4}, {3, 2}, {}),
        fold_mixed = fold2d_row("fold2d with stride, padding, dilation", {5, 6}, {2, 4}, mixed);
  fold.errors = fold_mixed.errors = {
      {[] {
         fold2d(ones({1, 8, 9}), 4, {2, 3});
       },
       "fold2d: columns must have shape (N, C kh kw, OH OW); got (1, 8, 9), kernel (2, 3)"},
      {[] {
         fold2d(ones({1, 8, 8}), 4, 2);
       },
       "fold2d: an image of (4, 4) has (3, 3) windows, a column each; got columns (1, 8, 8)"},
      {[] {
         fold2d(ones({1, 8, 9}), 4, 2, {.stride = 0});
       },
       "fold2d: stride must be in [1, 536870912]; got (0, 0)"},
      {[] {
         fold2d(ones({1, 8, 9}), {4, -1}, 2);
       },
       "fold2d: the image must be in [0, 536870912]; got (4, -1)"},
      {[] {
         fold2d(ones({1, 4, 9}, kInt64), 4, 2);
       },
       "fold2d: wanted float32 or float64; got int64; use astype()"}};
  return {unfold, unfold_mixed, fold, fold_mixed};
}

std::vector<OpRow> pool_rows() {
  OpRow max = max_pool2d_row("max_pool2d", 2, 2, 0),
        max_padded = max_pool2d_row("max_pool2d with padding", {3, 4}, {2, 1}, {1, 2}),
        max_sparse = max_pool2d_row("max_pool2d with stride beyond the kernel", {1, 2}, 3, 0);
  max.errors = errors_of_windows("max_pool2d",
                                 [](const Tensor& x, Size2d k, Size2d s) { max_pool2d(x, k, s); });
  max_padded.errors = max_sparse.errors = {
      {[] {
         max_pool2d(ones({1, 1, 4, 4}), {3, 1}, 1, 1);
       },
       "max_pool2d: padding may be half of the kernel at most, else a window has no elements; got "
       "padding (1, 1), kernel (3, 1)"},
      {[] {
         max_pool2d(ones({1, 1, 4, 4}), {1, 3}, 1, 1);
       },
       "max_pool2d: padding may be half of the kernel at most, else a window has no elements; got "
       "padding (1, 1), kernel (1, 3)"},
      {[] {
         max_pool2d(ones({1, 1, 0, 4}), 2, 1, 1);
       },
       "max_pool2d: the largest of no elements is undefined; got x (1, 1, 0, 4)"}};
  OpRow avg = avg_pool2d_row("avg_pool2d", 2, 2, 0, true),
        avg_padded = avg_pool2d_row("avg_pool2d with padding", {3, 4}, {2, 1}, {1, 2}, true),
        avg_inside =
            avg_pool2d_row("avg_pool2d without the padding", {3, 4}, {2, 1}, {1, 2}, false);
  avg.errors = avg_padded.errors = avg_inside.errors = errors_of_windows(
      "avg_pool2d", [](const Tensor& x, Size2d k, Size2d s) { avg_pool2d(x, k, s); });
  // Without a stride, the windows side by side.
  max.op = [](L x) { return max_pool2d(apart(x[0]), 2); };
  avg.op = [](L x) { return avg_pool2d(x[0], 2); };
  max.no_dtypes = "its samples are spread by add";
  return {max, max_padded, max_sparse, avg, avg_padded, avg_inside};
}

}  // namespace

std::vector<OpRow> rows_conv() {
  std::vector<OpRow> all;
  for (auto rows : {conv2d_rows, fold_rows, pool_rows})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace pellucid
