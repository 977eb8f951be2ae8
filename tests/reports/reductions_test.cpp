// Known faults of reductions, tested as kinds: every op of the family, every axis, nothing to
// reduce, NaN and ties at every place.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

const int64_t kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 130};

struct Reducer {
  std::string name;
  Tensor (*op)(const Tensor& x, const Dims& dims, bool keepdim);
  double of_nothing;  // NaN too; kRefused: an error
  bool differentiable = true;
};
constexpr double kRefused = 1e300;
const Reducer kReductions[] = {
    {"sum", sum, 0},
    {"mean", mean, kNaN},
    {"prod", prod, 1},
    {"var", [](const Tensor& x, const Dims& d, bool k) { return var(x, d, k, 0); }, kNaN},
    {"stddev", [](const Tensor& x, const Dims& d, bool k) { return stddev(x, d, k, 0); }, kNaN},
    {"norm", [](const Tensor& x, const Dims& d, bool k) { return norm(x, d, k); }, 0},
    {"norm", [](const Tensor& x, const Dims& d, bool k) { return norm(x, d, k, 1); }, 0},
    {"norm", [](const Tensor& x, const Dims& d, bool k) { return norm(x, d, k, kInf); }, kRefused},
    {"logsumexp", logsumexp, -kInf},
    {"amax", amax, kRefused},
    {"amin", amin, kRefused},
    {"all", all, 1, false},
    {"any", any, 0, false},
};

struct OverOne {
  std::string name;
  Tensor (*op)(const Tensor& x, int dim, bool keepdim);
  bool differentiable;
};
const OverOne kOverOne[] = {
    {"max", [](const Tensor& x, int d, bool k) { return max(x, d, k); }, true},
    {"min", [](const Tensor& x, int d, bool k) { return min(x, d, k); }, true},
    {"argmax", [](const Tensor& x, int d, bool k) { return argmax(x, d, k); }, false},
    {"argmin", [](const Tensor& x, int d, bool k) { return argmin(x, d, k); }, false},
};

Shape reduced(const Shape& shape, int dim, bool keepdim) {
  Shape y;
  for (int d = 0; d < shape.dim(); ++d)
    if (d != dim)
      y.push_back(shape[d]);
    else if (keepdim)
      y.push_back(1);
  return y;
}

std::vector<Shape> some_shapes() {
  std::vector<Shape> shapes;
  for (int dim = 1; dim <= 3; ++dim)
    for (const Shape& shape : all_shapes(dim, 2)) shapes.push_back(shape);
  for (const Shape& shape : {Shape{5}, Shape{1, 5}, Shape{5, 1}, Shape{1, 1, 33}, Shape{33, 1, 2}})
    shapes.push_back(shape);
  return shapes;
}

}  // namespace

TEST_CASE(
    "reducing nothing: sum 0, mean NaN, prod 1, all true, any false, the largest an error; only "
    "the reduced dimension counts (pytorch/pytorch#70674, pytorch/pytorch#73905, "
    "pytorch/pytorch#17750, pytorch/xla#888, pytorch/pytorch#19447)") {
  const PoisonGuard poison;
  for (const DType dtype : {kFloat32, kFloat64})
    for (const Shape& shape : some_shapes()) {
      const Tensor x = ones(shape, dtype);
      for (const Reducer& r : kReductions) {
        INFO(r.name, " of ", shape);
        for (int dim = 0; dim < shape.dim(); ++dim)
          for (const bool keepdim : {false, true}) {
            const bool nothing = shape[dim] == 0;
            if (nothing && r.of_nothing == kRefused) {
              CHECK(refused_by(r.name, [&] { r.op(x, dim, keepdim); }));
              continue;
            }
            const Tensor y = r.op(x, dim, keepdim);
            CHECK(y.shape() == reduced(shape, dim, keepdim));
            if (nothing)
              for (const double v : y.to_vector()) CHECK(same_bits(v, r.of_nothing));
          }
        if (shape.numel() > 0) continue;
        if (r.of_nothing == kRefused)
          CHECK(refused_by(r.name, [&] { r.op(x, {}, false); }));
        else
          CHECK(same_bits(r.op(x, {}, false).item(), r.of_nothing));
      }
      for (const OverOne& r : kOverOne) {
        INFO(r.name, " of ", shape);
        for (int dim = 0; dim < shape.dim(); ++dim)
          for (const bool keepdim : {false, true}) {
            if (shape[dim] == 0)
              CHECK(refused_by(r.name, [&] { r.op(x, dim, keepdim); }));
            else
              CHECK(r.op(x, dim, keepdim).shape() == reduced(shape, dim, keepdim));
          }
      }
      if (shape.numel() == 0) {
        CHECK(refused_by("max", [&] { max(x); }));
        CHECK(refused_by("min", [&] { min(x); }));
        CHECK(refused_by("argmax", [&] { argmax(x); }));
        CHECK(refused_by("argmin", [&] { argmin(x); }));
      }
    }
}

