// The n-gram: probabilities that sum to 1, counts by hand, the known losses on Shakespeare, and how
// it fares on the stories.
#include "tutorials/demos/ngram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "tutorials/demos/stories.h"

using namespace pellucid;
using namespace pellucid::demos;

TEST_CASE("counts and both smoothings, by hand") {
  // "abab": after a: b twice; after b: a once. Alone: a twice, b twice. V = 3.
  NGram tenth(2, "abc", Smoothing::kAddTenth), bell(2, "abc", Smoothing::kWittenBell);
  tenth.count("abab");
  bell.count("abab");
  CHECK(tenth.counted() == 4);
  CHECK(std::exp(tenth.log_prob("a", 'b')) == doctest::Approx(2.1 / 2.3));
  CHECK(std::exp(tenth.log_prob("xyza", 'b')) == doctest::Approx(2.1 / 2.3));  // the last only
  CHECK(std::exp(tenth.log_prob("", 'c')) == doctest::Approx(0.1 / 4.3));
  CHECK(std::exp(tenth.log_prob("c", 'a')) == doctest::Approx(1.0 / 3));
  const double a = (2 + 2 / 3.0) / 6, c = (2 / 3.0) / 6;
  CHECK(std::exp(bell.log_prob("", 'a')) == doctest::Approx(a));
  CHECK(std::exp(bell.log_prob("b", 'a')) == doctest::Approx((1 + a) / 2));
  CHECK(std::exp(bell.log_prob("a", 'c')) == doctest::Approx(c / 3));
  CHECK(std::exp(bell.log_prob("c", 'a')) == doctest::Approx(a));
  CHECK(bell.log_prob("a", "ba") == doctest::Approx(std::log((2 + a) / 3 * (1 + a) / 2)));
  CHECK(bell.loss("ba", "a") == doctest::Approx(-bell.log_prob("a", "ba") / 2));
  CHECK(bell.loss("") == 0);
}

TEST_CASE("probabilities sum to 1 after any context, and parts make the same stream") {
  const std::string alphabet = "\n abcde", text = "abba cade\nbead dab\nace bee dab cab\n";
  for (const Smoothing smoothing : {Smoothing::kAddTenth, Smoothing::kWittenBell}) {
    for (int order = 1; order <= 8; ++order) {
      NGram whole(order, alphabet, smoothing), parts(order, alphabet, smoothing);
      whole.count(text);
      for (std::size_t i = 0; i < text.size(); i += 3) parts.count(text.substr(i, 3));
      for (const std::string context : {"", "\n", "ab", "cab da", "eeeeeeee", "bead dab\nace"}) {
        double sum = 0;
        for (const char c : alphabet) {
          sum += std::exp(whole.log_prob(context, c));
          CHECK(whole.log_prob(context, c) == parts.log_prob(context, c));
        }
        CHECK(sum == doctest::Approx(1).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("a stream that ended is no context for the next") {
  NGram joined(2, "ab"), ended(2, "ab");
  for (NGram* model : {&joined, &ended}) {
    model->count("a");
    if (model == &ended) model->end_stream();
    model->count("b");
  }
  CHECK(joined.log_prob("a", 'b') > joined.log_prob("", 'b'));
  CHECK(ended.log_prob("a", 'b') == ended.log_prob("", 'b'));
}

TEST_CASE("what it cannot read is an error") {
  CHECK_THROWS_AS(NGram(0, "ab"), std::invalid_argument);
  CHECK_THROWS_AS(NGram(9, "ab"), std::invalid_argument);
  CHECK_THROWS_AS(NGram(2, ""), std::invalid_argument);
  CHECK_THROWS_AS(NGram(2, "aba"), std::invalid_argument);
  NGram model(2, "ab");
  CHECK_THROWS_AS(model.count("abc"), std::invalid_argument);
  CHECK_THROWS_AS(model.log_prob("a", 'c'), std::invalid_argument);
}

TEST_CASE("Shakespeare: the known losses of n = 1 .. 5") {
  const char* folder = std::getenv("PELLUCID_DATA");
  if (!folder) {
    MESSAGE("skipped: PELLUCID_DATA is not set");
    return;
  }
  std::ifstream file(std::string(folder) + "/tinyshakespeare.txt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  REQUIRE(text.size() == 1115394);
  const std::set<char> characters(text.begin(), text.end());
  const std::string alphabet(characters.begin(), characters.end());
  const std::size_t cut = text.size() * 9 / 10;
  const double known[] = {3.347, 2.484, 2.046, 1.784, 1.788};
  for (int n = 1; n <= 5; ++n) {
    NGram tenth(n, alphabet, Smoothing::kAddTenth);
    tenth.count(text.substr(0, cut));
    CHECK(std::abs(tenth.loss(text.substr(cut)) - known[n - 1]) <= 0.0005);
  }
  NGram bell(5, alphabet);
  bell.count(text.substr(0, cut));
  const double loss = bell.loss(text.substr(cut));
  CHECK(loss < 1.70);
  std::printf("FIGURE | Shakespeare: 5-gram, Witten-Bell, nats/char | %.4f\n", loss);
}

TEST_CASE("stories: the 5-gram is far above the floor and recalls no better than chance") {
  Generator train{.seed = 1, .stream = 1}, held_out{.seed = 1, .stream = 2};
  NGram tenth(5, story_alphabet(), Smoothing::kAddTenth), bell(5, story_alphabet());
  for (NGram* model : {&tenth, &bell}) model->count("\n");
  while (bell.counted() < 2'000'000) {
    const std::string story = sample_story(train);
    tenth.count(story);
    bell.count(story);
  }
  std::vector<std::string> stories;
  std::vector<Recall> asked;
  std::string text;
  for (int i = 0; i < 500; ++i) {
    stories.push_back(sample_story(held_out));
    text += stories.back();
    for (Recall& recall : recalls(stories.back())) asked.push_back(std::move(recall));
  }
  const double loss = bell.loss(text, "\n"), floor = entropy_floor(stories);
  const RecallRate rate = recall_rate(asked, [&](const auto& prefix, const auto& word) {
    return bell.log_prob("\n" + prefix, std::string_view(word));
  });
  CHECK(loss < tenth.loss(text, "\n"));
  CHECK(loss > 3 * floor);
  CHECK(std::abs(rate.right - rate.chance) < 5 * std::sqrt(0.1 / double(asked.size())));
  std::printf("FIGURE | stories: 5-gram, nats/char (floor %.4f) | %.4f\n", floor, loss);
  std::printf("FIGURE | stories: 5-gram's recall (chance %.3f) | %.3f\n", rate.chance, rate.right);
}
