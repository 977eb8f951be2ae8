// Known faults of shapes, broadcasting and empty tensors, tested as kinds: every pair of small
// shapes, every size that may be 0, every axis.
#include "reports.h"

using namespace pellucid;

namespace {

struct Binary {
  std::string name;
  Tensor (*op)(const Tensor&, const Tensor&);
  double (*f)(double, double);
  double (*da)(double, double);  // null: no gradient
  double (*db)(double, double);
};
const Binary kBinary[] = {
    {"add", add, [](double a, double b) { return a + b; }, [](double, double) { return 1.0; },
     [](double, double) { return 1.0; }},
    {"sub", sub, [](double a, double b) { return a - b; }, [](double, double) { return 1.0; },
     [](double, double) { return -1.0; }},
    {"mul", mul, [](double a, double b) { return a * b; }, [](double, double b) { return b; },
     [](double a, double) { return a; }},
    {"div", div, [](double a, double b) { return a / b; }, [](double, double b) { return 1 / b; },
     [](double a, double b) { return -a / b / b; }},
    {"equal", equal, [](double a, double b) { return double(a == b); }, nullptr, nullptr},
    {"greater", greater, [](double a, double b) { return double(a > b); }, nullptr, nullptr},
    {"less", less, [](double a, double b) { return double(a < b); }, nullptr, nullptr},
    {"not_equal", not_equal, [](double a, double b) { return double(a != b); }, nullptr, nullptr},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); },
     [](double a, double b) { return a == b ? 0.5 : a > b; },
     [](double a, double b) { return a == b ? 0.5 : a < b; }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); },
     [](double a, double b) { return a == b ? 0.5 : a < b; },
     [](double a, double b) { return a == b ? 0.5 : a > b; }},
};

// The shape of both by the rule: sizes from the last must be equal, or one of them 1. False if the
// rule has none.
bool broadcast(const Shape& a, const Shape& b, Shape& y) {
  Values sizes;
  for (int d = 1; d <= std::max(a.dim(), b.dim()); ++d) {
    const int64_t p = d <= a.dim() ? a[-d] : 1, q = d <= b.dim() ? b[-d] : 1;
    if (p != q && p != 1 && q != 1) return false;
    sizes.push_back(double(p == 1 ? q : p));
  }
  y = Shape{};
  for (std::size_t d = sizes.size(); d-- > 0;) y.push_back(int64_t(sizes[d]));
  return true;
}

// The element of an operand of the given shape that element i of y is computed from.
std::size_t source(int64_t i, const Shape& y, const Shape& operand) {
  int64_t at = 0, step = 1;
  for (int d = 1; d <= y.dim(); ++d) {
    const int64_t index = i % y[-d];
    i /= y[-d];
    if (d > operand.dim()) continue;
    if (operand[-d] > 1) at += index * step;
    step *= operand[-d];
  }
  return std::size_t(at);
}

// The number of wrong results of one op on one pair of shapes.
int wrong_results(const Binary& b, const Shape& left, const Shape& right, const Shape& shape) {
  const Tensor x = counted(left).set_requires_grad(b.da != nullptr);
  const Tensor w = (counted(right) * 2.0).detach().set_requires_grad(b.da != nullptr);
  const Tensor y = b.op(x, w);
  if (!(y.shape() == shape)) return 1;
  const Values p = x.to_vector(), q = w.to_vector(), found = y.to_vector();
  Values da(p.size()), db(q.size());
  int wrong = 0;
  for (int64_t i = 0; i < y.numel(); ++i) {
    const std::size_t l = source(i, shape, left), r = source(i, shape, right);
    wrong += found[std::size_t(i)] != b.f(p[l], q[r]);
    if (b.da) da[l] += b.da(p[l], q[r]), db[r] += b.db(p[l], q[r]);
  }
  if (!b.da) return wrong;
  const TensorList g = grad(sum(y), {x, w});
  if (!(g[0].shape() == left && g[1].shape() == right)) return wrong + 1;
  const Values dx = g[0].to_vector(), dw = g[1].to_vector();
  // Sums of at most 27 terms, each rounded three times at most.
  for (std::size_t i = 0; i < p.size(); ++i)
    wrong += !(std::abs(dx[i] - da[i]) <= 60 * 0x1p-53 * std::abs(da[i]));
  for (std::size_t i = 0; i < q.size(); ++i)
    wrong += !(std::abs(dw[i] - db[i]) <= 60 * 0x1p-53 * std::abs(db[i]));
  return wrong;
}

}  // namespace

