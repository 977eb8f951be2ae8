// The rows of the losses (tests/op_table.h). The references are plain::cross_entropy and loops.
#include <algorithm>
#include <cmath>

#include "op_table.h"

namespace pellucid {

namespace {

// A sum of n <= 2048 terms errs by at most this many u sum |terms| (tests/kernels/row_test.h).
double sum_bound(const Tensor& x) { return double((x.size(-1) + 63) / 64) + 7; }
Tensor f64(const Shape& shape, double value = 1) { return full(shape, value, kFloat64); }
Tensor int_ones(const Shape& shape) { return full(shape, 1, kInt64); }

const std::string kReductions[] = {"", " summed", " of each"};
constexpr Reduction kAll[] = {Reduction::kMean, Reduction::kSum, Reduction::kNone};

// each, reduced in double by a loop; count is the mean's divisor.
Tensor reduced_by_loop(const std::vector<double>& each, const Shape& shape, Reduction reduction,
                       double count) {
  if (reduction == Reduction::kNone) return from_vector(each, shape, kFloat64);
  double sum = 0;
  for (double value : each) sum += value;
  return f64({}, reduction == Reduction::kMean ? sum / count : sum);
}

// The upstream gradient of each element: dy, or its part of a mean.
Tensor upstream(const Call& call, const Shape& shape, Reduction reduction, double count) {
  const Tensor dy = magnitude(call.dy);
  return expand(reduction == Reduction::kMean ? dy / count : dy, shape);
}

// ---- Rows with targets.

// Row n has the target 5 n + 2 mod V, or -100 where n mod 3 is 1.
struct Targets {
  std::vector<double> values, counts, onehot;
  Shape rows;
  double count = 0;  // of rows that count, at least 1
  Targets(const Tensor& logits, bool ignore) {
    const int64_t V = logits.size(-1);
    for (int d = 0; d + 1 < logits.dim(); ++d) rows.push_back(logits.size(d));
    for (int64_t n = 0; n < logits.numel() / V; ++n) {
      values.push_back(ignore && n % 3 == 1 ? -100.0 : double((5 * n + 2) % V));
      counts.push_back(values.back() >= 0), count += counts.back();
      for (int64_t v = 0; v < V; ++v) onehot.push_back(double(v) == values.back());
    }
    count = std::max(count, 1.0);
  }
  Tensor tensor() const { return from_vector(values, rows, kInt64); }
  Tensor counted() const { return from_vector(counts, rows, kFloat64); }
};

// log S errs by sum_v p_v |x_v - m| + 2 + c_sum, the smoothing's sum of m - x_v by c_sum + 1 of
// itself; the rest is in double until the last rounding.
TensorList cross_entropy_gauge(const Call& call, const CrossEntropyOptions& options, bool ignore) {
  const Tensor x = call.x[0].detach(), p = softmax(x), gap = amax(x, -1, true) - x;
  const Targets targets(x, ignore);
  const double count = options.reduction == Reduction::kMean ? targets.count : 1;
  const double e = options.label_smoothing;
  const Tensor log_sum = sum(p * gap, -1, true) + (2 + sum_bound(x));
  if (!call.dy.defined()) {
    const Tensor gaps = e * (sum_bound(x) + 1) * mean(gap, -1);
    const Tensor each = targets.counted() * (squeeze(log_sum, -1) + 1.0 + gaps);
    const bool rowwise = options.reduction == Reduction::kNone;
    return {(rowwise ? each : sum(each) / count) + 2.0 * magnitude(call.y)};
  }
  const Tensor is_target = from_vector(targets.onehot, x.shape(), kFloat64);
  const Tensor terms =
      p * (log_sum - 2.0 * log(p) + 8.0) + 2.0 * (p + is_target) + 3 * e / double(x.size(-1));
  const Tensor dy = upstream(call, targets.rows, options.reduction, count);
  return {unsqueeze(dy * targets.counted(), -1) * terms};
}

OpRow cross_entropy_row(const std::string& name, const CrossEntropyOptions& options, bool ignore) {
  const auto gauge = [=](const Call& call) { return cross_entropy_gauge(call, options, ignore); };
  return {
      .name = name,
      .op = [=](L x) { return cross_entropy(x[0], Targets(x[0], ignore).tensor(), options); },
      .samples = {{in({4, 5})},
                  {in({7})},
                  {in({2, 3, 4}, -3, 3)},
                  {in({5, 1})},
                  {in({0, 3})},
                  {in({3, 17}, -5, 5)},
                  {in({33, 96}, -4, 4)},
                  {in({65, 129}, 100, 108)}},
      .y = gauge,
      .dx = gauge,
      .reference =
          [=](L x) { return plain::cross_entropy(x[0], Targets(x[0], ignore).tensor(), options); }};
}

std::vector<ErrorSample> errors_of_targets(
    const std::string& op, const std::string& what,
    const std::function<void(const Tensor&, const Tensor&, int64_t)>& call) {
  const auto with_target = [=](double target) {
    return [=] { call(f64({2, 6}), from_vector({1, target}, {2}, kInt64), -1); };
  };
  const std::string range = "; wanted a class in [0, 6) or ignore_index = -1";
  return {
      {with_target(6), op + ": target of row 1 is 6" + range},
      {with_target(-4), op + ": target of row 1 is -4" + range},
      {with_target(-1481), op + ": target of row 1 is -1481" + range},
      {[=] {
         call(f64({2, 6}), from_vector({7, 7}, {2}, kInt64), 8);
       },
       op + ": target of row 0 is 7; wanted a class in [0, 6) or ignore_index = 8"},
      {[=] {
         call(f64({2, 6}), int_ones({3}), -1);
       },
       op + ": targets must have the shape of " + what + " without its last dimension; got " +
           what + " (2, 6), targets (3)"},
      {[=] {
         call(f64({2, 6}), f64({2}), -1);
       },
       op + ": targets must be int64; got float64"},
      {[=] {
         call(int_ones({2, 6}), int_ones({2}), -1);
       },
       op + ": wanted float32 or float64; got int64; use astype()"},
      {[=] {
         call(f64({2, 0}), int_ones({2}), -1);
       },
       op + ": " + what + " must have a last dimension of at least 1; got " + what + " (2, 0)"}};
}

std::vector<OpRow> cross_entropy_rows() {
  std::vector<OpRow> rows;
  std::vector<ErrorSample> errors = errors_of_targets(
      "cross_entropy", "logits", [](const Tensor& x, const Tensor& t, int64_t ignore) {
        cross_entropy(x, t, {.ignore_index = ignore});
      });
  for (double smoothing : {-0.1, 1.5, double(NAN)}) {
    std::ostringstream number;
    number << smoothing;
    errors.push_back({[=] {
                        cross_entropy(f64({2, 6}), int_ones({2}), {.label_smoothing = smoothing});
                      },
                      "cross_entropy: label_smoothing must be in [0, 1]; got " + number.str()});
  }
  const auto add = [&](const std::string& name, const CrossEntropyOptions& options, bool ignore) {
    rows.push_back(cross_entropy_row(name, options, ignore));
    rows.back().errors = errors;
  };
  add("cross_entropy", {}, false);
  add("cross_entropy ignoring rows", {}, true);
  add("cross_entropy with smoothed labels", {.label_smoothing = 0.1}, true);
  add("cross_entropy with even labels", {.label_smoothing = 1}, false);
  add("cross_entropy summed", {.reduction = Reduction::kSum}, true);
  add("cross_entropy of each", {.reduction = Reduction::kNone}, false);
  rows.back().lanes = Lanes::kRows;
  rows.back().lane_sample = [](int64_t n) { return Sample{in({3, n}, -3, 3)}; };
  add("cross_entropy of each with smoothed labels",
      {.label_smoothing = 0.3, .reduction = Reduction::kNone}, true);
  return rows;
}

// Copies; then a sum in double, its rounding and the division's.
std::vector<OpRow> nll_loss_rows() {
  std::vector<OpRow> rows;
  for (const Reduction reduction : kAll) {
    const auto loss = [=](L x) { return nll_loss(x[0], Targets(x[0], true).tensor(), reduction); };
    const auto by_loop = [=](L x) {
      const Targets targets(x[0], true);
      const std::vector<double> values = x[0].to_vector();
      std::vector<double> each;
      for (std::size_t n = 0; n < targets.values.size(); ++n) {
        const std::size_t at =
            n * std::size_t(x[0].size(-1)) + std::size_t(std::max(targets.values[n], 0.0));
        each.push_back(targets.counts[n] > 0 ? -values[at] : 0);
      }
      return reduced_by_loop(each, targets.rows, reduction, targets.count);
    };
    rows.push_back(
        {.name = "nll_loss" + kReductions[int(reduction)],
         .op = loss,
         .samples = {{in({4, 5})},
                     {in({7})},
                     {in({2, 3, 4}, -3, 0)},
                     {in({5, 1})},
                     {in({0, 3})},
                     {in({3, 17}, -5, 0)},
                     {in({33, 96}, -4, 0)}},
         .y = terms(2.01),
         .dx = terms(1.01),
         .reference = by_loop,
         .errors = errors_of_targets("nll_loss", "log_probs",
                                     [=](const Tensor& x, const Tensor& t, int64_t ignore) {
                                       nll_loss(x, t, reduction, ignore);
                                     })});
  }
  return rows;
}

// ---- Pairs of one shape.

using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

std::vector<ErrorSample> errors_of_pairs(Loss loss, const std::string& op, const std::string& a,
                                         const std::string& b) {
  const auto message = [=](const std::string& first, const std::string& second) {
    return op + ": wanted two floating tensors of one shape and dtype; got " + a + " " + first +
           ", " + b + " " + second + "; reshape() or expand() one of them if that is meant";
  };
  return {{[=] {
             loss(f64({3}), f64({3, 1}), Reduction::kMean);
           },
           message("float64 (3)", "float64 (3, 1)")},
          {[=] { loss(f64({3}), full({3}, 1), Reduction::kMean); },
           message("float64 (3)", "float32 (3)")},
          {[=] { loss(int_ones({3}), int_ones({3}), Reduction::kSum); },
           message("int64 (3)", "int64 (3)")}};
}

// Rows for each reduction of `loss`; value is the loss of two numbers, error and slopes the bounds
// in u of it and of its derivatives. A sum is rounded once more, a mean twice, an upstream gradient
// once, and it is multiplied by the slope: three roundings more for a and b.
struct Bounds {
  Tensor y, da, db;
};
std::vector<OpRow> pair_rows(const std::string& name, Loss loss,
                             const std::function<double(double, double)>& value,
                             const std::function<Bounds(const Tensor&, const Tensor&)>& bounds,
                             const Input& a, const Input& b,
                             const std::vector<ErrorSample>& errors) {
  std::vector<OpRow> rows;
  for (const Reduction reduction : kAll) {
    const auto gauge = [=](const Call& call) {
      const NoGradGuard no_grad;
      const Bounds bound = bounds(call.x[0].detach(), call.x[1].detach());
      const double n = std::max(double(call.x[0].numel()), 1.0);
      if (!call.dy.defined()) {
        const Tensor y = reduction == Reduction::kMean  ? sum(bound.y) / n
                         : reduction == Reduction::kSum ? sum(bound.y)
                                                        : bound.y;
        return TensorList{y + 2.01 * magnitude(call.y)};
      }
      const Tensor dy = upstream(call, call.x[0].shape(), reduction, n);
      return TensorList{dy * bound.da + 3.01 * magnitude(call.result[0]),
                        dy * bound.db + 3.01 * magnitude(call.result[1])};
    };
    const auto by_loop = [=](L x) {
      const std::vector<double> p = x[0].to_vector(), q = x[1].to_vector();
      std::vector<double> each;
      for (std::size_t i = 0; i < p.size(); ++i) each.push_back(value(p[i], q[i]));
      return reduced_by_loop(each, x[0].shape(), reduction, double(each.size()));
    };
    OpRow row{.name = name + kReductions[int(reduction)],
              .op = [=](L x) { return loss(x[0], x[1], reduction); },
              .y = gauge,
              .dx = gauge,
              .reference = by_loop,
              .errors = errors,
              .lanes = reduction == Reduction::kNone ? Lanes::kEach : Lanes::kNone};
    for (const Shape& shape :
         {Shape{}, {1}, {5}, {0, 3}, {3, 4}, {2, 3, 4}, {17, 1}, {33}, {31, 65}})
      if (shape.numel() > 0 || reduction != Reduction::kMean)  // the mean of none is NaN
        row.samples.push_back({in(shape, a.low, a.high), in(shape, b.low, b.high)});
    rows.push_back(row);
  }
  return rows;
}

// The difference is rounded, the square too, and the derivative's two equal terms.
std::vector<OpRow> mse_loss_rows() {
  return pair_rows(
      "mse_loss", mse_loss, [](double x, double y) { return (x - y) * (x - y); },
      [](const Tensor& x, const Tensor& y) {
        const Tensor d = magnitude(x - y);
        return Bounds{3.0 * d * d, 2.0 * d, 2.0 * d};
      },
      in({}, -2, 2), in({}, -2, 2), errors_of_pairs(mse_loss, "mse_loss", "x", "y"));
}

// x t, its difference from max(x, 0), and the sum with log1p, which errs by 2 for exp and 2 of its
// own; sigmoid errs by 5. The kinks of max and |x| at 0 cancel: the loss is smooth there.
std::vector<OpRow> binary_cross_entropy_rows() {
  return pair_rows(
      "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits,
      [](double x, double t) {
        return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
      },
      [](const Tensor& x, const Tensor& t) {
        const Tensor size = magnitude(x), s = 1.0 / (1.0 + exp(-x));
        return Bounds{3.0 * size * magnitude(t) + 2.0 * size + 6.0 * log(1.0 + exp(-size)),
                      5.0 * s + (s + magnitude(t)), zeros_like(x)};
      },
      in({}, -4, 4), in({}, 0, 1),
      errors_of_pairs(binary_cross_entropy_with_logits, "binary_cross_entropy_with_logits",
                      "logits", "targets"));
}

// log q errs by 2, its difference from log_p by 1, their product with q by 1; by q the derivative
// has one term q / q more, of 3 roundings, and their sum.
std::vector<OpRow> kl_div_rows() {
  return pair_rows(
      "kl_div", kl_div, [](double log_p, double q) { return q * (std::log(q) - log_p); },
      [](const Tensor& log_p, const Tensor& q) {
        const Tensor lq = magnitude(log(q)), gap = lq + magnitude(log_p);
        return Bounds{q * (2.0 * lq + 2.0 * gap), zeros_like(q), 2.0 * lq + 4.0 * gap + 6.0};
      },
      in({}, -3, 0), in({}, 0.2, 0.95), errors_of_pairs(kl_div, "kl_div", "log_p", "q"));
}

}  // namespace

std::vector<OpRow> rows_loss() {
  std::vector<OpRow> all;
  for (auto rows :
       {cross_entropy_rows, nll_loss_rows, mse_loss_rows, binary_cross_entropy_rows, kl_div_rows})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace pellucid
