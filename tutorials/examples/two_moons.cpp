// A multilayer perceptron tells two moons apart: two half circles of points that no line divides.
// Prints the accuracy on points it has not seen.
#include <iostream>

#include "nn/layers.h"
#include "nn/optim.h"

using namespace pellucid;

struct Points {
  Tensor xy, label;  // (N, 2), (N)
};

// The upper moon is (cos t, sin t), the lower one (1 - cos t, 1/2 - sin t), both a little blurred.
Points two_moons(int64_t N, Generator& rng) {
  const Tensor t = rand({N}, rng) * 3.14159265, s = rand({N}, rng) * 3.14159265;  // (N)
  const Tensor upper = stack({cos(t), sin(t)}, 1);                                // (N, 2)
  const Tensor lower = stack({1 - cos(s), 0.5 - sin(s)}, 1);                      // (N, 2)
  const Tensor xy = cat({upper, lower}, 0) + randn({2 * N, 2}, rng) * 0.1;        // (2N, 2)
  return {xy, cat({zeros({N}, kInt64), ones({N}, kInt64)}, 0)};
}

struct MLP : nn::Module {
  nn::Linear first{2, 32}, second{32, 32}, third{32, 2};
  void visit(nn::Visitor& v) override { v("first", first), v("second", second), v("third", third); }
  Tensor forward(const Tensor& xy) const {
    const Tensor h = relu(first.forward(xy));       // (N, 32)
    return third.forward(relu(second.forward(h)));  // (N, 2)
  }
};

double accuracy(const MLP& model, const Points& points) {
  const NoGradGuard no_grad;
  const Tensor guess = argmax(model.forward(points.xy), -1);  // (N)
  return mean(astype(equal(guess, points.label), kFloat64)).item();
}

int main() {
  Generator rng{.seed = 1};
  const Points seen = two_moons(200, rng), fresh = two_moons(1000, rng);

  MLP model;
  nn::init_normal(model, 0.4, 2);  // standard deviation, seed
  std::cout << "accuracy before training: " << accuracy(model, fresh) << "\n";
  nn::AdamW optimizer(nn::decay_matrices(model.named_parameters(), 0.01));
  for (int step = 0; step < 300; ++step) {
    cross_entropy(model.forward(seen.xy), seen.label).backward();
    optimizer.step(0.01);
    optimizer.zero_grad();
  }
  std::cout << "accuracy on unseen points: " << accuracy(model, fresh) << "\n";
}
