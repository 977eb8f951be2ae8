// Known faults of the losses: targets that are no class, at every place, and batches of which
// nothing counts, for each loss of classes; logits and log-probabilities without bound.
#include <functional>

#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

// Every loss of rows of classes: with each reduction, cross_entropy with labels smoothed or not.
struct ClassLoss {
  std::string op;                                                   // as its errors name it
  std::string name;                                                 // with the choices
  std::function<Tensor(const Tensor&, const Tensor&, int64_t)> of;  // (rows, targets, ignore_index)
  bool rowwise;
};
std::vector<ClassLoss> class_losses() {
  std::vector<ClassLoss> losses;
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    const bool rowwise = reduction == Reduction::kNone;
    const std::string kind = reduction == Reduction::kMean ? "mean" : rowwise ? "none" : "sum";
    for (const double smoothing : {0.0, 0.1, 1.0})
      losses.push_back({"cross_entropy",
                        "cross_entropy, " + kind + ", " + std::to_string(smoothing),
                        [=](const Tensor& x, const Tensor& targets, int64_t ignore) {
                          return cross_entropy(x, targets, {ignore, smoothing, reduction});
                        },
                        rowwise});
    losses.push_back({"nll_loss", "nll_loss, " + kind,
                      [=](const Tensor& x, const Tensor& targets, int64_t ignore) {
                        return nll_loss(x, targets, reduction, ignore);
                      },
                      rowwise});
  }
  return losses;
}

bool all_finite(const Tensor& x) {
  for (const double v : x.to_vector())
    if (!std::isfinite(v)) return false;
  return true;
}

}  // namespace

