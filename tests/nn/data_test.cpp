// Reading texts, and the windows that training and validation see: every token but the first is a
// target once an epoch, resuming anywhere gives the same batches.
#include "nn/data.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "nn/trainer.h"
#include "tensor/file_helpers.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

const int64_t* ids(const Tensor& x) { return static_cast<const int64_t*>(x.data()); }

// 0, 1, 2, ...: each token tells its own place in the text.
std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < n; ++i) tokens.push_back(i);
  return tokens;
}

// Checks one row: inputs are T tokens in a row, and each target that counts is the next token.
// Returns the places of those.
std::vector<int64_t> check_row(const int64_t* x, const int64_t* y, int64_t T) {
  std::vector<int64_t> targets;
  for (int64_t t = 0; t < T; ++t) {
    if (t > 0 && y[t] != kIgnore && y[t - 1] != kIgnore) CHECK(x[t] == x[t - 1] + 1);
    if (y[t] == kIgnore) continue;
    CHECK(y[t] == x[t] + 1);
    targets.push_back(y[t]);
  }
  return targets;
}

bool same(const Batch& a, const Batch& b) {
  return a.counted == b.counted &&
         std::equal(ids(a.inputs), ids(a.inputs) + a.inputs.numel(), ids(b.inputs)) &&
         std::equal(ids(a.targets), ids(a.targets) + a.targets.numel(), ids(b.targets));
}

std::string fault(const std::string& path) {
  return fault_of(path, [&] { read_text(path); });
}

}  // namespace

TEST_CASE("a text comes back byte for byte") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a text");
  for (const std::string& text :
       {std::string("x"), std::string("a\r\n\tb\n"), std::string("\xc3\xa9\xff\x7f"),
        std::string("page\fbell-free\x1b[1m\b\n"), std::string(100000, 'a')}) {
    spit(path, text);
    CHECK(read_text(path) == text);
  }
}

TEST_CASE("what is no text file is refused with the repair") {
  const TemporaryFolder folder;
  const std::string path = folder.file("data");
  CHECK(fault(path) == "no such file; give the path of a text file");
  CHECK(fault(path + "/deeper") == "no such file; give the path of a text file");
  CHECK(fault(folder.path.string()) == "is a folder; give a text file inside it");
  spit(path, "");
  CHECK(fault(path) == "is empty; give a text file");
  spit(path, std::string("ab\0cd", 5));
  CHECK(fault(path) == "looks binary (byte 0 at position 2); give a plain text file");
  for (int byte = 1; byte < 32; ++byte) {
    if (std::string("\t\n\r\f\b\x1b").find(static_cast<char>(byte)) != std::string::npos) continue;
    spit(path, std::string("a") + static_cast<char>(byte));
    CHECK(fault(path).find("looks binary (byte " + std::to_string(byte) + " at position 1)") == 0);
  }

  // Neither may be waited for: nobody writes into the pipe, and the device never ends.
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(fault(pipe) == "is no ordinary file; give a text file");
  CHECK(fault("/dev/zero") == "is no ordinary file; give a text file");
}

TEST_CASE("every token but the first is a target exactly once an epoch") {
  // From one window to several, with B that divides the windows and that does not; 3 T epochs meet
  // every phase.
  for (int64_t T : {1, 2, 3, 8})
    for (int64_t n : {T + 1, T + 2, 2 * T, 2 * T + 1, 3 * T + 2, 7 * T + 5})
      for (int64_t B : {1, 2, 5}) {
        if (n < T + 1) continue;
        CAPTURE(T);
        CAPTURE(n);
        CAPTURE(B);
        Loader loader(counting(n), B, T, 7);
        std::map<int64_t, std::map<int64_t, int>> seen;  // [epoch][target]: how often
        int64_t total = 0;
        Loader::State at = loader.state();
        int64_t windows = loader.windows();
        while (at.epoch < 3 * T) {
          const Batch batch = loader.next();
          REQUIRE(batch.inputs.shape() == Shape{B, T});
          REQUIRE(batch.targets.shape() == Shape{B, T});
          int64_t counted = 0;
          for (int64_t b = 0; b < B; ++b) {
            if (at.next == windows) {  // this row begins the next epoch
              ++at.epoch, at.next = 0;
              Loader ahead(counting(n), B, T, 7);
              ahead.set_state(at);
              windows = ahead.windows();
            }
            ++at.next;
            for (int64_t target :
                 check_row(ids(batch.inputs) + b * T, ids(batch.targets) + b * T, T))
              ++seen[at.epoch][target], ++counted;
          }
          CHECK(batch.counted == counted);
          REQUIRE(loader.state().epoch == at.epoch);
          REQUIRE(loader.state().next == at.next);
          total += counted;
        }
        for (int64_t epoch = 0; epoch < 3 * T; ++epoch) {
          CHECK(seen[epoch].size() == static_cast<std::size_t>(n - 1));
          for (const auto& [target, times] : seen[epoch])
            if (times != 1 || target == 0) FAIL("target " << target << " came " << times);
        }
        CHECK(total >= 3 * T * (n - 1));
      }
}

