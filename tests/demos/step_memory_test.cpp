// The memory of a training step: the estimate against what tensors take.
#include "tutorials/demos/step_memory.h"

#include <doctest/doctest.h>

#include "error_of.h"
#include "program.h"
#include "tensor/allocator.h"
#include "tutorials/demos/presets.h"

using namespace pellucid;
using namespace pellucid::demos;

namespace {

// Bytes of tensors at most, from nothing to the end of the second step.
double measured(const nn::TrainConfig& config) {
  const int64_t before = memory_stats().bytes_in_use;
  reset_peak();
  nn::Trainer trainer(config);
  const int64_t B = config.batch_size, T = config.model.block_size;
  for (int i = 0; i < 2; ++i)
    trainer.step([&] {
      return nn::Batch{full({B, T}, 1, kInt64), full({B, T}, 2, kInt64), B * T};  // (B, T)
    });
  return double(memory_stats().peak_bytes_in_use - before);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a step takes what was foretold, whatever the model, to a quarter") {
  const std::vector<std::string> changes[] = {
      {},
      {"batch_size=64"},
      {"batch_size=1"},
      {"mlp=swiglu", "norm=rms_norm"},
      {"attention=sa", "dropout=0.1"},
      {"position=rope", "qk_norm=true", "n_kv_head=1"},
      {"n_embd=256", "batch_size=2"},
      {"n_layer=12", "optimizer=sgd"},
      {"optimizer=muon", "tied_head=false"},
      {"accumulation=40", "bias=false"},
      {"block_size=512", "batch_size=2", "xsa_gate=true"},
  };
  for (const int64_t V : {60, 4000})
    for (const auto& set : changes) {
      nn::TrainConfig config = make_config("tiny", "", set);
      config.model.vocab_size = V;
      const double places = double(config.batch_size * config.model.block_size);
      const double ratio = step_memory(config, places).all() / measured(config);
      CAPTURE(V);
      CAPTURE(set.empty() ? "" : set[0]);
      CHECK(ratio > 0.8);
      CHECK(ratio < 1.25);
    }
}

TEST_CASE("each term by itself") {
  using Set = std::vector<std::string>;
  // What the second setting adds to the first, in numbers; C 32, T 32, 2 layers, V 60.
  const auto more = [](const Set& from, const Set& to, bool parameters) {
    const auto of = [&](const Set& set) {
      nn::TrainConfig config = make_config("tiny", "", set);
      config.model.vocab_size = 60;
      REQUIRE(config.model.n_embd == 32);
      REQUIRE(config.model.block_size == 32);
      REQUIRE(config.model.n_layer == 2);
      const StepMemory step = step_memory(config, 1);
      return (parameters ? step.parameters : step.activations) / sizeof(float);
    };
    return of(to) - of(from);
  };
  CHECK(more({"position=rope"}, {"position=learned"}, true) == 4 * 32 * 32);
  CHECK(more({}, {"tied_head=false"}, true) == 4 * 60 * 32);
  const double matrices = 2 * 12 * 32 * 32, tables = 60 * 32, largest = 4 * 32 * 32;
  CHECK(more({"optimizer=sgd"}, {}, true) == matrices + tables);
  CHECK(more({"optimizer=sgd"}, {"optimizer=muon"}, true) == tables + 6 * largest);
  CHECK(more({}, {"qk_norm=true"}, false) == 2 * 2 * 3 * 32);
  CHECK(more({}, {"mlp=swiglu", "n_hidden=128"}, false) == 2 * 128);
}

TEST_CASE("a limit of the process counts as the machine's end") {
  const Ended ended = run({"train", "--data", PELLUCID_SOURCE_DIR "/README.md", "--preset", "tiny",
                           "--set", "batch_size=100000", "--out", "/dev/null/none"},
                          {.memory_limit = 1500000000});
  CHECK(ended.code == 1);
  CHECK(contains(ended.err,
                 " of memory, more than 80 % of the 1.5 GB that this machine has; "
                 "give a smaller batch_size"));
}

TEST_CASE("documents make no larger pass than all of them together") {
  nn::TrainConfig config = make_config("tiny", "", {"batch_size=1000000"});
  config.model.block_size = 4;
  const std::vector<int64_t> tokens = {9, 1, 2, 9, 1, 9, 1, 2, 3, 4, 5, 6, 9};
  CHECK(most_places(config, tokens, {}) == 4e6);
  nn::Loader loader(tokens, config.batch_size, 4, 1, 9);
  for (int epoch = 0; epoch < 8; ++epoch)
    CHECK(double(loader.next().inputs.numel()) <= most_places(config, tokens, 9));
  CHECK(most_places(config, tokens, 9) < 50);
  config.model.block_size = 1 << 20;  // none is so long
  CHECK(most_places(config, tokens, 9) < 100);
  config.batch_size = 1, config.model.block_size = 4;
  CHECK(most_places(config, tokens, 9) == 4);
}

TEST_CASE("what does not fit is refused by what takes it") {
  const auto refusal = [](const std::vector<std::string>& set, double places) {
    nn::TrainConfig config = make_config("tiny", "", set);
    config.model.vocab_size = 60;
    return error_of([&] { check_memory(config, places); });
  };
  const double there = machine_memory();
  CHECK(there > 1e8);
  CHECK(refusal({}, 512) == "no error");
  nn::TrainConfig tiny = make_config("tiny", "", {});
  tiny.model.vocab_size = 60;
  const double one = step_memory(tiny, 2).activations - step_memory(tiny, 1).activations;
  CHECK(refusal({}, 0.5 * there / one) == "no error");  // half of what there is
  CHECK(refusal({}, 0.79 * there / one) == "no error");
  CHECK(contains(refusal({}, 0.81 * there / one), "more than 80 % of the "));
  CHECK(contains(refusal({}, 4 * there / one), "give a smaller batch_size"));
  CHECK(contains(refusal({"n_embd=65536", "n_head=256", "n_layer=1000"}, 512), "a smaller n_embd"));
  CHECK(contains(refusal({"accumulation=1000000000000"}, 512), "a smaller accumulation"));
}