TEST_CASE(
    "a size-1 dimension stretches to any size, 0 included (tracel-ai/burn#5334, tinygrad/tinygrad "
    "PR#3097, xtensor-stack/xtensor PR#1575), and its gradient is summed back to the operand's "
    "shape (tenstorrent/tt-metal#40008, HomericIntelligence/Odyssey PR#2080)") {
  const PoisonGuard poison;
  std::vector<Shape> shapes;
  for (int dim = 0; dim <= 3; ++dim)
    for (const Shape& shape : all_shapes(dim, dim == 3 ? 2 : 3)) shapes.push_back(shape);
  int64_t accepted = 0;
  for (const Binary& b : kBinary) {
    CAPTURE(b.name);
    for (const Shape& left : shapes)
      for (const Shape& right : shapes) {
        Shape shape;
        const bool fits = broadcast(left, right, shape);
        const int wrong = fits ? wrong_results(b, left, right, shape)
                               : !refused_by(b.name, [&] { b.op(counted(left), counted(right)); });
        accepted += fits;
        if (wrong > 0) FAIL_CHECK(left, " and ", right, ": ", wrong, " wrong");
      }
  }
  CHECK(accepted > 3000);
}

TEST_CASE("where broadcasts three shapes at once, sizes of 0 too (tinygrad/tinygrad PR#3097)") {
  const PoisonGuard poison;
  std::vector<Shape> shapes;
  for (int dim = 0; dim <= 2; ++dim)
    for (const Shape& shape : all_shapes(dim, 2)) shapes.push_back(shape);
  for (const Shape& c : shapes)
    for (const Shape& left : shapes)
      for (const Shape& right : shapes) {
        Shape both, shape;
        const Tensor condition = greater(counted(c), full({}, 2, kFloat64));
        const Tensor a = counted(left), b = neg(counted(right));
        if (!broadcast(left, right, both) || !broadcast(c, both, shape)) {
          if (!refused_by("where", [&] { where(condition, a, b); }))
            FAIL_CHECK(c, ", ", left, " and ", right, " were accepted");
          continue;
        }
        const Tensor y = where(condition, a, b);
        const Values found = y.to_vector(), p = a.to_vector(), q = b.to_vector(),
                     chosen = condition.to_vector();
        bool right_values = y.shape() == shape;
        for (int64_t i = 0; right_values && i < shape.numel(); ++i)
          right_values = found[std::size_t(i)] == (chosen[source(i, shape, c)] != 0
                                                       ? p[source(i, shape, left)]
                                                       : q[source(i, shape, right)]);
        if (!right_values) FAIL_CHECK(c, ", ", left, " and ", right);
      }
}