TEST_CASE(
    "a target that is no class is refused at every place, with index, value and range "
    "(pytorch/pytorch#12670, pytorch/pytorch#66872, pytorch/pytorch#39769)") {
  for (const ClassLoss& loss : class_losses())
    for (const int64_t V : {1, 5, 6, 33})
      for (const int64_t N : {1, 2, 17})
        for (const int64_t ignore : {int64_t{-100}, int64_t{-1}, int64_t{0}, V + 3, INT64_MIN}) {
          const Tensor x = normal({N, V}, 1).set_requires_grad(true);
          for (int64_t at = 0; at < N; ++at)
            for (const int64_t bad : {int64_t{-4}, int64_t{-1481}, int64_t{-1}, V, V + 1,
                                      int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
              if (bad == ignore) continue;
              Ids targets(std::size_t(N), V - 1);
              targets[std::size_t(at)] = bad;
              const std::string error = error_of([&] { loss.of(x, ids_of(targets), ignore); });
              const bool good = error.rfind(loss.op + ": ", 0) == 0 &&
                                error.find(" " + std::to_string(at) + " ") != std::string::npos &&
                                error.find(std::to_string(bad)) != std::string::npos &&
                                error.find("[0, " + std::to_string(V) + ")") != std::string::npos;
              if (!good) FAIL_CHECK(loss.name, ", ", V, " classes, row ", at, ": ", error);
            }
        }
}

TEST_CASE(
    "nothing that counts: loss 0 and zero gradients, for every size and ignore_index "
    "(pytorch/pytorch#116349, pytorch/pytorch#70348, pytorch/pytorch#75181)") {
  for (const ClassLoss& loss : class_losses())
    for (const DType dtype : {kFloat32, kFloat64})
      for (const int64_t V : {1, 3, 33})
        for (const Shape& rows : {Shape{}, Shape{1}, Shape{31}, Shape{2, 3}, Shape{0}, Shape{2, 0}})
          for (const int64_t ignore : {-100, -1, 0, 1 << 30}) {
            Shape shape = rows;
            shape.push_back(V);
            const Tensor targets = full(rows, double(ignore), kInt64);
            // Whatever the logits hold: they are not read.
            for (const double value : {1.0, kNaN, kInf, -kInf}) {
              INFO(loss.name, " of ", shape, " filled with ", value);
              const Tensor x = full(shape, value, dtype).set_requires_grad(true);
              const Tensor y = loss.of(x, targets, ignore);
              CHECK(same_bits(y, zeros(loss.rowwise ? rows : Shape{}, dtype)));
              for (const double g : grad(sum(y), {x})[0].to_vector()) CHECK(g == 0);
            }
          }
}

TEST_CASE(
    "ignored rows count neither in the sum nor in its divisor, wherever they stand "
    "(pytorch/pytorch#70348)") {
  for (const ClassLoss& loss : class_losses())
    for (int64_t N : {2, 5, 33})
      for (int64_t ignored = 0; ignored < N; ++ignored) {
        INFO(loss.name, ", row ", ignored, " of ", N);
        // The ignored row last, first, or between: the loss is that of the others alone.
        const Tensor all = log_softmax(normal({N, 7}, 3));
        Ids targets, kept, classes;
        for (int64_t n = 0; n < N; ++n) {
          targets.push_back(n == ignored ? -100 : n % 7);
          if (n != ignored) kept.push_back(n), classes.push_back(n % 7);
        }
        const Tensor x = all.detach().set_requires_grad(true);
        const Tensor y = embedding(all, ids_of(kept)).detach().set_requires_grad(true);
        const Tensor a = loss.of(x, ids_of(targets), -100), b = loss.of(y, ids_of(classes), -100);
        if (loss.rowwise) {
          CHECK(same_bits(index_select(a, 0, ids_of(kept)), b));
          CHECK(same_bits(a.at({ignored}), 0));
        } else {  // two sums of at most 33 positive terms, each rounded once
          CHECK(std::abs(a.item() - b.item()) <= 66 * 0x1p-53 * b.item());
        }
        const Tensor dx = grad(sum(a), {x})[0], dy = grad(sum(b), {y})[0];
        CHECK(same_bits(embedding(dx, ids_of(kept)), dy));
        CHECK(same_bits(slice(dx, 0, ignored, ignored + 1), zeros({1, 7}, kFloat64)));
      }
}

TEST_CASE(
    "backward does not follow targets that changed after forward had checked them "
    "(pytorch/pytorch#194802)") {
  for (const ClassLoss& loss : class_losses())
    for (const int64_t V : {1, 5})
      for (const double bad : {1.0 * double(V), 1e9, -1.0, -1e9})
        for (const bool create_graph : {false, true}) {
          INFO(loss.name, ", ", V, " classes, target ", bad);
          const Tensor x = normal({3, V}, 1).set_requires_grad(true);
          const Tensor targets = zeros({3}, kInt64);
          const auto gradient = [&](const Tensor& y) {
            return grad(sum(y), {x}, {}, {.create_graph = create_graph})[0].detach();
          };
          const Tensor wanted = gradient(loss.of(x, targets, -100));
          const Tensor y = loss.of(x, targets, -100);
          copy_(slice(targets, 0, 1, 2), full({1}, bad, kInt64));
          if (loss.op == "nll_loss")  // keeps targets of its own
            CHECK(same_bits(gradient(y), wanted));
          else
            CHECK(error_of([&] {
                    gradient(y);
                  }).rfind("cross_entropy: needs for its backward a tensor of shape (3)", 0) == 0);
        }
}

// The log of a number that was rounded to 0 or 1 is the fault behind these reports.
TEST_CASE_TEMPLATE("binary_cross_entropy_with_logits is finite in every lane, for every logit", T,
                   float, double) {
  const DType dtype = kDTypeOf<T>;
  const double largest = double(std::numeric_limits<T>::max());
  const double tiny = double(std::numeric_limits<T>::denorm_min());
  const double unit = double(std::numeric_limits<T>::epsilon());
  for (const double size : {0.0, tiny, 17.0, 37.0, 88.5, 104.0, 709.5, 746.0, 1e4, 1e30, largest})
    for (const double sign : {1.0, -1.0})
      for (const double t : {0.0, 0.5, 1.0})
        for (const int64_t n : {1, 3, 17, 33})
          for (int64_t at = 0; at < n; ++at) {
            INFO("x ", sign * size, ", t ", t, ", place ", at, " of ", n);
            Values logits(std::size_t(n), 0.25);
            logits[std::size_t(at)] = sign * size;
            const Tensor x = from_vector(logits, {n}, dtype).set_requires_grad(true);
            const Tensor target = full({n}, t, dtype).set_requires_grad(true);
            const auto loss = [&](Reduction reduction) {
              return binary_cross_entropy_with_logits(x, target, reduction);
            };
            // log(1 + e^-|x|) + max(x, 0) - x t. The last difference is exact, as t is 0, 1/2 or 1;
            // the exponential, the logarithm and the sum round to within a unit or so each.
            const double a = x.at({at}), difference = std::max(a, 0.0) - a * t;
            const double wanted = difference + std::log1p(std::exp(-std::abs(a)));
            const Tensor each = loss(Reduction::kNone);
            CHECK(std::abs(each.at({at}) - wanted) <= 4 * unit * wanted + 2 * tiny);
            CHECK((std::isfinite(loss(Reduction::kMean).item()) && all_finite(each)));
            const TensorList dx = grad(sum(each), {x, target}, {}, {.create_graph = true});
            CHECK((all_finite(dx[0]) && all_finite(dx[1])));
            CHECK(std::abs(dx[0].at({at})) <= 1);
            CHECK(all_finite(grad(sum(dx[0]), {x})[0]));
          }
}

TEST_CASE_TEMPLATE("kl_div where q is 0: no term and no gradient, whatever log_p", T, float,
                   double) {
  const DType dtype = kDTypeOf<T>;
  const double largest = double(std::numeric_limits<T>::max());
  for (const double log_p : {-kInf, -largest, -1e30, -104.0, -1.0, 0.0})
    for (const int64_t n : {1, 3, 17, 33})
      for (int64_t at = 0; at < n; ++at) {
        INFO("log_p ", log_p, ", place ", at, " of ", n);
        // q is 1 at one place, where log_p is -2, and 0 elsewhere: the sum is 2, exactly.
        Values p(std::size_t(n), log_p), one(std::size_t(n), 0.0);
        p[std::size_t(at)] = -2, one[std::size_t(at)] = 1;
        const Tensor x = from_vector(p, {n}, dtype).set_requires_grad(true);
        const Tensor q = from_vector(one, {n}, dtype).set_requires_grad(true);
        Values each(std::size_t(n), 0.0), dx(std::size_t(n), -0.0), dq(std::size_t(n), 0.0);
        each[std::size_t(at)] = 2, dx[std::size_t(at)] = -1, dq[std::size_t(at)] = 3;
        CHECK(kl_div(x, q, Reduction::kNone).to_vector() == each);
        CHECK(kl_div(x, q, Reduction::kSum).item() == 2);
        CHECK(kl_div(x, q).item() == double(T(2) / T(n)));
        const TensorList G =
            grad(kl_div(x, q, Reduction::kSum), {x, q}, {}, {.create_graph = true});
        CHECK(G[0].to_vector() == dx);
        CHECK(G[1].to_vector() == dq);
        for (const Tensor& second : grad(sum(G[1]), {x, q})) CHECK(all_finite(second));
      }
}
