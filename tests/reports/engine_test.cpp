// Known faults of the walk through the graph, tested as kinds: nodes on many paths, one tensor in
// several places of one op.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

constexpr std::size_t kLeaves = 3;

// A number with its derivatives by the leaves, and the sum of |terms| of each over all paths.
struct Dual {
  double value = 0;
  double d[kLeaves] = {}, terms[kLeaves] = {};
};

Dual combine(double value, const Dual& a, double da, const Dual& b, double db) {
  Dual y{.value = value};
  for (std::size_t i = 0; i < kLeaves; ++i) {
    y.d[i] = da * a.d[i] + db * b.d[i];
    y.terms[i] = std::abs(da) * a.terms[i] + std::abs(db) * b.terms[i];
  }
  return y;
}

// One random graph of sums and products over the leaves, built twice: as tensors and as duals. Each
// node takes two of the last few, so that there are very many paths and few nodes. All values stay
// in [-1, 1].
Tensor random_graph(const TensorList& leaves, int64_t nodes, Generator rng,
                    std::vector<Dual>* duals) {
  TensorList x = leaves;
  const auto pick = [&] {
    const int64_t reach = std::min<int64_t>(std::ssize(x), 5);
    return std::size_t(std::ssize(x) - 1 - rng.below(reach));
  };
  for (int64_t n = 0; n < nodes; ++n) {
    const int64_t kind = rng.below(4);
    const std::size_t a = pick(), b = rng.below(4) == 0 ? a : pick();
    const Tensor p = x[a], q = x[b];
    x.push_back(kind == 0   ? (p + q) * 0.5
                : kind == 1 ? (p - q * 0.5) * 0.5
                : kind == 2 ? p * q
                            : -p);
    if (!duals) continue;
    const Dual u = (*duals)[a], v = (*duals)[b], none;
    duals->push_back(kind == 0   ? combine((u.value + v.value) * 0.5, u, 0.5, v, 0.5)
                     : kind == 1 ? combine((u.value - v.value * 0.5) * 0.5, u, 0.5, v, -0.25)
                     : kind == 2 ? combine(u.value * v.value, u, v.value, v, u.value)
                                 : combine(-u.value, u, -1, none, 0));
  }
  return x.back();
}

}  // namespace

TEST_CASE(
    "a node on many paths is walked once: random graphs against dual numbers "
    "(karpathy/micrograd#2, sebgao/cTensor#5)") {
  constexpr int64_t kNodes = 40;
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Generator rng{.seed = seed};
    TensorList leaves;
    std::vector<Dual> duals(kLeaves);
    for (std::size_t i = 0; i < kLeaves; ++i) {
      duals[i].value = 2 * rng.uniform() - 1;
      duals[i].d[i] = duals[i].terms[i] = 1;
      leaves.push_back(scalar(duals[i].value, kFloat64).set_requires_grad(true));
    }
    const Tensor y = random_graph(leaves, kNodes, rng, &duals);
    if (!y.requires_grad()) continue;
    y.backward();
    CHECK(y.item() == duals.back().value);
    for (std::size_t i = 0; i < kLeaves; ++i) {
      const double g = leaves[i].grad().defined() ? leaves[i].grad().item() : 0;
      // Each path's product is rounded at most 3 times an edge both ways, and added at most 2
      // kNodes times.
      const double bound = 8 * kNodes * 0x1p-53 * duals.back().terms[i];
      if (!(std::abs(g - duals.back().d[i]) <= bound))
        FAIL_CHECK("graph ", seed, ", leaf ", i, ": ", g, " for ", duals.back().d[i]);
      compared += duals.back().d[i] != 0;
    }
  }
  CHECK(compared > 500);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto f = [&](const TensorList& x) {
      return random_graph(x, 12, {.seed = seed}, nullptr) + x[0] * x[1] * x[2];
    };
    const TensorList x{random_leaf({2}, seed), random_leaf({2}, seed + 50),
                       random_leaf({2}, seed + 99)};
    const GradcheckResult first = gradcheck(f, x, {.refuse_zero = false}),
                          second = gradgradcheck(f, x, {.refuse_zero = false});
    CHECK_MESSAGE(first, first.message());
    CHECK_MESSAGE(second, second.message());
  }
}

TEST_CASE("the four products of the report add up to 6 (karpathy/micrograd#2)") {
  const Tensor x = scalar(1, kFloat64).set_requires_grad(true), a = ones_like(x);
  const Tensor xa = x * a;
  (x * xa + (x * x) * a + x * xa).backward();
  CHECK(x.grad().item() == 6);
}

