// Known faults of threads and processes, tested as kinds: every sort of parallel op in a forked
// child, inside a block of parallel_for, and from several threads at once.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "in_child.h"
#include "kernels/thread_pool.h"
#include "nn/gpt.h"
#include "reports.h"

using namespace pellucid;

namespace {

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

// Large enough that each is cut into several blocks.
struct Work {
  std::string name;
  std::function<Values()> run;
};
std::vector<Work> all_work() {
  const auto with_gradient = [](const Tensor& y, const Tensor& x) {
    Values both = y.to_vector();
    for (double g : grad(sum(y * y), {x})[0].to_vector()) both.push_back(g);
    return both;
  };
  const auto leaf = [](const Shape& shape) {
    return normal(shape, 3, kFloat32).set_requires_grad(true);
  };
  return {
      {"exp",
       [=] {
         const Tensor x = leaf({400, 301});
         return with_gradient(exp(x), x);
       }},
      {"sum",
       [=] {
         const Tensor x = leaf({400, 301});
         return with_gradient(sum(x, 0), x);
       }},
      {"matmul",
       [=] {
         const Tensor x = leaf({150, 140});
         return with_gradient(matmul(x, transpose(x, 0, 1)), x);
       }},
      {"softmax",
       [=] {
         const Tensor x = leaf({300, 200});
         return with_gradient(softmax(x), x);
       }},
      {"layer_norm",
       [=] {
         const Tensor x = leaf({300, 200});
         return with_gradient(layer_norm(x, ones({200}), zeros({200}), 1e-5), x);
       }},
      {"attention",
       [=] {
         const Tensor x = leaf({2, 70, 3 * 2 * 16});
         return with_gradient(attention(x, Tensor(), 2, 2, {}), x);
       }},
      {"randn", [=] { return normal({100000}, 7, kFloat32).to_vector(); }},
      {"a model's loss",
       [] {
         nn::GPTConfig config;
         config.vocab_size = 65, config.block_size = 32, config.n_layer = 2, config.n_head = 2;
         config.n_embd = 32, config.dropout = 0.1;
         nn::GPT model(config, 1);
         Generator rng{.seed = 1};
         Ids ids;
         for (int i = 0; i < 4 * 32; ++i) ids.push_back(rng.below(65));
         const Tensor x = from_vector(ids, {4, 32});
         const Tensor loss = model.loss(x, x);
         loss.backward();
         Values all{loss.item()};
         for (const auto& [key, w] : model.named_parameters())
           for (double g : w.grad().to_vector()) all.push_back(g);
         return all;
       }},
  };
}

#if !defined(__SANITIZE_THREAD__)
#endif

}  // namespace

// TSan refuses threads in the child of a process that has some.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE(
    "every parallel op works in a forked child, with the parent's bytes (pytorch/pytorch#17199, "
    "pytorch/pytorch#17225, pytorch/pytorch#2245, pytorch/pytorch#50669)") {
  const Threads of(3);
  for (const Work& work : all_work()) {
    const Values parent = work.run();  // so that the pool has run before the fork
    INFO(work.name);
    CHECK(in_child([&] { return work.run() == parent ? 7 : 8; }) == 7);
    CHECK(work.run() == parent);
    // A child's child; and a child that asks for other threads.
    CHECK(in_child([&] {
            return in_child([&] {
              set_num_threads(2);
              return work.run() == parent ? 7 : 8;
            });
          }) == 7);
  }
}

TEST_CASE("a fork while another thread computes does not hang the child (pytorch/pytorch#17199)") {
  const Threads of(3);
  const Tensor x = normal({150, 140}, 1, kFloat32);
  const Values wanted = matmul(x, transpose(x, 0, 1)).to_vector();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) matmul(x, transpose(x, 0, 1));
  });
  // The child may find the allocator's lock held by the thread that it does not have; what it must
  // not find is a pool that waits for ever. So it computes into memory it has already.
  const NoGradGuard no_grad;
  for (int repeat = 0; repeat < 10; ++repeat)
    CHECK(in_child([] {
            std::atomic<int64_t> total{0};
            parallel_for(100, 1, [&](int64_t i, int64_t) { total += i; });
            return total == 4950 ? 7 : 8;
          }) == 7);
  stop = true;
  busy.join();
  CHECK(matmul(x, transpose(x, 0, 1)).to_vector() == wanted);
}
#endif

TEST_CASE("ops from inside parallel blocks give their own bytes (joblib/threadpoolctl#40)") {
  const Threads of(3);
  const std::vector<Work> all = all_work();
  std::vector<Values> wanted;
  for (const Work& work : all) wanted.push_back(work.run());
  std::atomic<int> wrong{0}, runs{0};
  parallel_for(3 * std::ssize(all), 1, [&](int64_t i, int64_t) {
    const std::size_t w = std::size_t(i) % all.size();
    wrong += all[w].run() != wanted[w];
    // Two levels deep.
    parallel_for(2, 1, [&](int64_t, int64_t) {
      const std::size_t next = (w + 1) % all.size();
      wrong += all[next].run() != wanted[next];
      ++runs;
    });
  });
  CHECK(wrong == 0);
  CHECK(runs == 6 * std::ssize(all));
}

TEST_CASE("ops from several threads at once give their own bytes (joblib/threadpoolctl#40)") {
  const Threads of(3);
  const std::vector<Work> all = all_work();
  std::vector<Values> wanted;
  for (const Work& work : all) wanted.push_back(work.run());
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < 2; ++c)
    callers.emplace_back([&, c] {
      for (std::size_t repeat = 0; repeat < 4 * all.size(); ++repeat) {
        const std::size_t w = (repeat + c * 3) % all.size();
        wrong += all[w].run() != wanted[w];
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}
