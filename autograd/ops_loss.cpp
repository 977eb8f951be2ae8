// Losses: compositions of ops, and cross_entropy, one kernel each way, with its definition in plain
// ops above it.
#include "autograd/ops.h"
#include "kernels/cross_entropy.h"
#include "tensor/launch.h"

namespace pellucid {

namespace {

// The rows of x (..., V) that count. Throws where a target is neither a class nor ignored.
std::vector<int64_t> rows_that_count(const char* op, const char* what, const Tensor& x,
                                     const Tensor& targets, int64_t ignore_index) {
  CHECK_ARG(x.dim() >= 1 && x.size(-1) > 0, op, ": ", what,
            " must have a last dimension of at least 1; got ", what, " ", x.shape());
  check_floating(op, x);
  Shape rows;
  for (int d = 0; d + 1 < x.dim(); ++d) rows.push_back(x.size(d));
  CHECK_ARG(targets.shape() == rows, op, ": targets must have the shape of ", what,
            " without its last dimension; got ", what, " ", x.shape(), ", targets ",
            targets.shape());
  CHECK_ARG(targets.dtype() == kInt64, op, ": targets must be int64; got ", name(targets.dtype()));
  const Tensor keep = packed(targets);
  const int64_t* target = static_cast<const int64_t*>(keep.data());
  std::vector<int64_t> counted;
  for (int64_t n = 0; n < keep.numel(); ++n) {
    if (target[n] == ignore_index) continue;
    CHECK_ARG(0 <= target[n] && target[n] < x.size(-1), op, ": target of row ", n, " is ",
              target[n], "; wanted a class in [0, ", x.size(-1),
              ") or ignore_index = ", ignore_index);
    counted.push_back(n);
  }
  return counted;
}

Tensor reduced(const Tensor& each, Reduction reduction) {
  if (reduction == Reduction::kNone) return each;
  return reduction == Reduction::kMean ? mean(each) : sum(each);
}

// The same for rows of which only some count: each (M, 1), counted (M), -> () or rows. The mean of
// none is 0.
Tensor reduced_rows(const Tensor& each, const Tensor& counted, const Shape& rows,
                    Reduction reduction) {
  if (reduction == Reduction::kNone)
    return reshape(scatter_add_rows(each, counted, rows.numel()), rows);
  const auto count = static_cast<double>(std::max<int64_t>(each.size(0), 1));
  return reduction == Reduction::kMean ? sum(each) / count : sum(each);
}

// The rows of x (..., V) that count, and their targets.
struct Counted {
  Tensor rows, x, targets;  // (M), (M, V), (M, 1)
  Counted(const Tensor& all, const Tensor& all_targets, const std::vector<int64_t>& counted)
      : rows(from_vector(counted, {std::ssize(counted)})),
        x(embedding(reshape(all, {all_targets.numel(), all.size(-1)}), rows)),
        targets(embedding(reshape(all_targets, {all_targets.numel(), 1}), rows)) {}
};

void check_pair(const char* op, const char* a_name, const Tensor& a, const char* b_name,
                const Tensor& b) {
  CHECK_ARG(a.shape() == b.shape() && a.dtype() == b.dtype() && is_floating(a.dtype()), op,
            ": wanted two floating tensors of one shape and dtype; got ", a_name, " ",
            name(a.dtype()), " ", a.shape(), ", ", b_name, " ", name(b.dtype()), " ", b.shape(),
            "; reshape() or expand() one of them if that is meant");
}

}  // namespace

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, Reduction reduction,
                int64_t ignore_index) {
  const Counted counted(log_probs, targets,
                        rows_that_count("nll_loss", "log_probs", log_probs, targets, ignore_index));
  const Tensor each = -gather(counted.x, -1, counted.targets);  // (M, 1)
  return reduced_rows(each, counted.rows, targets.shape(), reduction);
}

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  check_pair("mse_loss", "x", x, "y", y);
  const Tensor d = x - y;
  return reduced(d * d, reduction);
}

