// The story grammar: one derivation a text, exact probabilities, and a recogniser that notices
// every changed fact.
#include "tutorials/demos/stories.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

using namespace pellucid;
using namespace pellucid::demos;

namespace {

std::vector<std::string> sample(int64_t count, uint64_t seed) {
  Generator rng{.seed = seed};
  std::vector<std::string> stories;
  for (int64_t i = 0; i < count; ++i) stories.push_back(sample_story(rng));
  return stories;
}

std::vector<Domain> small_domains() {
  return {{"name", {"", "he"}, {{"Ann", "she"}, {"Bo", "he"}, {"Cy", "he"}}},
          {"place", {""}, {{"here"}, {"there"}}}};
}

// Two plots, weights, two variables of one domain, a form, a capital: 3 * 2 * 2 * 2 + 3 texts.
Grammar small_grammar() {
  return Grammar(small_domains(), {{"a", "name"}, {"b", "name"}, {"at", "place"}},
                 {{3,
                   {{{1, "[a] saw [b] [at]."}, {3, "[b] met [a], who was [at]."}},
                    {{1, "{a.He} left {at?}."}}}},
                  {1, {{{1, "[a] ran."}}}}});
}

// A grammar of one plot whose steps are these lines, each of weight 1.
Grammar grammar_of(const std::vector<std::vector<std::string>>& steps) {
  Plot plot{1, {}};
  for (const auto& lines : steps) {
    Step& step = plot.steps.emplace_back();
    for (const std::string& line : lines) step.push_back({1, line});
  }
  return Grammar(small_domains(), {{"a", "name"}, {"b", "name"}, {"at", "place"}}, {plot});
}

}  // namespace

TEST_CASE("small grammar: the exact figures are those of the full enumeration") {
  const Grammar grammar = small_grammar();
  std::map<std::string, double> all;
  int64_t derivations = 0;
  grammar.enumerate([&](const std::string& text, double p) {
    all[text] += p;
    ++derivations;
  });
  CHECK(all.size() == 27);
  CHECK(derivations == 27);
  CHECK(grammar.count() == 27);
  double sum = 0, entropy = 0, length = 0, collision = 0;
  std::size_t longest = 0;
  for (const auto& [text, p] : all) {
    sum += p;
    entropy -= p * std::log(p);
    length += p * double(text.size());
    collision += p * p;
    longest = std::max(longest, text.size());
    CHECK(std::exp(grammar.log_probability(text).value()) == doctest::Approx(p).epsilon(1e-13));
    CHECK(grammar.count_derivations(text) == 1);
  }
  CHECK(sum == doctest::Approx(1).epsilon(1e-13));
  CHECK(grammar.entropy() == doctest::Approx(entropy).epsilon(1e-13));
  CHECK(grammar.mean_length() == doctest::Approx(length).epsilon(1e-13));
  CHECK(grammar.collision() == doctest::Approx(collision).epsilon(1e-13));
  CHECK(grammar.max_length() >= int64_t(longest));
  CHECK(all.at("Ann ran.\n") == doctest::Approx(1.0 / 12));
  CHECK(all.at("Bo met Ann, who was there. She left there.\n") ==
        doctest::Approx(0.75 * 0.75 / 12));
  CHECK_FALSE(grammar.ambiguity());
}

TEST_CASE("small grammar: sampling follows the probabilities") {
  const Grammar grammar = small_grammar();
  Generator rng{.seed = 5};
  std::map<std::string, int64_t> seen;
  const int64_t draws = 40000;
  for (int64_t i = 0; i < draws; ++i) ++seen[grammar.sample(rng)];

  // Pearson's chi-squared over 27 texts: mean 26, deviation sqrt(52); five deviations above.
  double chi_squared = 0;
  grammar.enumerate([&](const std::string& text, double p) {
    const double wanted = p * double(draws);
    chi_squared += (double(seen[text]) - wanted) * (double(seen[text]) - wanted) / wanted;
  });
  CHECK(seen.size() == 27);
  CHECK(chi_squared < 26 + 5 * std::sqrt(52.0));
}

