// The demo's own data: short children's stories from a grammar of about 150 words, in which a fact
// told early (who owns what, where a thing was put, what somebody likes) decides words far later.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutorials/demos/story_grammar.h"

namespace pellucid::demos {

const Grammar& story_grammar();

std::string sample_story(Generator& rng);  // one line of plain English that ends in '\n'
bool accepts(std::string_view text);       // whether the text is a story, its '\n' included
std::optional<double> log_probability(std::string_view text);  // ln p(story); none if not accepted
int64_t count_derivations(std::string_view text, int64_t limit = 1000);  // 1 for every story

// The least expected loss of any model, in nats per character: E[-ln p(story)] / E[characters].
double entropy_floor();
// The same for these stories alone: sum of -ln p over sum of characters. A model's loss on them,
// from the first character (its context the '\n' before), cannot beat it but by chance.
double entropy_floor(const std::vector<std::string>& stories);

std::string story_alphabet();  // every character that a story may hold, in order, '\n' first

// Where far-back facts decide a word of the story.
std::vector<Recall> recalls(std::string_view story);

// ln p(continuation | prefix); the prefix is a story's beginning, which a '\n' comes before.
using Score = std::function<double(const std::string& prefix, const std::string& continuation)>;

struct RecallRate {
  int64_t asked = 0;
  double right = 0;   // share where the right candidate scores highest, ties not counted
  double chance = 0;  // mean of 1 / candidates
};
// For one kind of fact, or for all when kind is "".
RecallRate recall_rate(const std::vector<Recall>& asked, const Score& score,
                       std::string_view kind = "");

}  // namespace pellucid::demos
