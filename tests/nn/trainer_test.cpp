// The trainer: accumulation is one large batch, a run goes on from any step in the same bytes, a
// loss that is not finite changes nothing, and no step but the first asks the system for memory.
#include "nn/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/thread_pool.h"
#include "tensor/allocator.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;
using nlohmann::json;

namespace {

// A model of the tiny preset's kind with dropout on: V 65, C 32, T 32, two layers.
TrainConfig small_config() {
  TrainConfig config;
  config.model.vocab_size = 65, config.model.block_size = 32;
  config.model.n_layer = 2, config.model.n_head = 2, config.model.n_embd = 32;
  config.model.dropout = 0.1, config.model.norm = "rms_norm", config.model.position = "rope";
  config.model.bias = false;
  config.batch_size = 4, config.accumulation = 2, config.steps = 12, config.warmup = 3;
  config.lr = 1e-2, config.min_lr = 1e-3, config.seed = 5;
  return config;
}

std::vector<int64_t> text(int64_t vocab_size) {
  Generator rng{.seed = 77};
  std::vector<int64_t> tokens;
  for (int i = 0; i < 999; ++i) tokens.push_back(rng.below(vocab_size));
  return tokens;
}

Loader make_loader(const TrainConfig& c) {
  return Loader(text(c.model.vocab_size), c.batch_size, c.model.block_size, c.seed);
}

StepResult step(Trainer& trainer, Loader& loader) {
  return trainer.step([&] { return loader.next(); });
}

std::string bytes(const Tensor& x) {
  return {static_cast<const char*>(x.data()),
          static_cast<std::size_t>(x.numel()) * item_size(x.dtype())};
}

std::map<std::string, std::string> bytes(const StateDict& state) {
  std::map<std::string, std::string> all;
  for (const auto& [name, x] : state) all[name] = bytes(x);
  return all;
}

StateDict copy_of(const StateDict& state) {
  StateDict copies;
  for (const auto& [name, x] : state) {
    copies[name] = empty(x.shape(), x.dtype());
    std::memcpy(copies[name].data(), x.data(), bytes(x).size());
  }
  return copies;
}

Tensor parameter_named(Trainer& trainer, const std::string& name) {
  return trainer.state_dict().at("model." + name);
}

std::string fault(Trainer& trainer, Loader& loader) {
  try {
    step(trainer, loader);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// A configuration whose first update is w - g / (1 + |g| / 1000), whose slope is at most 1: the
// weights after it show the gradient.
TrainConfig gradient_config() {
  TrainConfig config = small_config();
  config.model.dropout = 0, config.warmup = 0, config.weight_decay = 0, config.clip = 1e30;
  config.lr = 1000, config.eps = 1000;
  return config;
}

// Rows [from, to) of a batch.
Batch rows(const Batch& batch, int64_t from, int64_t to) {
  const int64_t T = batch.inputs.size(1);
  Batch part{empty({to - from, T}, kInt64), empty({to - from, T}, kInt64)};
  const auto* x = static_cast<const int64_t*>(batch.inputs.data()) + from * T;
  const auto* y = static_cast<const int64_t*>(batch.targets.data()) + from * T;
  std::copy_n(x, (to - from) * T, static_cast<int64_t*>(part.inputs.data()));
  std::copy_n(y, (to - from) * T, static_cast<int64_t*>(part.targets.data()));
  part.counted = (to - from) * T - std::count(y, y + (to - from) * T, kIgnore);
  return part;
}

}  // namespace

TEST_CASE("k accumulated batches are one batch of k times the rows (R59)") {
  constexpr int64_t B = 6;
  TrainConfig config = gradient_config();
  config.batch_size = B, config.accumulation = 1;
  const int64_t T = config.model.block_size;
  Batch all = Loader(text(65), B, T, 3).next();
  // The parts count differently many: a mean of means would be wrong.
  std::fill_n(static_cast<int64_t*>(all.targets.data()), T + T / 2, kIgnore);
  all = rows(all, 0, B);
  const auto* y = static_cast<const int64_t*>(all.targets.data());
  const auto n_rows = static_cast<double>(B * T);

  Trainer whole(config);
  const StateDict before = copy_of(whole.state_dict());
  const StepResult one = whole.step([&] { return all; });

  // How far two orders of adding the rows' terms can differ: 2 n u sum |term|, n = B T rows, for
  // each element of the gradient; the terms are those of one target each. On top of it the
  // roundings of weight, scale and update: 8 u (|w| + |g|).
  std::map<std::string, std::vector<double>> bound;
  for (const auto& [name, x] : before)
    if (name.rfind("model.", 0) == 0)
      bound[name].resize(static_cast<std::size_t>(x.numel()), 1e-30);
  for (int64_t at = 0; at < B * T; ++at) {
    if (y[at] == kIgnore) continue;
    std::vector<int64_t> only(static_cast<std::size_t>(T), kIgnore);
    only[static_cast<std::size_t>(at % T)] = y[at];
    Trainer single(config);
    single.model.loss(rows(all, at / T, at / T + 1).inputs, from_vector(only, {1, T})).backward();
    for (const auto& [name, x] : single.model.named_parameters()) {
      const auto g = x.grad().to_vector();
      for (std::size_t i = 0; i < g.size(); ++i)
        bound["model." + name][i] += std::abs(g[i]) / static_cast<double>(all.counted);
    }
  }
  const auto differs = [&](Trainer& other) {  // the largest difference, as a share of its bound
    double worst = 0;
    for (const auto& [name, terms] : bound) {
      const auto a = whole.state_dict().at(name).to_vector(),
                 b = other.state_dict().at(name).to_vector(), w = before.at(name).to_vector();
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double may = 0x1p-24 * (2 * n_rows * terms[i] + 8 * (std::abs(w[i]) + terms[i]));
        const double ratio = std::abs(a[i] - b[i]) / may;
        worst = ratio <= worst ? worst : ratio;
      }
    }
    return worst;
  };

  for (int64_t k : {2, 3, 6}) {
    config.accumulation = k, config.batch_size = B / k;
    Trainer parts(config);
    int64_t at = 0;
    const StepResult many = parts.step([&] {
      at += B / k;
      return rows(all, at - B / k, at);
    });
    CAPTURE(k);
    CHECK(many.tokens == one.tokens);
    // Each loss is a mean of n float32 terms below 8.
    CHECK(std::abs(many.loss - one.loss) <= 2 * n_rows * 0x1p-24 * one.loss);
    CHECK(std::abs(many.grad_norm - one.grad_norm) <= 2 * n_rows * 0x1p-24 * one.grad_norm);
    const double share = differs(parts);
    std::cout << "FIGURE | accumulation of " << k << " batches against one, share of the bound | "
              << share << "\n";
    CHECK(share <= 1);
  }

  // The check sees the mistakes it is there for: batches weighed alike, the first batch forgotten,
  // and batches not weighed at all.
  const auto mistaken = [&](double first, double second) {
    Trainer wrong(config);
    const StateDict target = wrong.state_dict();
    for (const auto& [part, weight] :
         {std::pair(rows(all, 0, B / 2), first), std::pair(rows(all, B / 2, B), second)})
      (wrong.model.loss(part.inputs, part.targets) * weight).backward();
    NoGradGuard no_grad;
    for (const auto& [name, x] : wrong.model.named_parameters()) {
      auto* w = static_cast<float*>(x.data());
      const auto g = x.grad().to_vector();
      for (std::size_t i = 0; i < g.size(); ++i)
        w[i] -= static_cast<float>(g[i] / (1 + std::abs(g[i]) / 1000));
    }
    return differs(wrong);
  };
  const double n1 = static_cast<double>(rows(all, 0, B / 2).counted),
               n = static_cast<double>(all.counted);
  CHECK(mistaken(n1 / n, 1 - n1 / n) <= 1);
  CHECK(mistaken(0.5, 0.5) > 1);
  CHECK(mistaken(0, 1 - n1 / n) > 1);
  CHECK(mistaken(1, 1) > 1);
}

TEST_CASE("a run goes on from any step in the same bytes, dropout on (R61)") {
  for (const bool other : {false, true}) {
    TrainConfig config = small_config();
    if (other) {
      config.model.norm = "layer_norm", config.model.position = "learned";
      config.model.bias = true, config.model.tied_head = false, config.model.xsa_gate = true;
    }
    Trainer whole(config);
    Loader loader = make_loader(config);
    std::vector<StateDict> states;
    std::vector<json> progress;
    std::vector<Loader::State> places;
    std::vector<StepResult> results;
    while (!whole.done()) {
      states.push_back(copy_of(whole.state_dict()));
      progress.push_back(json::parse(whole.progress().dump()));
      places.push_back(loader.state());
      results.push_back(step(whole, loader));
    }
    const auto last = bytes(whole.state_dict());
    for (std::size_t i = 0; i < states.size(); i += other ? 5 : 1) {
      CAPTURE(i);
      TrainConfig same = config;
      Trainer resumed(same);
      resumed.load(states[i], progress[i]);
      Loader from = make_loader(config);
      from.set_state(places[i]);
      CHECK(resumed.steps() == static_cast<int64_t>(i));
      for (std::size_t j = i; j < results.size(); ++j) {
        const StepResult r = step(resumed, from);
        CHECK(r.loss == results[j].loss);
        CHECK(r.grad_norm == results[j].grad_norm);
        CHECK(r.lr == results[j].lr);
        CHECK(r.tokens == results[j].tokens);
      }
      CHECK(resumed.done());
      CHECK(bytes(resumed.state_dict()) == last);
      CHECK(resumed.progress() == whole.progress());
    }
    // Dropout's place matters: without it the run is another one.
    Trainer forgotten(config);
    json without = progress[3];
    without["rng"] = progress[0]["rng"];
    forgotten.load(states[3], without);
    Loader from = make_loader(config);
    from.set_state(places[3]);
    CHECK(step(forgotten, from).loss != results[3].loss);
  }
}

TEST_CASE("1, 2, 3 and 7 threads give the same bytes") {
  const int before = num_threads();
  for (const char* attention : {"xsa", "sa"}) {
    TrainConfig config = small_config();
    config.model.attention = attention;
    config.model.n_embd = 96, config.batch_size = 7;
    std::map<std::string, std::string> first;
    for (int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      set_num_threads(threads);
      Trainer trainer(config);
      Loader loader = make_loader(config);
      for (int i = 0; i < 4; ++i) step(trainer, loader);
      if (threads == 1) first = bytes(trainer.state_dict());
      CHECK(bytes(trainer.state_dict()) == first);
    }
  }
  set_num_threads(before);
}

TEST_CASE("a loss that is not finite names step and parameter, and changes nothing") {
  const TrainConfig config = small_config();
  Trainer trainer(config), untroubled(config);
  Loader loader = make_loader(config), other = make_loader(config);
  step(trainer, loader), step(trainer, loader);
  step(untroubled, other), step(untroubled, other);

  const Loader::State place = loader.state();
  const auto* names = "h.1.mlp.c_fc.weight";
  auto* w = static_cast<float*>(parameter_named(trainer, names).data());
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const float good = std::exchange(w[17], bad);
    const auto before = bytes(trainer.state_dict());
    const json progress = trainer.progress();
    const std::string message = fault(trainer, loader);
    CHECK(message.rfind("step 3: the loss is ", 0) == 0);
    CHECK(message.find("h.1.mlp.c_fc.weight is not finite") != std::string::npos);
    CHECK(bytes(trainer.state_dict()) == before);
    CHECK(trainer.progress() == progress);
    CHECK(trainer.steps() == 2);
    for (const auto& [name, x] : trainer.model.named_parameters()) CHECK(!x.grad().defined());
    w[17] = good;
    loader.set_state(place);
  }
  // Mended, it goes on as if nothing had been.
  CHECK(step(trainer, loader).loss == step(untroubled, other).loss);
  CHECK(bytes(trainer.state_dict()) == bytes(untroubled.state_dict()));
}

