// The layers against their formulas, and what they refuse.
#include "nn/layers.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/gradcheck.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

TEST_CASE("Linear is x weight^T + bias") {
  Linear layer(3, 2, true, kFloat64);
  layer.load_state_dict({{"weight", from_vector({1, 2, 3, 4, 5, 6}, {2, 3}, kFloat64)},
                         {"bias", from_vector({10, 20}, {2}, kFloat64)}});
  const Tensor x = from_vector({1, 0, -1, 2, 1, 0}, {2, 1, 3}, kFloat64);
  const Tensor y = layer.forward(x);
  CHECK(y.shape() == Shape{2, 1, 2});
  CHECK(y.to_vector() == std::vector<double>{8, 18, 14, 33});
  Linear plain(3, 2, false);
  CHECK(!plain.bias.defined());
  CHECK(plain.num_parameters() == 6);
  CHECK_THROWS_WITH(Linear(0, 2), "Linear: wanted positive sizes; got in 0, out 2");
}

TEST_CASE("a layer that nobody initialised gives NaN") {
  Linear layer(3, 2);
  CHECK(std::isnan(layer.forward(full({1, 3}, 1)).to_vector()[0]));
  Embedding table(3, 2);
  CHECK(std::isnan(table.forward(full({1}, 1, kInt64)).to_vector()[0]));
  CHECK_THROWS_WITH(Embedding(3, -1), "Embedding: wanted positive sizes; got V 3, C -1");
}

TEST_CASE("Embedding picks rows") {
  Embedding table(3, 2);
  table.load_state_dict({{"weight", from_vector({0, 1, 2, 3, 4, 5}, {3, 2})}});
  const Tensor y = table.forward(from_vector({2, 0}, {1, 2}, kInt64));
  CHECK(y.shape() == Shape{1, 2, 2});
  CHECK(y.to_vector() == std::vector<double>{4, 5, 0, 1});
}

TEST_CASE("norms start as the bare normalisation") {
  const Tensor x = from_vector({1, 2, 3, 6}, {1, 4}, kFloat64);
  LayerNorm layer(4, true, 1e-5, kFloat64);
  RMSNorm rms(4, 1e-5, kFloat64);
  const double mean = 3, var = (4 + 1 + 0 + 9) / 4.0, square = (1 + 4 + 9 + 36) / 4.0;
  const auto y = layer.forward(x).to_vector(), z = rms.forward(x).to_vector();
  for (int i = 0; i < 4; ++i) {
    const double xi = x.to_vector()[i];
    CHECK(std::abs(y[i] - (xi - mean) / std::sqrt(var + 1e-5)) < 1e-14);
    CHECK(std::abs(z[i] - xi / std::sqrt(square + 1e-5)) < 1e-14);
  }
  CHECK(layer.num_parameters() == 8);
  CHECK(rms.num_parameters() == 4);
  CHECK(LayerNorm(4, false).num_parameters() == 4);
  CHECK_THROWS_WITH(RMSNorm(0), "Norm: wanted a positive size; got 0");
}

TEST_CASE("Dropout acts in training only and draws from the generator it is given") {
  Dropout drop(0.25);
  Generator rng{.seed = 4}, same = rng;
  const Tensor x = full({1000}, 3);
  const auto y = drop.forward(x, rng).to_vector();
  const auto zeros = std::count(y.begin(), y.end(), 0.0);
  CHECK(std::abs(static_cast<double>(zeros) - 250) < 6 * std::sqrt(1000 * 0.25 * 0.75));
  CHECK(std::count(y.begin(), y.end(), 4.0) + zeros == 1000);
  CHECK(drop.forward(x, same).to_vector() == y);
  CHECK(drop.forward(x, same).to_vector() != y);
  const uint64_t offset = rng.offset;
  drop.eval();
  CHECK(drop.forward(x, rng).impl() == x.impl());
  CHECK(rng.offset == offset);
  CHECK_THROWS_WITH(Dropout(1.5), "Dropout: wanted a probability from 0 to 1; got 1.5");
  CHECK_THROWS_WITH(Dropout(NAN), "Dropout: wanted a probability from 0 to 1; got nan");
}

TEST_CASE("MLP is two products around gelu, or around silu of a third times the first") {
  Generator rng;
  for (const Activation activation : {Activation::kGelu, Activation::kGeluTanh}) {
    MLP mlp(3, 12, true, 0, activation, kFloat64);
    init_normal(mlp, 1, 2);
    const Tensor x = random_leaf({2, 3}, 3);
    const Tensor inside = linear(x, mlp.c_fc.weight, mlp.c_fc.bias);
    const bool exact = activation == Activation::kGelu;
    const Tensor y = linear(exact ? plain::gelu(inside) : plain::gelu_tanh(inside),
                            mlp.c_proj.weight, mlp.c_proj.bias);
    CHECK(mlp.c_fc.weight.shape() == Shape{12, 3});
    CHECK(!mlp.c_gate.weight.defined());
    CHECK(max_difference(mlp.forward(x, rng).to_vector(), y.to_vector()) < 1e-13);
  }
  MLP mlp(3, 5, true, 0, Activation::kSwiGLU, kFloat64);
  init_normal(mlp, 1, 2);
  const Tensor x = random_leaf({2, 3}, 3);
  const Tensor gate = linear(x, mlp.c_gate.weight, mlp.c_gate.bias);
  const Tensor inside = gate * sigmoid(gate) * linear(x, mlp.c_fc.weight, mlp.c_fc.bias);
  const Tensor y = linear(inside, mlp.c_proj.weight, mlp.c_proj.bias);
  CHECK(mlp.num_parameters() == 5 * 3 * 3 + 5 * 2 + 3);
  CHECK(max_difference(mlp.forward(x, rng).to_vector(), y.to_vector()) < 1e-13);
}