TEST_CASE(
    "reducing any dimension, the only one too, kept or not: the gradient has x's shape and is "
    "right (pytorch/pytorch#1813)") {
  for (const Shape& shape :
       {Shape{5}, Shape{1}, Shape{3, 1}, Shape{1, 3}, Shape{2, 3}, Shape{2, 1, 3}})
    for (int dim = 0; dim < shape.dim(); ++dim)
      for (const bool keepdim : {false, true}) {
        // Apart from each other, so that no element sits on a kink, nor on a zero.
        Values v;
        for (int64_t i = 0; i < shape.numel(); ++i) v.push_back(0.7 + 0.37 * double(i * 5 % 7));
        const Tensor x = from_vector(v, shape, kFloat64).set_requires_grad(true);
        for (const Reducer& r : kReductions) {
          if (!r.differentiable) continue;
          INFO(r.name, " of ", shape, " over ", dim);
          const bool flat = shape[dim] == 1 && (r.name[0] == 'v' || r.name[1] == 't');
          if (flat) continue;  // the deviation of one element is 0, on a kink of its root
          const auto f = [&](const TensorList& in) { return r.op(in[0] * in[0], dim, keepdim); };
          const GradcheckResult result = gradcheck(f, {x});
          CHECK_MESSAGE(result, result.message());
          CHECK(grad(sum(f({x})), {x})[0].shape() == shape);
        }
        for (const OverOne& r : kOverOne) {
          if (!r.differentiable) continue;
          const auto f = [&](const TensorList& in) { return r.op(in[0] * in[0], dim, keepdim); };
          const GradcheckResult result = gradcheck(f, {x});
          CHECK_MESSAGE(result, r.name, ": ", result.message());
        }
      }
  const Tensor x = full({5}, 3, kFloat64).set_requires_grad(true);
  for (const double g : grad(mean(x * x, 0), {x})[0].to_vector())
    CHECK(std::abs(g - 2 * 3.0 / 5) <= 4 * 0x1p-53);
}

TEST_CASE("the place of the largest, with sizes of 1 at every place (xtensor-stack/xtensor#1199)") {
  CHECK(argmax(tensor({{1, 2}}), 1).to_vector() == Values{1});
  CHECK(argmax(tensor({{1}, {2}}), 0).to_vector() == Values{1});
  for (const int64_t n : kSizes)
    for (int64_t at = 0; at < n; ++at) {
      Values v(std::size_t(n), 1);
      v[std::size_t(at)] = 2;
      for (const Shape& shape :
           {Shape{n}, Shape{1, n}, Shape{n, 1}, Shape{1, 1, n}, Shape{1, n, 1}})
        for (int dim = 0; dim < shape.dim(); ++dim) {
          const Tensor x = from_vector(v, shape);
          const double wanted = shape[dim] == n ? double(at) : 0;
          if (shape[dim] == n && n > 1) {
            CHECK(argmax(x, dim).to_vector() == Values{wanted});
            CHECK(argmin(neg(x), dim).to_vector() == Values{wanted});
            CHECK(max(x, dim).to_vector() == Values{2});
          } else {
            CHECK(argmax(x, dim).to_vector() == Values(std::size_t(n), 0));
          }
          CHECK(argmax(x).item() == double(at));
        }
    }
}