TEST_CASE("a learning rate that blows up stops at the step after, with the state before it") {
  TrainConfig config = small_config();
  config.lr = 1e30, config.warmup = 0;
  Trainer trainer(config);
  Loader loader = make_loader(config);
  step(trainer, loader);
  const auto before = bytes(trainer.state_dict());
  const std::string message = fault(trainer, loader);
  CHECK(message.rfind("step 2: ", 0) == 0);
  CHECK(message.find(".weight is not finite") != std::string::npos);
  CHECK(bytes(trainer.state_dict()) == before);
  // Its kind tells it from other faults, against which a lower rate is no help.
  CHECK_THROWS_AS(step(trainer, loader), NotFinite);
  try {
    trainer.step([] { return Batch{zeros({1, 2}, kInt64), zeros({1, 3}, kInt64), 3}; });
    FAIL("shapes that do not fit");
  } catch (const std::runtime_error& error) {
    CHECK(!dynamic_cast<const NotFinite*>(&error));
    CHECK(std::string(error.what()).rfind("step 2: ", 0) == 0);
  }
  CHECK(bytes(trainer.state_dict()) == before);
  CHECK(trainer.steps() == 1);
}

TEST_CASE("no step but the first takes tensor memory from the system, and none leaks") {
  for (const char* attention : {"xsa", "sa"}) {
    TrainConfig config = small_config();
    config.model.attention = attention;
    config.steps = 60;
    Trainer trainer(config);
    Loader loader = make_loader(config);
    step(trainer, loader);
    const MemoryStats first = memory_stats();
    for (int i = 0; i < 50; ++i) step(trainer, loader);
    const MemoryStats last = memory_stats();
    std::cout << "FIGURE | " << attention
              << ": tensor memory from the system in steps 2 to 51, allocations | "
              << last.system_allocations - first.system_allocations << "\n"
              << "FIGURE | " << attention << ": live tensor bytes after step 1 and after step 51 | "
              << first.bytes_in_use << " and " << last.bytes_in_use << "\n";
    CHECK(first.bytes_in_use > 0);
    CHECK(last.system_allocations == first.system_allocations);
    CHECK(last.bytes_in_use == first.bytes_in_use);
    CHECK(last.blocks_in_use == first.blocks_in_use);
  }
}