TEST_CASE("epochs differ in order and phase, seeds differ, and one seed repeats itself") {
  constexpr int64_t n = 400, T = 8;
  const auto first_inputs = [&](uint64_t seed, int64_t epoch) {
    Loader loader(counting(n), 1, T, seed);
    loader.set_state({epoch, 0});
    std::vector<int64_t> starts;
    for (int64_t w = loader.windows(); w > 0; --w) starts.push_back(ids(loader.next().inputs)[0]);
    return starts;
  };
  CHECK(first_inputs(1, 0) == first_inputs(1, 0));
  CHECK(first_inputs(1, 0) != first_inputs(1, 1));
  CHECK(first_inputs(1, 0) != first_inputs(2, 0));

  // All phases come: the windows of an epoch begin at phase + k T.
  std::set<int64_t> phases;
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    std::map<int64_t, int> rests;
    for (int64_t start : first_inputs(1, epoch)) ++rests[start % T];
    phases.insert(std::max_element(rests.begin(), rests.end(), [](auto& a, auto& b) {
                    return a.second < b.second;
                  })->first);
  }
  CHECK(phases.size() == T);
}

TEST_CASE("resuming at any window gives the same batches") {
  constexpr int64_t n = 61, B = 3, T = 5;
  Loader whole(counting(n), B, T, 11);
  std::vector<Loader::State> states;
  std::vector<Batch> batches;
  for (int i = 0; i < 20; ++i) {  // four epochs and more
    states.push_back(whole.state());
    batches.push_back(whole.next());
  }
  CHECK(states.back().epoch >= 3);
  for (std::size_t i = 0; i < states.size(); ++i) {
    Loader resumed(counting(n), B, T, 11);
    resumed.set_state(states[i]);
    for (std::size_t j = i; j < states.size(); ++j) CHECK(same(resumed.next(), batches[j]));
  }
}

TEST_CASE("a text shorter than a window is refused with both numbers; T + 1 tokens are enough") {
  for (int64_t n = 0; n <= 8; ++n) {
    CAPTURE(n);
    CHECK_THROWS_WITH_AS(
        Loader(counting(n), 2, 8, 1),
        doctest::Contains(
            (std::to_string(n) + " tokens for training are too few for windows of 8").c_str()),
        std::invalid_argument);
  }
  Loader loader(counting(9), 2, 8, 1);
  CHECK(loader.next().counted > 0);
  CHECK_THROWS_AS(Loader(counting(9), 0, 8, 1), std::invalid_argument);
  CHECK_THROWS_AS(Loader(counting(9), 1, 0, 1), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Loader(counting(9), 1, INT64_MAX, 1),
                       doctest::Contains("more than 9223372036854775807 are needed"),
                       std::invalid_argument);
  CHECK_THROWS_AS(loader.set_state({-1, 0}), std::invalid_argument);
  CHECK_THROWS_AS(loader.set_state({0, -1}), std::invalid_argument);
  CHECK_THROWS_AS(loader.set_state({0, 1000}), std::invalid_argument);
}