TEST_CASE(
    "the place of a NaN is the first one's, inside the array at every length and in every layout "
    "(jax-ml/jax#6762)") {
  CHECK(argmax(tensor({0, kNaN})).item() == 1);
  CHECK(argmax(tensor({kNaN, kNaN})).item() == 0);
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes)
      for (int64_t at = 0; at < n; ++at) {
        Values v;
        for (int64_t i = 0; i < n; ++i) v.push_back(double(i * 37 % 101));
        v[std::size_t(at)] = kNaN;
        if (at + 2 < n) v[std::size_t(at + 2)] = kNaN;
        const Tensor x = from_vector(v, {n}, dtype);
        const Tensor columns = expand(reshape(x, {n, 1}), {n, 3});
        const auto is = [&](const Tensor& y) {
          for (const double one : y.to_vector())
            if (one != double(at)) return false;
          return true;
        };
        const auto nan = [](const Tensor& y) {
          for (const double one : y.to_vector())
            if (!std::isnan(one)) return false;
          return true;
        };
        const bool good = is(argmax(x)) && is(argmin(x)) && is(argmax(columns, 0)) &&
                          is(argmin(contiguous(columns), 0)) && nan(max(x)) && nan(min(x)) &&
                          nan(amax(columns, 0)) && nan(amin(columns, 0)) && nan(max(columns, 0)) &&
                          nan(min(contiguous(columns), 0)) && nan(logsumexp(x)) && nan(norm(x));
        if (!good) FAIL_CHECK("NaN at ", at, " of ", n);
      }
  // A row of -inf has a first element too.
  for (const int64_t n : kSizes) {
    CHECK(argmax(full({n}, -kInf)).item() == 0);
    CHECK(argmin(full({n}, kInf)).item() == 0);
    CHECK(max(full({n}, -kInf)).item() == -kInf);
  }
}

TEST_CASE(
    "ties: the gradients add up to 1; evenly for all elements, to the first over a dimension "
    "(pytorch/pytorch#56734, pytorch/pytorch PR#43519, tinygrad/tinygrad PR#229)") {
  for (const int64_t n : kSizes)
    for (int64_t first = 0; first < n; first += 1 + n / 9)
      for (int64_t second = first; second < n; second += 1 + n / 7) {
        Values v(std::size_t(n), 1);
        v[std::size_t(first)] = v[std::size_t(second)] = 5;
        const Tensor x = from_vector(v, {n}, kFloat64).set_requires_grad(true);
        Values even(std::size_t(n), 0), to_first = even;
        even[std::size_t(first)] = even[std::size_t(second)] = first == second ? 1 : 0.5;
        to_first[std::size_t(first)] = 1;
        if (n == 1) even = to_first;
        CHECK(grad(max(x), {x})[0].to_vector() == even);
        CHECK(grad(amax(x), {x})[0].to_vector() == even);
        CHECK(grad(amax(x, 0), {x})[0].to_vector() == even);
        CHECK(grad(max(x, 0), {x})[0].to_vector() == to_first);
        const Tensor y = neg(x.detach()).set_requires_grad(true);
        CHECK(grad(min(y), {y})[0].to_vector() == even);
        CHECK(grad(amin(y, 0, true), {y})[0].to_vector() == even);
        CHECK(grad(min(y, 0), {y})[0].to_vector() == to_first);
      }
  // All equal: still 1 in total.
  for (const int64_t n : kSizes) {
    const Tensor x = ones({n, 3}, kFloat64).set_requires_grad(true);
    for (const double g : sum(grad(sum(amax(x, 0)), {x})[0], 0).to_vector())
      CHECK(std::abs(g - 1) <= double(n) * 0x1p-53);
    CHECK(sum(grad(sum(max(x, 0)), {x})[0], 0).to_vector() == Values{1, 1, 1});
  }
}