TEST_CASE("learning rate, steps and tokens") {
  TrainConfig config = small_config();
  config.steps = 0, config.minutes = 1;
  Trainer trainer(config);
  Loader loader = make_loader(config);
  CHECK(!trainer.done());
  const StepResult first = step(trainer, loader);
  CHECK(first.step == 1);
  CHECK(first.tokens == 4 * 2 * 32);
  CHECK(first.lr == 1e-2 / 4);  // of the warm-up of 3 steps the first: not 0 (R57)
  for (int i = 0; i < 4; ++i) step(trainer, loader);
  CHECK(!trainer.done());
  trainer.set_total_steps(6);
  CHECK(trainer.progress().at("steps") == 6);
  const StepResult last = step(trainer, loader);
  CHECK(trainer.done());
  CHECK(last.tokens == 6 * 4 * 2 * 32);
  // The cosine from step 3 to step 6, of which this is step 5.
  CHECK(last.lr == doctest::Approx(1e-3 + 9e-3 * 0.5 * (1 + std::cos(3.14159265358979 * 2 / 3))));
}

TEST_CASE("the configuration as JSON: there and back, and nothing else") {
  const TrainConfig config = small_config();
  const json j = config;
  CHECK(json(json::parse(j.dump()).get<TrainConfig>()) == j);
  CHECK(j.size() == 21);
  const auto refused = [&](const char* key, const json& value, const char* why) {
    json bad = j;
    bad[key] = value;
    CAPTURE(key);
    CHECK_THROWS_WITH_AS(bad.get<TrainConfig>(), doctest::Contains(why), std::invalid_argument);
  };
  refused("learning_rate", 1, "TrainConfig: unknown key \"learning_rate\"");
  refused("lr", "1e-3", "TrainConfig: lr must be a number; got \"1e-3\"");
  refused("nesterov", 1, "TrainConfig: nesterov must be true or false; got 1");
  refused("optimizer", 1, "TrainConfig: optimizer must be a string; got 1");
  refused("optimizer", "lion",
          "TrainConfig: optimizer must be one of adamw, adam, sgd, muon; got \"lion\"");
  refused("schedule", "", "TrainConfig: schedule must be one of cosine, constant, wsd; got \"\"");
  refused("decay", 1.5, "decay must be in [0, 1]; got 1.5");
  refused("momentum", 1, "momentum must be in [0, 1); got 1");
  refused("muon_lr", 0, "muon_lr must be a finite number above 0; got 0");
  refused("lr", -1, "lr must be a finite number above 0; got -1");
  refused("steps", 1.5, "TrainConfig: steps must be an integer; got 1.5");
  refused("steps", 0, "wanted steps or minutes");
  refused("seed", -1, "TrainConfig: seed must be an integer of at least 0; got -1");
  refused("batch_size", 0, "batch_size must be at least 1; got 0");
  refused("accumulation", 0, "accumulation must be at least 1");
  refused("eval_interval", 0, "eval_interval must be at least 1");
  refused("warmup", -1, "warmup must be at least 0");
  refused("beta2", 1, "beta1 and beta2 must be in [0, 1)");
  refused("clip", 0, "clip must be a finite number above 0");
  CHECK_THROWS_AS(json(3).get<TrainConfig>(), std::invalid_argument);
  CHECK_THROWS_AS(json::object().get<TrainConfig>(), std::invalid_argument);
}

