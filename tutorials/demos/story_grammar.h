// A grammar of stories: templates with variables, each choice with its exact probability.
//
// A story is one plot; a plot is a row of steps; a step is one of several templates. A template is
// text in which [who] draws a value for the variable `who` and {who} tells it again. A form follows
// a point ({who.his}); a capital form ({who.His}) capitalises; a last ? ({place?}) marks a
// question: a word that only the fact drawn before decides. Steps are joined by spaces; '\n' ends
// the story.
//
//   p(story) = p(plot) * product over steps of p(template) * product over draws of 1 / (n - k)
//
// n values in the domain, k of them taken before: variables of one domain never share a value.
// Sampling, scoring, recognising and the proof of unambiguity all walk one function, options().
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/random.h"

namespace pellucid::demos {

struct Domain {
  std::string name;
  std::vector<std::string> forms;  // names of the forms; the first, "", is the plain word
  std::vector<std::vector<std::string>> values;  // each value in all its forms
};

struct Variable {
  std::string name, domain;
};

struct Template {
  int64_t weight;
  std::string text;
};

using Step = std::vector<Template>;

struct Plot {
  int64_t weight;
  std::vector<Step> steps;
};

template <class Alternatives>
int64_t total_weight(const Alternatives& alternatives) {
  int64_t total = 0;
  for (const auto& alternative : alternatives) total += alternative.weight;
  return total;
}

// The probability of one of the alternatives.
template <class Alternative, class Alternatives>
double share(const Alternative& one, const Alternatives& all) {
  return double(one.weight) / double(total_weight(all));
}

// A place in a story where a fact told far back decides the next word.
struct Recall {
  std::string prefix;                   // the story up to that word
  std::string answer;                   // the one right continuation
  std::vector<std::string> candidates;  // all that the slot could hold, did one not know the fact
  std::string kind;                     // the domain asked for: "place", "food" ...
  int64_t distance;                     // characters since the fact was last told
};

class Grammar {
 public:
  Grammar(std::vector<Domain> domains, std::vector<Variable> variables, std::vector<Plot> plots);

  std::string sample(Generator& rng) const;

  // What the grammar says of a text. prefix_probability: that a story begins so; 1 for "".
  int64_t count_derivations(std::string_view text, int64_t limit = 1000) const;
  std::optional<double> log_probability(std::string_view text) const;
  double prefix_probability(std::string_view prefix) const;
  std::vector<Recall> recalls(std::string_view text) const;  // none for a text not accepted

  // A text that has two derivations, or nothing: a proof, over all stories, that none has.
  std::optional<std::string> ambiguity() const;

  // Exact figures of the distribution over stories.
  double count() const;        // different stories, if unambiguous
  double entropy() const;      // E[-log p(story)], nats
  double mean_length() const;  // E[characters], '\n' included
  int64_t max_length() const;  // a bound: every text at its longest value
  double collision() const;    // sum of p^2: the chance that two stories are the same

  // Every text with its probability, once for each derivation; for small grammars.
  void enumerate(const std::function<void(const std::string&, double)>& visit) const;

  // All different words in the values and templates, in lower case.
  std::vector<std::string> words() const;
  std::string alphabet() const;  // all different characters, in order

 private:
  static constexpr int kMaxVariables = 16;

  // One piece of a template: fixed text, or a variable drawn or told in one form.
  struct Piece {
    std::vector<std::string> texts;  // by value; one entry for fixed text
    int variable = -1;               // -1: fixed text
    bool draws = false, question = false;
  };
  using Line = std::vector<Piece>;

  // A place in a derivation: before the choice of a plot (plot < 0), of a line (line < 0), or of
  // the next piece. value[v] < 0: not known.
  struct State {
    int plot = -1, step = 0, line = -1, piece = 0;
    std::array<int8_t, kMaxVariables> value;
    bool operator==(const State&) const = default;
  };
  struct Option {
    int64_t weight;
    std::string_view text;
    State next;
  };
  struct Telling {  // one piece of a derived text
    const Piece* piece;
    std::size_t position;
  };
  using Derivation = std::function<void(double log_p, const std::vector<Telling>&)>;

  void visit_texts(const std::function<void(const std::string&)>& visit) const;
  Line compile(const std::string& text, const std::string& end) const;
  Piece compile_slot(std::string slot, bool draws) const;
  void check_draws() const;
  int variable_index(std::string_view name) const;
  bool taken(const State& state, int variable, int value) const;

  State start() const;
  bool is_final(const State& state) const;
  const Piece* piece_at(const State& state) const;
  std::vector<Option> options(const State& state) const;
  bool derive(std::string_view text, std::size_t position, const State& state, double log_p,
              std::vector<Telling>& tellings, int64_t& limit, const Derivation& visit) const;
  double prefix_probability(std::string_view prefix, const State& state) const;
  void enumerate(const State& state, double p, std::string& text,
                 const std::function<void(const std::string&, double)>& visit) const;

  // One of two derivations that have spelt the same text so far, but for what it has in hand.
  struct Rival {
    State state;
    std::string_view hand;
  };
  bool clash(Rival a, Rival b, std::string& text) const;
  bool clash_among(const State& state, std::string& text) const;

  double draws_sum(const Line& line, std::vector<int>& used,
                   const std::function<double(double)>& term) const;

  std::vector<Domain> domains_;
  std::vector<Variable> variables_;
  std::vector<int> domain_of_;  // by variable
  std::vector<Plot> plots_;
  std::vector<std::vector<std::vector<Line>>> lines_;  // [plot][step][line]
};

}  // namespace pellucid::demos
