// gelu and gelu_tanh beyond the table of ops: huge and infinite x, fused and under create_graph.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

TEST_CASE("gelu far from 0 is x or 0, its gradient 1 or 0, the second 0; NaN stays") {
  for (auto* op : {&gelu, &gelu_tanh, &plain::gelu, &plain::gelu_tanh})
    for (const DType dtype : {kFloat32, kFloat64}) {
      const double big = dtype == kFloat32 ? 1e38 : 1e200;
      const Tensor x = from_vector({-HUGE_VAL, -big, -50, 50, big, HUGE_VAL}, {6}, dtype);
      x.set_requires_grad(true);
      const Tensor y = (*op)(x), seed = ones_like(x).set_requires_grad(true);
      Values wanted = x.to_vector();
      for (std::size_t i = 0; i < 3; ++i) wanted[i] = 0;
      CHECK(y.to_vector() == wanted);
      const Values slope = {0, 0, 0, 1, 1, 1};
      CHECK(grad(y, {x}, seed, {.retain_graph = true})[0].to_vector() == slope);
      const Tensor dx = grad(y, {x}, seed, {.create_graph = true})[0];
      CHECK(dx.to_vector() == slope);
      const TensorList second = grad(sum(dx), {x, seed});
      CHECK(second[0].to_vector() == Values(6, 0.0));
      CHECK(second[1].to_vector() == slope);
      CHECK(std::isnan((*op)(full_like(x, {}, NAN)).item()));
    }
}

TEST_CASE(
    "gelu by tanh and by erf at the sizes whose exponentials overflow: x or 0, slope 1 or 0") {
  for (auto* op : {&gelu, &gelu_tanh, &plain::gelu, &plain::gelu_tanh})
    for (const DType dtype : {kFloat32, kFloat64})
      for (const double size : {10.5, 13.24, 40.0, 3e38, HUGE_VAL}) {
        const Tensor x = from_vector({size, -size}, {2}, dtype).set_requires_grad(true);
        const Values at = x.to_vector(), y = op(x).to_vector();
        const Values dx = grad(op(x), {x}, ones_like(x))[0].to_vector();
        INFO(size);
        CHECK((y[0] == at[0] && dx[0] == 1));
        CHECK((std::abs(y[1]) < 1e-20 && std::abs(dx[1]) < 1e-20));
      }
}