// max(x, 0) - x t + log(1 + e^-|x|) takes no exponential of a large number; its gradients are
// sigmoid(x) - t and -x, also at 0, where max and |x| have a kink.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction) {
  check_pair("binary_cross_entropy_with_logits", "logits", logits, "targets", targets);
  const Tensor x = logits.detach(), t = targets.detach();
  const Tensor each = (relu(x) - x * t) + log1p(exp(-abs(x)));  // (...)
  record("binary_cross_entropy_with_logits", each, {logits, targets},
         [x = SavedTensor(logits), t = SavedTensor(targets)](const Tensor& dy) {
           return TensorList{needs_input_grad(0) ? dy * (sigmoid(x()) - t()) : Tensor(),
                             needs_input_grad(1) ? -(dy * x()) : Tensor()};
         });
  return reduced(each, reduction);
}

// Where q is 0 the product of 0 and log 0 or log_p = -inf is not taken, forward or backward.
Tensor kl_div(const Tensor& log_p, const Tensor& q, Reduction reduction) {
  check_pair("kl_div", "log_p", log_p, "q", q);
  const Tensor none = equal(q, 0), positive = masked_fill(q, none, 1);
  return reduced(masked_fill(positive * (log(positive) - log_p), none, 0), reduction);
}

// ---- cross_entropy.

Tensor plain::cross_entropy(const Tensor& logits, const Tensor& targets,
                            const CrossEntropyOptions& options) {
  // What an ignored row holds, maybe NaN, must not be read: 0 times it would be NaN too.
  const Counted counted(
      logits, targets,
      rows_that_count("cross_entropy", "logits", logits, targets, options.ignore_index));
  const Tensor x = counted.x;  // (M, V)

  const Tensor lse = logsumexp(x, -1, true);           // (M, 1)
  Tensor each = lse - gather(x, -1, counted.targets);  // (M, 1)
  const double e = options.label_smoothing;
  if (e > 0) each = (1 - e) * each + e * (lse - mean(x, -1, true));
  return reduced_rows(each, counted.rows, targets.shape(), options.reduction);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const double e = options.label_smoothing;
  CHECK_ARG(e >= 0 && e <= 1, "cross_entropy: label_smoothing must be in [0, 1]; got ", e);
  const int64_t ignore = options.ignore_index;
  const auto count = static_cast<double>(
      rows_that_count("cross_entropy", "logits", logits, targets, ignore).size());
  const bool rowwise = options.reduction == Reduction::kNone;
  const bool mean = options.reduction == Reduction::kMean;
  const double divisor = rowwise ? 0 : mean ? std::max(count, 1.0) : 1;
  const int64_t V = logits.size(-1), N = targets.numel();
  Tensor loss = empty_like(logits, rowwise ? targets.shape() : Shape{});  // () or (...)
  Tensor lse = empty_like(logits, {N, 2});                                // (N, 2)
  Tensor row_loss = empty({N}, kFloat64, logits.device());                // (N)
  LAUNCH(logits, cross_entropy_forward, loss, row_loss, lse, logits, targets, N, V, ignore, e,
         divisor);

  // backward: dlogits = (softmax(logits) - the targets' distribution) dy / divisor, 0 in the
  // ignored rows. The kernel writes where targets say: they are looked at again, as a pointer from
  // data() may have changed them unseen.
  return record("cross_entropy", loss, {logits, targets},
                [x = SavedTensor(logits), t = SavedTensor(targets), lse, N, V, options,
                 divisor](const Tensor& dy) {
                  if (grad_enabled()) {
                    const auto of_logits = [targets = t(), options](const Tensor& fresh) {
                      return plain::cross_entropy(fresh, targets, options);
                    };
                    return TensorList{vjp(of_logits, dy, x())[0], Tensor()};
                  }
                  rows_that_count("cross_entropy", "logits", x(), t(), options.ignore_index);
                  Tensor dx = empty_like(x());  // (..., V)
                  LAUNCH(dx, cross_entropy_backward, dx, dy, x(), t(), lse, N, V,
                         options.ignore_index, options.label_smoothing, divisor);
                  return TensorList{dx, Tensor()};
                });
}

}  // namespace pellucid