TEST_CASE("validation sees every token but the first as a target once, in order") {
  for (int64_t T : {1, 3, 8})
    for (int64_t B : {1, 2, 5})
      for (int64_t n : {2, 3, 4, 8, 9, 10, 17, 40, 41}) {
        CAPTURE(T);
        CAPTURE(B);
        CAPTURE(n);
        std::vector<int64_t> targets;
        int64_t counted = 0, rows = 0;
        for (const Batch& batch : validation_batches(counting(n), B, T)) {
          CHECK(batch.inputs.size(1) == T);
          CHECK(batch.inputs.size(0) <= B);
          rows += batch.inputs.size(0);
          counted += batch.counted;
          for (int64_t b = 0; b < batch.inputs.size(0); ++b)
            for (int64_t t : check_row(ids(batch.inputs) + b * T, ids(batch.targets) + b * T, T))
              targets.push_back(t);
        }
        CHECK(counted == n - 1);
        CHECK(rows == (n - 1 + T - 1) / T);
        CHECK(targets.size() == static_cast<std::size_t>(n - 1));
        for (std::size_t i = 0; i < targets.size(); ++i)
          CHECK(targets[i] == static_cast<int64_t>(i) + 1);
      }
  CHECK(validation_batches(counting(9), INT64_MAX, 4).size() == 1);
  CHECK_THROWS(validation_batches(counting(9), 1, INT64_MAX));  // no memory holds such a window
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {0, 0}, {-1, 4}, {4, -1}})
    CHECK_THROWS_WITH_AS(validation_batches(counting(9), B, T),
                         doctest::Contains("validation: B and T must be at least 1; got"),
                         std::invalid_argument);
  CHECK_THROWS_AS(validation_batches({}, 1, 8), std::invalid_argument);
  CHECK_THROWS_AS(validation_batches({5}, 1, 8), std::invalid_argument);
}

TEST_CASE("evaluate weighs every token alike, also in a batch that counts few") {
  GPTConfig config = tiny_configs()["xsa, rms_norm, rope"];
  config.dropout = 0.5;  // off while evaluating
  GPT model = tiny_gpt(config, 3);
  std::vector<int64_t> tokens;
  Generator rng{.seed = 5};
  for (int i = 0; i < 6 * 4 + 3; ++i) tokens.push_back(rng.below(config.vocab_size));

  // The reference: window by window, target by target.
  const double in_batches = evaluate(model, validation_batches(tokens, 4, 6));
  CHECK(model.training());
  model.eval();
  double sum = 0;
  int64_t counted = 0;
  NoGradGuard no_grad;
  for (const Batch& window : validation_batches(tokens, 1, 6)) {
    for (int64_t t = 0; t < 6; ++t) {
      if (ids(window.targets)[t] == kIgnore) continue;
      std::vector<int64_t> only(6, kIgnore);
      only[static_cast<std::size_t>(t)] = ids(window.targets)[t];
      sum += model.loss(window.inputs, from_vector(only, {1, 6})).item();
      ++counted;
    }
  }
  CHECK(counted == static_cast<int64_t>(tokens.size()) - 1);
  // Two orders of adding 26 numbers near 2, and of averaging: n u times their mean.
  CHECK(std::abs(in_batches - sum / static_cast<double>(counted)) <=
        100 * 0x1p-53 * sum / static_cast<double>(counted));

  // Broken off: not a number.
  int calls = 0;
  CHECK(std::isnan(
      evaluate(model, validation_batches(tokens, 1, 6), [&](int64_t done, int64_t total) {
        CHECK(done == ++calls);
        CHECK(total == 5);
        return done < 2;
      })));
  CHECK(calls == 2);
}