TEST_CASE(
    "a tensor in several places of one op has every place's gradient, of both orders "
    "(sony/nnabla PR#532)") {
  struct Row {
    std::string name;
    Function f;
    Shape shape = {3};
  };
  const Row rows[] = {
      {"x * x * x", [](const TensorList& x) { return x[0] * x[0] * x[0]; }},
      {"add", [](const TensorList& x) { return add(x[0], x[0]) * x[0]; }},
      {"sub", [](const TensorList& x) { return sub(x[0] * 2.0, x[0]) * x[0]; }},
      {"mul", [](const TensorList& x) { return mul(x[0], x[0]); }},
      {"div", [](const TensorList& x) { return div(x[0], x[0] * x[0] + 2.0); }},
      {"where",
       [](const TensorList& x) {
         return where(greater(x[0], zeros_like(x[0])), x[0] * x[0], x[0]);
       }},
      {"add_",
       [](const TensorList& x) {
         const Tensor y = x[0] * x[0];
         return add_(y, y) * y;
       }},
      {"add_ of a view", [](const TensorList& x) { return add_(x[0] * 1.0, x[0]) * x[0]; }},
      {"matmul", [](const TensorList& x) { return matmul(x[0], x[0]); }, {3, 3}},
      {"matmul with its transpose",
       [](const TensorList& x) { return matmul(x[0], transpose(x[0], 0, 1)); },
       {2, 3}},
      {"dot", [](const TensorList& x) { return matmul(x[0], x[0]); }, {5}},
      {"linear", [](const TensorList& x) { return linear(x[0], x[0], Tensor()); }, {2, 3}},
      {"linear, its bias too",
       [](const TensorList& x) {
         return linear(x[0], transpose(expand(x[0], {3, 3}), 0, 1), x[0]);
       }},
      {"layer_norm", [](const TensorList& x) { return layer_norm(x[0], x[0], x[0], 1e-2); }, {5}},
      {"rms_norm", [](const TensorList& x) { return rms_norm(x[0], x[0], 1e-2); }, {5}},
      {"xsa", [](const TensorList& x) { return xsa(x[0], x[0] * x[0]); }, {2, 3}},
      {"softmax of itself", [](const TensorList& x) { return softmax(x[0]) * x[0]; }},
      {"embedding and scatter_add_rows",
       [](const TensorList& x) {
         const Tensor ids = ids_of({1, 0, 1});
         return scatter_add_rows(embedding(x[0], ids) * embedding(x[0], ids), ids, 2) * x[0];
       },
       {2, 2}},
      {"views", [](const TensorList& x) { return x[0] * transpose(x[0], 0, 1); }, {3, 3}},
  };
  for (const Row& row : rows) {
    const Tensor x = random_leaf(row.shape, 5);
    const GradcheckResult first = gradcheck(row.f, {x}),
                          second = gradgradcheck(row.f, {x}, {.refuse_zero = false});
    CHECK_MESSAGE(first, row.name, ": ", first.message());
    CHECK_MESSAGE(second, row.name, ": ", second.message());
  }
  const Tensor x = scalar(1, kFloat64).set_requires_grad(true);
  const Tensor dx = grad(x * x * x, {x}, {}, {.create_graph = true})[0];
  CHECK(dx.item() == 3);
  CHECK(grad(dx, {x})[0].item() == 6);
}

TEST_CASE(
    "the derivative of the derivative goes by every input, also those that meet one kernel "
    "(pytorch/pytorch#65466, pytorch/pytorch#59477)") {
  // One input at a time, the others frozen; all together is the table of ops' part.
  struct Row {
    std::string name;
    Function f;
    std::vector<Shape> shapes;
  };
  const Row rows[] = {
      {"layer_norm",
       [](const TensorList& x) { return layer_norm(x[0], x[1], x[2], 1e-3); },
       {{2, 4}, {4}, {4}}},
      {"rms_norm", [](const TensorList& x) { return rms_norm(x[0], x[1], 1e-3); }, {{2, 4}, {4}}},
      {"xsa", [](const TensorList& x) { return xsa(x[0], x[1], x[2]); }, {{2, 3}, {2, 3}, {2}}},
      {"attention",
       [](const TensorList& x) {
         return attention(x[0], x[1], 2, 1, {.kind = AttentionKind::kXSA});
       },
       {{1, 3, 8}, {2}}},
      {"linear",
       [](const TensorList& x) { return linear(x[0], x[1], x[2]); },
       {{2, 3}, {2, 3}, {2}}},
      {"div", [](const TensorList& x) { return x[0] / (x[1] + 3.0); }, {{3}, {3}}},
  };
  for (const Row& row : rows)
    for (std::size_t only = 0; only < row.shapes.size(); ++only) {
      TensorList x;
      for (std::size_t i = 0; i < row.shapes.size(); ++i) {
        x.push_back(random_leaf(row.shapes[i], 3 + i));
        if (i != only) x.back() = x.back().detach();
      }
      const GradcheckResult second = gradgradcheck(row.f, x, {.refuse_zero = false});
      CHECK_MESSAGE(second, row.name, ", input ", only, ": ", second.message());
    }
}