TEST_CASE(
    "a product without terms is 0, not what was in memory (pytorch/pytorch#31421, "
    "pytorch/pytorch#71774, dimforge/nalgebra#644, apache/tvm#19578, xtensor-stack/xtensor "
    "PR#1575)") {
  const PoisonGuard poison;
  const Shape batches[] = {{}, {0}, {1}, {3}, {2, 1}, {1, 3}, {0, 1}, {2, 3}};
  const auto with = [](Shape shape, int64_t rows, int64_t columns) {
    shape.push_back(rows), shape.push_back(columns);
    return shape;
  };
  for (const DType dtype : {kFloat32, kFloat64})
    for (const Shape& left : batches)
      for (const Shape& right : batches)
        for (int64_t M = 0; M <= 2; ++M)
          for (int64_t N = 0; N <= 2; ++N)
            for (int64_t K = 0; K <= 2; ++K) {
              Shape batch;
              if (!broadcast(left, right, batch)) continue;
              const Tensor a = full(with(left, M, K), 1, dtype).set_requires_grad(true);
              const Tensor b = full(with(right, K, N), 1, dtype).set_requires_grad(true);
              const Tensor y = matmul(a, b);
              bool good = y.shape() == with(batch, M, N);
              for (double v : y.to_vector()) good = good && v == double(K);
              const TensorList g = grad(sum(y), {a, b});
              // Each element of a meets the N columns of each batch that it serves.
              const int64_t served = batch.numel() == 0 ? 0 : batch.numel() / left.numel();
              const int64_t served_b = batch.numel() == 0 ? 0 : batch.numel() / right.numel();
              for (double v : g[0].to_vector()) good = good && v == double(N * served);
              for (double v : g[1].to_vector()) good = good && v == double(M * served_b);
              if (!good) FAIL_CHECK(a.shape(), " times ", b.shape());
            }
}

TEST_CASE("without terms, vectors give 0 and linear gives its bias (pytorch/pytorch#31421)") {
  const PoisonGuard poison;
  CHECK(matmul(ones({0}), ones({0})).item() == 0);
  CHECK(matmul(ones({0}), ones({0, 3})).to_vector() == Values{0, 0, 0});
  CHECK(matmul(ones({2, 0}), ones({0})).to_vector() == Values{0, 0});
  CHECK(matmul(ones({3, 2, 0}), ones({0})).to_vector() == Values(6, 0));
  for (int64_t rows = 0; rows <= 3; ++rows) {
    const Tensor y = linear(ones({rows, 0}), ones({2, 0}), tensor({5, 7}));
    CHECK(y.shape() == Shape{rows, 2});
    for (int64_t i = 0; i < rows; ++i) CHECK((y.at({i, 0}) == 5 && y.at({i, 1}) == 7));
    CHECK(linear(ones({rows, 0}), ones({2, 0}), Tensor()).to_vector() ==
          Values(std::size_t(2 * rows), 0));
  }
}

TEST_CASE(
    "joining: only empty tensors give an empty one, no tensors are an error "
    "(pytorch/pytorch#5739)") {
  const PoisonGuard poison;
  for (const DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    CHECK(cat({zeros({0}, dtype)}).shape() == Shape{0});
    for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 3}, Shape{0, 0}})
      for (int dim = 0; dim < shape.dim(); ++dim)
        for (std::size_t n : {1, 2, 5}) {
          const Tensor y = cat(TensorList(n, zeros(shape, dtype)), dim);
          Shape wanted = shape;
          wanted[dim] *= int64_t(n);
          CHECK(y.shape() == wanted);
          CHECK(y.dtype() == dtype);
          CHECK(stack(TensorList(n, zeros(shape, dtype)), dim).size(dim) == int64_t(n));
        }
  }
  CHECK(refused_by("cat", [] { cat({}); }));
  CHECK(refused_by("stack", [] { stack({}); }));
  CHECK(refused_by("cat", [] { cat({scalar(1), scalar(2)}); }));
  // Empty ones among others, at every place and along every axis; their gradients are empty too.
  for (int dim = 0; dim < 2; ++dim)
    for (std::size_t at = 0; at < 3; ++at) {
      Shape none{2, 3};
      none[dim] = 0;
      TensorList list(3, random_leaf({2, 3}, 1));
      list[at] = random_leaf(none, 2);
      const Tensor y = cat(list, dim);
      CHECK(y.size(dim) == 2 * Shape{2, 3}[dim]);
      for (const Tensor& g : grad(sum(y * y), {list[at]})) CHECK(g.shape() == none);
      CHECK(same_bits(contiguous(slice(y, dim, 0, Shape{2, 3}[dim])), list[at == 0 ? 1 : 0]));
    }
}
