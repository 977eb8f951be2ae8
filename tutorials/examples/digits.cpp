// A convolutional network reads digits, each drawn somewhere in a noisy image of 14 by 14 pixels.
// Prints the accuracy on images it has not seen.
#include <iostream>

#include "nn/layers.h"
#include "nn/optim.h"

using namespace pellucid;

// Each digit has seven rows of five pixels; bit 4 is the leftmost.
constexpr int kFont[10][7] = {{14, 17, 17, 17, 17, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
                              {14, 17, 1, 6, 8, 16, 31},    {14, 17, 1, 6, 1, 17, 14},
                              {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
                              {14, 16, 30, 17, 17, 17, 14}, {31, 1, 2, 4, 4, 8, 8},
                              {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 1, 14}};

nn::NamedTensors digits(int64_t N, Generator& rng) {
  std::vector<double> pixels(static_cast<std::size_t>(N * 14 * 14)), labels;
  for (int64_t n = 0; n < N; ++n) {
    const int64_t label = rng.below(10), top = rng.below(8), left = rng.below(10);
    labels.push_back(static_cast<double>(label));
    for (int64_t i = 0; i < 7; ++i)
      for (int64_t j = 0; j < 5; ++j)
        pixels[static_cast<std::size_t>((n * 14 + top + i) * 14 + left + j)] =
            kFont[label][i] >> (4 - j) & 1;
  }
  const Tensor image = from_vector(pixels, {N, 1, 14, 14}) + randn({N, 1, 14, 14}, rng) * 0.2;
  return {{"image", image}, {"label", from_vector(labels, {N}, kInt64)}};
}

struct ConvNet : nn::Module {
  Tensor near = nn::parameter({8, 1, 3, 3}, 0, kFloat32),
         far = nn::parameter({16, 8, 3, 3}, 0, kFloat32);
  nn::Linear head{16 * 7 * 7, 10};
  void visit(nn::Visitor& v) override { v("near", near), v("far", far), v("head", head); }
  Tensor forward(const Tensor& image) const {
    Tensor h = relu(conv2d(image, near, {}, {.padding = 1}));        // (N, 8, 14, 14)
    h = relu(conv2d(max_pool2d(h, 2, 2), far, {}, {.padding = 1}));  // (N, 16, 7, 7)
    return head.forward(reshape(h, {image.size(0), 16 * 7 * 7}));    // (N, 10)
  }
};

int main() {
  Generator rng{.seed = 1};
  ConvNet model;
  nn::init_normal(model, 0.1, 2);  // standard deviation, seed
  nn::AdamW optimizer(nn::decay_matrices(model.named_parameters(), 0.01));
  for (int step = 0; step < 1500; ++step) {
    const auto batch = digits(64, rng);
    cross_entropy(model.forward(batch[0].second), batch[1].second).backward();
    optimizer.step(0.005);
    optimizer.zero_grad();
  }
  const NoGradGuard no_grad;
  const auto fresh = digits(1000, rng);
  const Tensor guess = argmax(model.forward(fresh[0].second), -1);  // (N)
  std::cout << "accuracy on unseen images: "
            << mean(astype(equal(guess, fresh[1].second), kFloat64)).item() << "\n";
}