TEST_CASE("the proof finds ambiguity of every sort") {
  // Two equal lines; lines that differ only in where they split; a value that begins another.
  CHECK(grammar_of({{"Oh.", "Oh."}}).ambiguity());
  CHECK(grammar_of({{"It", "It was"}, {"was so.", "so."}}).ambiguity());
  CHECK(grammar_of({{"[at] [a].", "[at] [a]."}}).ambiguity());
  CHECK(
      Grammar({{"d", {""}, {{"a"}, {"a a"}}}}, {{"v", "d"}, {"w", "d"}}, {{1, {{{1, "[v] [w]."}}}}})
          .ambiguity());

  // Lines that meet for one earlier value only, or for two values told in different orders.
  CHECK(grammar_of({{"[a] came."}, {"{a} fell.", "Bo fell."}}).ambiguity());
  CHECK(grammar_of({{"[a] and [b] came."}, {"{a.he} fell.", "{b.he} fell."}}).ambiguity());
  CHECK(grammar_of({{"[a] came."}, {"{a} saw [b].", "Cy saw [b]."}}).ambiguity());

  // What one of two rivals drew after they parted says nothing of the other's draws.
  CHECK(grammar_of({{"[a] {a} [b] Cy.", "Ann Ann [a] [b]."}}).ambiguity());

  // The same with nothing that can meet: distinct variables, forms that tell them apart.
  CHECK_FALSE(grammar_of({{"[a] and [b] came."}, {"{a} fell.", "{b} fell."}}).ambiguity());
  CHECK_FALSE(grammar_of({{"It", "It was"}, {"is so.", "so."}}).ambiguity());

  // They could meet only where a and b share a value, which they never do.
  CHECK_FALSE(grammar_of({{"[a] ran."}, {"{a} fell. [b]", "[b] fell. Cy"}}).ambiguity());
  CHECK_FALSE(grammar_of({{"[a] ran."}, {"[b] fell. Cy", "{a} fell. [b]"}}).ambiguity());
  CHECK_FALSE(grammar_of({{"[a] came."}, {"{a} saw [b].", "{a} met [b]."}}).ambiguity());
}

TEST_CASE("the proof agrees with counting over every text of small grammars") {
  const std::vector<std::string> lines = {"[a] saw [b].", "Ann saw [b].",  "[a] saw Bo.",
                                          "[b] saw [a].", "[a] was [at].", "It was [at]."};
  int64_t ambiguous = 0;
  for (const std::string& x : lines) {
    for (const std::string& y : lines) {
      std::optional<Grammar> grammar;
      try {
        grammar = grammar_of({{x, y}});
      } catch (const std::invalid_argument&) {
        continue;  // the lines draw different variables
      }
      std::map<std::string, int> derivations;
      grammar->enumerate([&](const std::string& text, double) { ++derivations[text]; });
      const bool two = std::any_of(derivations.begin(), derivations.end(),
                                   [](const auto& entry) { return entry.second > 1; });
      CHECK(two == grammar->ambiguity().has_value());
      for (const auto& [text, n] : derivations) CHECK(grammar->count_derivations(text) == n);
      ambiguous += two;
    }
  }
  CHECK(ambiguous >= 8);
}

TEST_CASE("a grammar that breaks its own rules is refused") {
  CHECK_THROWS_AS(grammar_of({{"{a} came."}}), std::invalid_argument);                 // not drawn
  CHECK_THROWS_AS(grammar_of({{"[a] came."}, {"[a] left."}}), std::invalid_argument);  // twice
  CHECK_THROWS_AS(grammar_of({{"[a] came.", "It came."}}), std::invalid_argument);     // not in all
  CHECK_THROWS_AS(grammar_of({{"[c] came."}}), std::invalid_argument);      // no variable
  CHECK_THROWS_AS(grammar_of({{"[a.hat] came."}}), std::invalid_argument);  // no form
  CHECK_THROWS_AS(grammar_of({{"[a came."}}), std::invalid_argument);       // bracket
}

