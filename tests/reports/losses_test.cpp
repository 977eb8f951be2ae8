// Known faults of the loss: targets that are no class, at every place, and batches of which nothing
// counts.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

TEST_CASE(
    "a target that is no class is refused at every place, with index, value and range "
    "(pytorch/pytorch#12670, pytorch/pytorch#66872, pytorch/pytorch#39769)") {
  for (const int64_t V : {1, 5, 6, 33})
    for (const int64_t N : {1, 2, 17})
      for (const int64_t ignore : {int64_t{-100}, int64_t{-1}, int64_t{0}, V + 3, INT64_MIN})
        for (int64_t at = 0; at < N; ++at)
          for (const int64_t bad : {int64_t{-4}, int64_t{-1481}, int64_t{-1}, V, V + 1,
                                    int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
            if (bad == ignore) continue;
            Ids targets(std::size_t(N), V - 1);
            targets[std::size_t(at)] = bad;
            const Tensor logits = normal({N, V}, 1).set_requires_grad(true);
            const std::string error =
                error_of([&] { cross_entropy(logits, ids_of(targets), {.ignore_index = ignore}); });
            const bool good = error.rfind("cross_entropy: ", 0) == 0 &&
                              error.find(" " + std::to_string(at) + " ") != std::string::npos &&
                              error.find(std::to_string(bad)) != std::string::npos &&
                              error.find("[0, " + std::to_string(V) + ")") != std::string::npos;
            if (!good) FAIL_CHECK(V, " classes, row ", at, ", target ", bad, ": ", error);
          }
}

TEST_CASE(
    "nothing that counts: loss 0 and zero gradients, for every size and ignore_index "
    "(pytorch/pytorch#116349, pytorch/pytorch#70348, pytorch/pytorch#75181)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t V : {1, 3, 33})
      for (const Shape& rows : {Shape{}, Shape{1}, Shape{31}, Shape{2, 3}, Shape{0}, Shape{2, 0}})
        for (const int64_t ignore : {-100, -1, 0, 1 << 30}) {
          Shape shape = rows;
          shape.push_back(V);
          // Whatever the logits hold: they are not read.
          for (const double value : {1.0, kNaN, kInf, -kInf}) {
            const Tensor logits = full(shape, value, dtype).set_requires_grad(true);
            const Tensor loss =
                cross_entropy(logits, full(rows, double(ignore), kInt64), {.ignore_index = ignore});
            CHECK(same_bits(loss.item(), 0));
            loss.backward();
            for (double g : logits.grad().to_vector()) CHECK(g == 0);
          }
        }
}

TEST_CASE(
    "ignored rows count neither in the sum nor in its divisor, wherever they stand "
    "(pytorch/pytorch#70348)") {
  for (int64_t N : {2, 5, 33})
    for (int64_t ignored = 0; ignored < N; ++ignored) {
      // The ignored row last, first, or between: the loss is that of the others alone.
      const Tensor all = normal({N, 7}, 3);
      Ids targets, kept;
      for (int64_t n = 0; n < N; ++n) targets.push_back(n == ignored ? -100 : n % 7);
      for (int64_t n = 0; n < N; ++n)
        if (n != ignored) kept.push_back(n);
      const Tensor others = embedding(all, ids_of(kept));
      Ids classes;
      for (const int64_t n : kept) classes.push_back(n % 7);
      const Tensor x = all.detach().set_requires_grad(true);
      const Tensor y = others.detach().set_requires_grad(true);
      const Tensor a = cross_entropy(x, ids_of(targets)), b = cross_entropy(y, ids_of(classes));
      // Two sums of at most 33 positive terms, each rounded once.
      CHECK(std::abs(a.item() - b.item()) <= 66 * 0x1p-53 * b.item());
      a.backward(), b.backward();
      CHECK(same_bits(embedding(x.grad(), ids_of(kept)), y.grad()));
      CHECK(same_bits(slice(x.grad(), 0, ignored, ignored + 1), zeros({1, 7}, kFloat64)));
    }
}

TEST_CASE(
    "backward does not follow targets that changed after forward had checked them "
    "(pytorch/pytorch#194802)") {
  for (const int64_t V : {1, 5})
    for (const double bad : {1.0 * double(V), 1e9, -1.0, -1e9})
      for (const bool create_graph : {false, true}) {
        const Tensor logits = normal({3, V}, 1).set_requires_grad(true);
        const Tensor targets = zeros({3}, kInt64);
        const Tensor loss = cross_entropy(logits, targets);
        copy_(slice(targets, 0, 1, 2), full({1}, bad, kInt64));
        CHECK(error_of([&] {
                grad(loss, {logits}, {}, {.create_graph = create_graph});
              }).rfind("cross_entropy: needs for its backward a tensor of shape (3)", 0) == 0);
      }
}