TEST_CASE("a state that does not fit is refused, naming what") {
  const TrainConfig config = small_config();
  Trainer trainer(config);
  const StateDict good = copy_of(trainer.state_dict());
  const json progress = trainer.progress();
  const auto refused = [&](const StateDict& state, const json& p, const char* why) {
    Trainer other(config);
    CHECK_THROWS_WITH_AS(other.load(state, p), doctest::Contains(why), std::exception);
  };
  StateDict missing = good, extra = good, shape = good, dtype = good, moment = good, foreign = good;
  missing.erase("model.h.0.attn.c_proj.weight");
  refused(missing, progress, "missing: h.0.attn.c_proj.weight");
  extra["model.h.2.ln_1.weight"] = zeros({32});
  refused(extra, progress, "unexpected: h.2.ln_1.weight");
  shape["model.ln_f.weight"] = zeros({33});
  refused(shape, progress, "ln_f.weight: wanted");
  dtype["model.ln_f.weight"] = zeros({32}, kFloat64);
  refused(dtype, progress, "ln_f.weight: wanted");
  moment.erase("optimizer.wte.weight.exp_avg_sq");
  refused(moment, progress, "missing: wte.weight.exp_avg_sq");
  moment = good;
  moment.erase("optimizer.step");  // R62: no raw key error
  refused(moment, progress, "missing: step");
  foreign["ema.wte.weight"] = zeros({1});
  refused(foreign, progress, "unexpected tensor ema.wte.weight");
  json bad = progress;
  bad["step"] = -1;
  refused(good, bad, "must not be negative");
  for (const char* key : {"step", "tokens", "steps", "rng"}) {
    bad = progress;
    bad.erase(key);
    refused(good, bad, key);
  }
}