TEST_CASE("documents: no row holds two, every token behind an end is a target once, cuts move") {
  // 0 ends a document; the others tell document and place: 100 d + i.
  std::vector<int64_t> tokens = {0};
  std::map<int64_t, int64_t> lengths;
  for (int64_t d = 1; d <= 23; ++d) {
    lengths[d] = d * 7 % 19 + 1;  // 1 .. 19
    for (int64_t i = 1; i <= lengths[d]; ++i) tokens.push_back(100 * d + i);
    tokens.push_back(0);
  }
  const auto targets_of = [&](const Batch& batch, std::map<int64_t, int>& seen) {
    const int64_t T = batch.inputs.size(1);
    int64_t counted = 0;
    for (int64_t b = 0; b < batch.inputs.size(0); ++b) {
      const int64_t *x = ids(batch.inputs) + b * T, *y = ids(batch.targets) + b * T;
      int64_t document = 0;
      for (int64_t t = 0; t < T && y[t] != kIgnore; ++t) {
        for (const int64_t token : {x[t], y[t]}) {
          if (token == 0) continue;
          if (document == 0) document = token / 100;
          REQUIRE(token / 100 == document);
        }
        if (x[t] == 0) REQUIRE(t == 0);  // only a document's beginning
        if (t > 0) REQUIRE(x[t] == y[t - 1]);
        REQUIRE(y[t] == (x[t] % 100 == lengths[document] ? 0
                         : x[t] == 0                     ? 100 * document + 1
                                                         : x[t] + 1));
        ++seen[y[t] == 0 ? -document : y[t]];
        ++counted;
      }
      for (int64_t t = 1; t < T; ++t)
        if (y[t - 1] == kIgnore) REQUIRE(y[t] == kIgnore);
    }
    CHECK(counted == batch.counted);
  };
  for (const int64_t T : {1, 4, 8, 19, 20, 64})
    for (const int64_t B : {1, 3}) {
      CAPTURE(T);
      CAPTURE(B);
      std::map<int64_t, int> once;
      for (const Batch& batch : validation_batches(tokens, B, T, 0)) {
        CHECK(batch.inputs.size(1) <= T);
        CHECK(batch.inputs.numel() <= B * T);
        targets_of(batch, once);
      }
      CHECK(std::ssize(once) == std::ssize(tokens) - 1);
      for (const auto& [token, times] : once) CHECK(times == 1);

      Loader loader(tokens, B, T, 5, 0);
      std::map<int64_t, std::map<int64_t, int>> seen;
      std::vector<Loader::State> states;
      std::vector<Batch> batches;
      while (loader.state().epoch < 3) {
        states.push_back(loader.state());
        batches.push_back(loader.next());
        if (loader.state().epoch < 3) targets_of(batches.back(), seen[loader.state().epoch]);
      }
      for (const auto& [epoch, targets] : seen) CHECK(targets == once);
      for (std::size_t i = 0; i < states.size(); i += 5) {
        Loader resumed(tokens, B, T, 5, 0);
        resumed.set_state(states[i]);
        for (std::size_t j = i; j < states.size(); ++j) CHECK(same(resumed.next(), batches[j]));
      }
    }
  CHECK_THROWS_WITH_AS(Loader({1, 2, 0}, 1, 4, 1, 0),
                       "data: documents must stand between end-of-text tokens, 0 first and last",
                       std::invalid_argument);
  CHECK_THROWS_AS(Loader({0}, 1, 4, 1, 0), std::invalid_argument);
}

TEST_CASE("a document's loss is what it is alone, whatever lies beside it") {
  GPTConfig config = tiny_configs()["xsa, rms_norm, rope"];
  GPT model = tiny_gpt(config, 3);
  std::vector<int64_t> tokens = {0};
  std::vector<std::vector<int64_t>> documents;
  Generator rng{.seed = 5};
  for (int d = 0; d < 9; ++d) {
    documents.push_back({0});
    for (int64_t n = 1 + rng.below(config.block_size - 1); n > 0; --n)
      documents.back().push_back(1 + rng.below(config.vocab_size - 1));
    documents.back().push_back(0);
    tokens.insert(tokens.end(), documents.back().begin() + 1, documents.back().end());
  }
  double sum = 0;
  for (const auto& d : documents) {
    const int64_t n = std::ssize(d) - 1;
    NoGradGuard no_grad;
    model.eval();
    sum += static_cast<double>(n) *
           model
               .loss(from_vector(std::vector<int64_t>(d.begin(), d.end() - 1), {1, n}),
                     from_vector(std::vector<int64_t>(d.begin() + 1, d.end()), {1, n}))
               .item();
  }
  const double each = sum / static_cast<double>(tokens.size() - 1);
  // float64 sums of fewer than 100 terms near their mean, in another order.
  CHECK(std::abs(evaluate(model, validation_batches(tokens, 3, config.block_size, 0)) - each) <=
        100 * 0x1p-53 * each);
}
