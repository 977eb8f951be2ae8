// Losses: one kernel each way, and above each op its definition in plain ops.
#include "autograd/ops.h"
#include "kernels/cross_entropy.h"
#include "tensor/launch.h"

namespace pellucid {

namespace {

// The rows of logits (..., V) that count. Throws where a target is neither a class nor ignored.
std::vector<int64_t> rows_that_count(const Tensor& logits, const Tensor& targets,
                                     int64_t ignore_index) {
  CHECK_ARG(logits.dim() >= 1 && logits.size(-1) > 0,
            "cross_entropy: logits must have a last dimension of at least 1; got logits ",
            logits.shape());
  Shape rows;
  for (int d = 0; d + 1 < logits.dim(); ++d) rows.push_back(logits.size(d));
  CHECK_ARG(targets.shape() == rows,
            "cross_entropy: targets must have the shape of logits without its last dimension; got "
            "logits ",
            logits.shape(), ", targets ", targets.shape());
  CHECK_ARG(targets.dtype() == kInt64, "cross_entropy: targets must be int64; got ",
            name(targets.dtype()));
  const Tensor keep = packed(targets);
  const int64_t* target = static_cast<const int64_t*>(keep.data());
  std::vector<int64_t> counted;
  for (int64_t n = 0; n < keep.numel(); ++n) {
    if (target[n] == ignore_index) continue;
    CHECK_ARG(0 <= target[n] && target[n] < logits.size(-1), "cross_entropy: target of row ", n,
              " is ", target[n], "; wanted a class in [0, ", logits.size(-1),
              ") or ignore_index = ", ignore_index);
    counted.push_back(n);
  }
  return counted;
}

}  // namespace

Tensor plain::cross_entropy(const Tensor& logits, const Tensor& targets, int64_t ignore_index) {
  const std::vector<int64_t> counted = rows_that_count(logits, targets, ignore_index);
  const int64_t V = logits.size(-1), M = static_cast<int64_t>(counted.size());
  const std::vector<int64_t> target = targets.to_vector<int64_t>();
  std::vector<int64_t> picks;
  for (int64_t n : counted)
    picks.push_back(std::ssize(picks) * V + target[static_cast<std::size_t>(n)]);

  // What an ignored row holds, maybe NaN, must not be read: 0 times it would be NaN too. The
  // maximum only keeps exp in range: it needs no gradient.
  Tensor x = embedding(reshape(logits, {targets.numel(), V}), from_vector(counted, {M}));  // (M, V)
  Tensor top = amax(x.detach(), -1, true);  // (M, 1)
  Tensor lse = top + log(sum(exp(x - top), -1, true));                                     // (M, 1)
  Tensor picked = embedding(reshape(x, {M * V, 1}), from_vector(picks, {M}));              // (M, 1)
  return sum(lse - picked) / static_cast<double>(std::max<int64_t>(M, 1));                 // ()
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, int64_t ignore_index) {
  const int64_t count = static_cast<int64_t>(rows_that_count(logits, targets, ignore_index).size());
  const int64_t V = logits.size(-1), N = targets.numel();
  Tensor loss = empty_like(logits, {});                     // ()
  Tensor lse = empty_like(logits, {N, 2});                  // (N, 2)
  Tensor row_loss = empty({N}, kFloat64, logits.device());  // (N)
  LAUNCH(logits, cross_entropy_forward, loss, row_loss, lse, logits, targets, N, V, ignore_index,
         count);

  // backward: dlogits = (softmax(logits) - onehot(targets)) dy / count, 0 in the ignored rows.
  return record("cross_entropy", loss, {logits, targets},
                [x = SavedTensor(logits), t = SavedTensor(targets), lse, N, V, ignore_index,
                 count](const Tensor& dy) {
                  if (grad_enabled()) {
                    const auto of_logits = [targets = t(), ignore_index](const Tensor& fresh) {
                      return plain::cross_entropy(fresh, targets, ignore_index);
                    };
                    return TensorList{vjp(of_logits, dy, x())[0], Tensor()};
                  }
                  Tensor dx = empty_like(x());  // (..., V)
                  LAUNCH(dx, cross_entropy_backward, dx, dy, x(), t(), lse, N, V, ignore_index,
                         count);
                  return TensorList{dx, Tensor()};
                });
}

}  // namespace pellucid
