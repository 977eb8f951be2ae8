// What holds for all stories of a Grammar at once: that no text has two derivations, and the exact
// number of stories, entropy, mean length and chance of a collision.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "tutorials/demos/story_grammar.h"

namespace pellucid::demos {

// Two derivations of one text share a first part and then part at one choice. So walk to every
// choice (of a plot, a line, a drawn value), take each two of its options, and follow both in lock
// step, as in the product of an automaton with itself: as long as both can spell the same text.
// What was drawn before the choice is left unknown and fixed, for both, where one of them first
// tells it: the walk covers all earlier values but meets few of them.
std::optional<std::string> Grammar::ambiguity() const {
  std::string text;
  if (clash_among(start(), text)) return text;
  for (std::size_t p = 0; p < lines_.size(); ++p) {
    for (std::size_t s = 0; s < lines_[p].size(); ++s) {
      State state = start();
      state.plot = int(p);
      state.step = int(s);
      if (clash_among(state, text)) return text;
      for (std::size_t l = 0; l < lines_[p][s].size(); ++l) {
        for (std::size_t i = 0; i < lines_[p][s][l].size(); ++i) {
          state.line = int(l);
          state.piece = int(i);
          if (lines_[p][s][l][i].draws && clash_among(state, text)) return text;
        }
      }
    }
  }
  return std::nullopt;
}

bool Grammar::clash_among(const State& state, std::string& text) const {
  const std::vector<Option> all = options(state);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      text.clear();
      if (clash({all[i].next, all[i].text}, {all[j].next, all[j].text}, text)) return true;
    }
  }
  return false;
}

// Whether two derivations can go on to the same text; then `text` is what they share.
bool Grammar::clash(Rival a, Rival b, std::string& text) const {
  // Spell what both have in hand.
  while (!a.hand.empty() && !b.hand.empty()) {
    if (a.hand[0] != b.hand[0]) return false;
    text += a.hand[0];
    a.hand.remove_prefix(1);
    b.hand.remove_prefix(1);
  }
  if (!a.hand.empty()) std::swap(a, b);  // a is now the one with nothing in hand
  if (is_final(a.state)) return b.hand.empty() && is_final(b.state);

  // Take every way on; a value from before the choice that a tells first is fixed for b too.
  const Piece* piece = piece_at(a.state);
  const bool reads = piece && piece->variable >= 0 && !piece->draws &&
                     a.state.value[std::size_t(piece->variable)] < 0;
  const std::size_t size = text.size();
  for (const Option& option : options(a.state)) {
    Rival other = b;
    if (reads) {
      const std::size_t v = std::size_t(piece->variable);
      other.state.value[v] = option.next.value[v];
      if (taken(b.state, piece->variable, other.state.value[v])) continue;
    }
    if (clash({option.next, option.text}, other, text)) return true;
    text.resize(size);
  }
  return false;
}

// The sum of term(values still free) over the draws of a line; `used` counts values by domain.
double Grammar::draws_sum(const Line& line, std::vector<int>& used,
                          const std::function<double(double)>& term) const {
  double sum = 0;
  for (const Piece& piece : line) {
    if (!piece.draws) continue;
    int& k = used[std::size_t(domain_of_[std::size_t(piece.variable)])];
    sum += term(double(piece.texts.size()) - k++);
  }
  return sum;
}

// All lines of a step draw the same variables, so steps are independent: sums over lines, products
// over steps.
double Grammar::count() const {
  double sum = 0;
  for (std::size_t p = 0; p < plots_.size(); ++p) {
    double log_draws = 0, lines = 1;
    std::vector<int> used(domains_.size());
    for (const auto& step : lines_[p]) {
      log_draws += draws_sum(step[0], used, [](double free) { return std::log(free); });
      lines *= double(step.size());
    }
    sum += lines * std::round(std::exp(log_draws));
  }
  return sum;
}

double Grammar::entropy() const {
  double sum = 0;
  for (std::size_t p = 0; p < plots_.size(); ++p) {
    const double p_plot = share(plots_[p], plots_);
    double nats = -std::log(p_plot);
    std::vector<int> used(domains_.size());
    for (std::size_t s = 0; s < lines_[p].size(); ++s) {
      for (const Template& line : plots_[p].steps[s]) {
        const double p_line = share(line, plots_[p].steps[s]);
        nats -= p_line * std::log(p_line);
      }
      nats += draws_sum(lines_[p][s][0], used, [](double free) { return std::log(free); });
    }
    sum += p_plot * nats;
  }
  return sum;
}

// Draws without replacement leave each variable uniform over its domain, whatever else is drawn.
double Grammar::mean_length() const {
  double sum = 0;
  for (std::size_t p = 0; p < plots_.size(); ++p) {
    const double p_plot = share(plots_[p], plots_);
    for (std::size_t s = 0; s < lines_[p].size(); ++s) {
      const Step& step = plots_[p].steps[s];
      for (std::size_t l = 0; l < step.size(); ++l) {
        const double p_line = share(step[l], step);
        for (const Piece& piece : lines_[p][s][l]) {
          std::size_t characters = 0;
          for (const std::string& word : piece.texts) characters += word.size();
          sum += p_plot * p_line * double(characters) / double(piece.texts.size());
        }
      }
    }
  }
  return sum;
}

int64_t Grammar::max_length() const {
  std::size_t longest = 0;
  for (const auto& steps : lines_) {
    std::size_t story = 0;
    for (const auto& lines : steps) {
      std::size_t longest_line = 0;
      for (const Line& line : lines) {
        std::size_t characters = 0;
        for (const Piece& piece : line) {
          characters += std::max_element(piece.texts.begin(), piece.texts.end(),
                                         [](const std::string& a, const std::string& b) {
                                           return a.size() < b.size();
                                         })
                            ->size();
        }
        longest_line = std::max(longest_line, characters);
      }
      story += longest_line;
    }
    longest = std::max(longest, story);
  }
  return int64_t(longest);
}

double Grammar::collision() const {
  double sum = 0;
  for (std::size_t p = 0; p < plots_.size(); ++p) {
    const double p_plot = share(plots_[p], plots_);
    double product = p_plot * p_plot;
    std::vector<int> used(domains_.size());
    for (std::size_t s = 0; s < lines_[p].size(); ++s) {
      double lines = 0;
      for (const Template& line : plots_[p].steps[s]) {
        const double p_line = share(line, plots_[p].steps[s]);
        lines += p_line * p_line;
      }
      product *= lines * std::exp(draws_sum(lines_[p][s][0], used,
                                            [](double free) { return -std::log(free); }));
    }
    sum += product;
  }
  return sum;
}

std::vector<std::string> Grammar::words() const {
  std::set<std::string> found;
  const auto add = [&](const std::string& text) {
    std::string word;
    for (const char c : text + ' ') {
      if (std::isalpha(static_cast<unsigned char>(c))) {
        word += char(std::tolower(c));
      } else if (!word.empty()) {
        found.insert(word);
        word.clear();
      }
    }
  };
  visit_texts(add);
  return {found.begin(), found.end()};
}

std::string Grammar::alphabet() const {
  std::set<char> found;
  visit_texts([&](const std::string& text) { found.insert(text.begin(), text.end()); });
  return {found.begin(), found.end()};
}

void Grammar::visit_texts(const std::function<void(const std::string&)>& visit) const {
  for (const auto& steps : lines_) {
    for (const auto& lines : steps) {
      for (const Line& line : lines) {
        for (const Piece& piece : line) {
          for (const std::string& text : piece.texts) visit(text);
        }
      }
    }
  }
}

}  // namespace pellucid::demos