TEST_CASE(
    "a product beside zeros has its derivatives of both orders, wherever the zeros stand "
    "(pytorch/pytorch#106789)") {
  for (const int64_t n : {2, 3, 4, 5, 7, 8})
    for (int64_t a = 0; a < n; ++a)
      for (int64_t b = 0; b < n; ++b) {  // a == b: one zero
        Values v;
        for (int64_t i = 0; i < n; ++i) v.push_back(i == a || i == b ? 0 : double(i + 2));
        const Tensor x = from_vector(v, {n}, kFloat64).set_requires_grad(true);
        const Tensor dx = grad(prod(x), {x}, {}, {.create_graph = true})[0];
        const auto without = [&](int64_t p, int64_t q) {
          double y = 1;
          for (int64_t i = 0; i < n; ++i)
            if (i != p && i != q) y *= v[std::size_t(i)];
          return y;
        };
        bool good = true;
        for (int64_t p = 0; p < n; ++p) {
          good = good && dx.to_vector()[std::size_t(p)] == without(p, p);
          const Values row =
              grad(slice(dx, 0, p, p + 1), {x}, {}, {.retain_graph = true})[0].to_vector();
          for (int64_t q = 0; q < n; ++q)
            good = good && row[std::size_t(q)] == (p == q ? 0 : without(p, q));
        }
        if (!good) FAIL_CHECK("zeros at ", a, " and ", b, " of ", n);
      }
  const Tensor x = from_vector({2, 3, 0, 0}, {4}, kFloat64).set_requires_grad(true);
  const Tensor dx = grad(prod(x), {x}, {}, {.create_graph = true})[0];
  CHECK(grad(slice(dx, 0, 2, 3), {x})[0].to_vector() == Values{0, 0, 0, 6});
}

TEST_CASE(
    "the norm of nothing but zeros has gradient 0, of each kind and over each axis "
    "(pytorch/pytorch#2421, HIPS/autograd#151)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const double p : {1.0, 2.0, kInf})
      for (const int64_t n : kSizes) {
        const Tensor x = zeros({n}, dtype).set_requires_grad(true);
        const Tensor rows = zeros({2, n}, dtype).set_requires_grad(true);
        for (const double g : grad(norm(x, {}, false, p), {x})[0].to_vector()) CHECK(g == 0);
        for (const int dim : {0, 1})
          for (const double g : grad(sum(norm(rows, dim, false, p)), {rows})[0].to_vector())
            CHECK(g == 0);
      }
}

TEST_CASE(
    "a constant has variance 0, and a large mean costs no digits (tracel-ai/burn#5607, "
    "ml-explore/mlx#2238, microsoft/onnxruntime#28463)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes)
      for (const double constant : {0.0, 0.1, 1234.0, -40000.0, 1e6, 3e30}) {
        const Tensor x = full({n, 3}, constant, dtype);
        for (const int dim : {0, 1})
          for (const double correction : {0.0, 1.0}) {
            if (x.size(dim) == 1 && correction == 1) continue;
            for (const double v : var(x, dim, false, correction).to_vector()) CHECK(v == 0);
            for (const double v : stddev(x, dim, false, correction).to_vector()) CHECK(v == 0);
          }
      }
  CHECK(var(tensor({40000, 40001, 40002, 40003}), {}, false, 0).item() == 1.25);
  CHECK(var(tensor({1e6, 1e6 + 1, 1e6 + 2}), 0).item() == 1);
  CHECK(std::isnan(var(ones({1})).item()));  // n - 1 = 0 degrees of freedom
}

TEST_CASE(
    "2^24 + 1000 elements: every reduction along the slow axis is as good as along the fast one "
    "(numpy/numpy#8869, numpy/numpy#22956)") {
  const int64_t n = (1 << 24) + 1000;
  const Tensor x = ones({n, 2});
  CHECK(mean(x, 0).to_vector() == Values{1, 1});
  CHECK(mean(x, {0, 1}).item() == 1);
  CHECK(var(x, 0).to_vector() == Values{0, 0});
  CHECK(slice(cumsum(slice(x, 1, 0, 1), 0), 0, n - 1, n).item() == double(n));
  for (const double v : norm(x, 0).to_vector())
    CHECK(std::abs(v - std::sqrt(double(n))) <= 3 * 0x1p-24 * std::sqrt(double(n)));
  for (const double v : logsumexp(x, 0).to_vector())  // 1 + log n = 17.6: two roundings of it
    CHECK(std::abs(v - 1 - std::log(double(n))) <= 3 * 0x1p-24 * 18);
}