TEST_CASE("no text has two derivations") {
  const std::optional<std::string> text = story_grammar().ambiguity();
  CHECK_MESSAGE(!text, "two derivations share: ", text.value_or(""));
  for (const std::string& story : sample(20000, 1)) {
    if (count_derivations(story) != 1) FAIL("not one derivation: ", story);
  }
}

TEST_CASE("probabilities sum to 1 after every beginning of a story") {
  const std::string alphabet = story_alphabet();
  for (const std::string& story : sample(30, 2)) {
    double before = story_grammar().prefix_probability("");
    CHECK(before == 1);
    for (std::size_t i = 0; i < story.size(); ++i) {
      std::string prefix = story.substr(0, i) + ' ';
      double sum = 0, right = 0;
      for (const char c : alphabet) {
        prefix.back() = c;
        const double p = story_grammar().prefix_probability(prefix);
        sum += p;
        if (c == story[i]) right = p;
      }
      REQUIRE(sum == doctest::Approx(before).epsilon(1e-12));
      REQUIRE(right > 0);
      before = right;
    }
    CHECK(std::log(before) == doctest::Approx(log_probability(story).value()).epsilon(1e-12));
  }
}

TEST_CASE("entropy, length and floor agree with a sample") {
  const std::vector<std::string> stories = sample(20000, 3);
  double nats = 0, nats_squared = 0, characters = 0, characters_squared = 0;
  std::set<std::string> different;
  for (const std::string& story : stories) {
    const double log_p = log_probability(story).value();
    nats -= log_p;
    nats_squared += log_p * log_p;
    characters += double(story.size());
    characters_squared += double(story.size()) * double(story.size());
    different.insert(story);
    REQUIRE(int64_t(story.size()) <= story_grammar().max_length());
  }
  const double n = double(stories.size());
  const auto error = [n](double sum, double squares) {  // of the mean
    return std::sqrt((squares / n - sum * sum / (n * n)) / n);
  };
  CHECK(std::abs(nats / n - story_grammar().entropy()) < 5 * error(nats, nats_squared));
  CHECK(std::abs(characters / n - story_grammar().mean_length()) <
        5 * error(characters, characters_squared));
  CHECK(entropy_floor(stories) == doctest::Approx(nats / characters).epsilon(1e-12));
  CHECK(std::abs(entropy_floor(stories) / entropy_floor() - 1) < 0.01);

  // Copies: of 20,000 stories the wanted number of equal pairs is collision * n^2 / 2, about 0.2.
  CHECK(different.size() >= stories.size() - 5);
  CHECK(60000 * story_grammar().collision() < 0.001);
  CHECK(story_grammar().count() > 1e8);

  // A story and the '\n' before it fit in a context of 256.
  CHECK(story_grammar().max_length() < 256);
  CHECK(story_grammar().words().size() >= 130);
  CHECK(story_grammar().words().size() <= 170);
  CHECK(story_alphabet().front() == '\n');
  std::printf("FIGURE | stories: different ones | %.4g\n", story_grammar().count());
  std::printf("FIGURE | stories: mean length, characters | %.1f\n", story_grammar().mean_length());
  std::printf("FIGURE | stories: least loss, nats/char | %.4f\n", entropy_floor());
}

TEST_CASE("a story with a changed fact, cut short or run on is no story") {
  for (const std::string& story : sample(400, 4)) {
    REQUIRE(accepts(story));
    REQUIRE_FALSE(accepts(story + '\n'));
    REQUIRE_FALSE(accepts(story + story));
    for (std::size_t size = 0; size < story.size(); ++size) {
      REQUIRE_FALSE(accepts(std::string_view(story).substr(0, size)));
    }

    // Another place, owner, liking, colour: everything the slot could hold but the fact.
    const std::vector<Recall> asked = recalls(story);
    REQUIRE(asked.size() >= 3);
    for (const Recall& recall : asked) {
      const std::string rest = story.substr(recall.prefix.size() + recall.answer.size());
      REQUIRE(recall.prefix + recall.answer + rest == story);
      REQUIRE(recall.distance >= 40);
      REQUIRE(recall.candidates.size() >= 6);
      for (const std::string& candidate : recall.candidates) {
        REQUIRE(accepts(recall.prefix + candidate + rest) == (candidate == recall.answer));
      }
    }
  }
  CHECK_FALSE(log_probability("Tom had a orange kite.\n"));
  CHECK_FALSE(accepts(""));
  CHECK(recalls("Tom had").empty());
  CHECK_THROWS_AS(entropy_floor({"Tom had a kite.\n"}), std::invalid_argument);
}

TEST_CASE("no character can be changed unnoticed, but for a choice made once") {
  // A changed character is either refused, or the text is another whole story (girl/boy, a/an ...
  // must agree): then it has one derivation and a probability of its own.
  Generator rng{.seed = 6};
  const std::string alphabet = story_alphabet();
  for (std::string story : sample(2000, 6)) {
    const std::size_t at = std::size_t(rng.below(int64_t(story.size())));
    const char was = story[at];
    story[at] = alphabet[std::size_t(rng.below(int64_t(alphabet.size())))];
    REQUIRE(count_derivations(story) <= 1);
    if (story[at] != was && accepts(story)) REQUIRE(std::isalpha(static_cast<unsigned char>(was)));
  }
}

TEST_CASE("he and she, a and an agree") {
  const std::set<std::string> girls = {"Anna", "Ella", "Lily", "Mia", "Rosa", "Zoe"};
  for (const std::string& story : sample(2000, 7)) {
    for (const char* wrong : {" a orange", " a old", " an red", " an tiny", "  ", " .", ".."}) {
      REQUIRE(story.find(wrong) == std::string::npos);
    }
    const std::size_t he = story.find(". He "), she = story.find(". She ");
    REQUIRE((he == std::string::npos || she == std::string::npos));
    if (std::min(he, she) == std::string::npos) continue;
    const std::size_t from = story.starts_with("Once ") ? 5 : 0;
    const std::string hero = story.substr(from, story.find(' ', from) - from);
    REQUIRE(girls.contains(hero) == (she != std::string::npos));
  }
}

TEST_CASE("recall: knowing the facts is 1, knowing none is nothing, a coin is chance") {
  std::vector<Recall> asked;
  for (const std::string& story : sample(300, 8)) {
    for (Recall& recall : recalls(story)) asked.push_back(std::move(recall));
  }
  const Score oracle = [](const std::string& prefix, const std::string& word) {
    return std::log(story_grammar().prefix_probability(prefix + word));
  };
  const RecallRate best = recall_rate(asked, oracle);
  CHECK(best.asked == int64_t(asked.size()));
  CHECK(best.right == 1);
  CHECK(best.chance > 1.0 / 12);
  CHECK(best.chance < 1.0 / 6);
  CHECK(recall_rate(asked, [](const auto&, const auto&) { return 0.0; }).right == 0);

  Generator rng{.seed = 9};
  std::map<std::string, double> coin;
  const RecallRate blind = recall_rate(asked, [&](const auto& prefix, const auto& word) {
    return coin.try_emplace(prefix + word, rng.uniform()).first->second;
  });
  CHECK(std::abs(blind.right - blind.chance) < 5 * std::sqrt(0.1 / double(asked.size())));
  int64_t by_kind = 0;
  for (const char* kind : {"thing", "place", "food", "animal", "colour", "coat", "name"}) {
    const RecallRate rate = recall_rate(asked, oracle, kind);
    CHECK(rate.asked > 0);
    by_kind += rate.asked;
  }
  CHECK(by_kind == best.asked);
}
