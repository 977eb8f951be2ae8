#include "tutorials/demos/story_grammar.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "tensor/check.h"

namespace pellucid::demos {

// ---- Compiling templates -----------------------------------------------------------------------

Grammar::Grammar(std::vector<Domain> domains, std::vector<Variable> variables,
                 std::vector<Plot> plots)
    : domains_(std::move(domains)), variables_(std::move(variables)), plots_(std::move(plots)) {
  CHECK_ARG(variables_.size() <= kMaxVariables, "Grammar: at most ", kMaxVariables, " variables");
  for (const Variable& variable : variables_) {
    const auto found = std::find_if(domains_.begin(), domains_.end(),
                                    [&](const Domain& d) { return d.name == variable.domain; });
    CHECK_ARG(found != domains_.end(), "Grammar: no domain ", variable.domain);
    domain_of_.push_back(int(found - domains_.begin()));
  }
  for (const Plot& plot : plots_) {
    auto& steps = lines_.emplace_back();
    for (const Step& step : plot.steps) {
      auto& lines = steps.emplace_back();
      const std::string end = steps.size() == plot.steps.size() ? "\n" : " ";
      for (const Template& line : step) lines.push_back(compile(line.text, end));
    }
  }
  check_draws();
}

Grammar::Line Grammar::compile(const std::string& text, const std::string& end) const {
  Line line;
  std::string fixed;
  const auto flush = [&] {
    if (!fixed.empty()) line.push_back({.texts = {fixed}});
    fixed.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '[' && text[i] != '{') {
      fixed += text[i];
      continue;
    }
    flush();
    const std::size_t close = text.find(text[i] == '[' ? ']' : '}', i);
    CHECK_ARG(close != std::string::npos, "Grammar: a bracket is not closed in: ", text);
    line.push_back(compile_slot(text.substr(i + 1, close - i - 1), text[i] == '['));
    i = close;
  }
  fixed += end;
  flush();
  return line;
}

Grammar::Piece Grammar::compile_slot(std::string slot, bool draws) const {
  Piece piece;
  piece.draws = draws;
  piece.question = slot.ends_with('?');
  if (piece.question) slot.pop_back();
  const std::size_t point = std::min(slot.find('.'), slot.size());
  std::string form = slot.substr(std::min(point + 1, slot.size()));
  const bool capital = !form.empty() && std::isupper(static_cast<unsigned char>(form[0]));
  if (capital) form[0] = char(std::tolower(form[0]));
  piece.variable = variable_index(slot.substr(0, point));

  const Domain& domain = domains_[std::size_t(domain_of_[std::size_t(piece.variable)])];
  const auto found = std::find(domain.forms.begin(), domain.forms.end(), form);
  CHECK_ARG(found != domain.forms.end(), "Grammar: domain ", domain.name, " has no form ", form);
  for (const auto& value : domain.values) {
    std::string word = value.at(std::size_t(found - domain.forms.begin()));
    if (capital) word[0] = char(std::toupper(word[0]));
    piece.texts.push_back(word);
  }
  return piece;
}

int Grammar::variable_index(std::string_view name) const {
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].name == name) return int(v);
  }
  fail("Grammar: no variable ", name);
}

// A variable is told only after it was drawn, drawn once, and by all lines of a step alike: so the
// exact figures below need no history beyond how many values of each domain are taken.
void Grammar::check_draws() const {
  for (const auto& steps : lines_) {
    std::set<int> known;
    for (const auto& lines : steps) {
      std::optional<std::set<int>> after_step;
      for (const Line& line : lines) {
        std::set<int> after = known;
        for (const Piece& piece : line) {
          if (piece.variable < 0) continue;
          const std::string& name = variables_[std::size_t(piece.variable)].name;
          CHECK_ARG(after.contains(piece.variable) != piece.draws, "Grammar: ", name,
                    piece.draws ? " is drawn twice" : " is told before it is drawn");
          after.insert(piece.variable);
        }
        CHECK_ARG(!after_step || *after_step == after,
                  "Grammar: the lines of one step must draw the same variables; not so in: ",
                  line.front().texts.front());
        after_step = after;
      }
      CHECK_ARG(after_step, "Grammar: a step without lines");
      known = *after_step;
    }
  }
}

// ---- The one walk ------------------------------------------------------------------------------

Grammar::State Grammar::start() const {
  State state;
  state.value.fill(-1);
  return state;
}

bool Grammar::is_final(const State& s) const {
  return s.plot >= 0 && s.step == int(lines_[std::size_t(s.plot)].size());
}

const Grammar::Piece* Grammar::piece_at(const State& s) const {
  if (s.plot < 0 || s.line < 0 || is_final(s)) return nullptr;
  return &lines_[std::size_t(s.plot)][std::size_t(s.step)][std::size_t(s.line)]
                [std::size_t(s.piece)];
}

bool Grammar::taken(const State& state, int variable, int value) const {
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (domain_of_[v] == domain_of_[std::size_t(variable)] && state.value[v] == value) return true;
  }
  return false;
}

// All ways on from a state that is not final; weights over their sum are the probabilities.
std::vector<Grammar::Option> Grammar::options(const State& state) const {
  std::vector<Option> found;

  // Choose a plot, or a line of the step.
  if (state.plot < 0) {
    for (std::size_t p = 0; p < plots_.size(); ++p) {
      found.push_back({plots_[p].weight, "", state});
      found.back().next.plot = int(p);
    }
    return found;
  }
  if (state.line < 0) {
    const Step& step = plots_[std::size_t(state.plot)].steps[std::size_t(state.step)];
    for (std::size_t i = 0; i < step.size(); ++i) {
      found.push_back({step[i].weight, "", state});
      found.back().next.line = int(i);
    }
    return found;
  }

  // Step over the next piece.
  const Piece& piece = *piece_at(state);
  const Line& line =
      lines_[std::size_t(state.plot)][std::size_t(state.step)][std::size_t(state.line)];
  State next = state;
  if (++next.piece == int(line.size())) {
    next.piece = 0;
    next.line = -1;
    ++next.step;
  }

  // Write fixed text and known values; draw among the values that are not taken.
  const int known = piece.variable < 0 ? 0 : state.value[std::size_t(piece.variable)];
  if (known >= 0) {
    found.push_back({1, piece.texts[std::size_t(known)], next});
    return found;
  }
  for (std::size_t value = 0; value < piece.texts.size(); ++value) {
    if (taken(state, piece.variable, int(value))) continue;
    next.value[std::size_t(piece.variable)] = int8_t(value);
    found.push_back({1, piece.texts[value], next});
  }
  return found;
}

std::string Grammar::sample(Generator& rng) const {
  std::string text;
  for (State state = start(); !is_final(state);) {
    const std::vector<Option> all = options(state);
    std::size_t i = 0;
    if (all.size() > 1) {
      int64_t ticket = rng.below(total_weight(all));
      while (ticket >= all[i].weight) ticket -= all[i++].weight;
    }
    text += all[i].text;
    state = all[i].next;
  }
  return text;
}

// Visits the derivations of text[position..] from `state`, at most `limit`; false when reached.
bool Grammar::derive(std::string_view text, std::size_t position, const State& state, double log_p,
                     std::vector<Telling>& tellings, int64_t& limit,
                     const Derivation& visit) const {
  if (is_final(state)) {
    if (position < text.size()) return true;
    visit(log_p, tellings);
    return --limit > 0;
  }
  const std::vector<Option> all = options(state);
  const double log_total = std::log(double(total_weight(all)));
  for (const Option& option : all) {
    if (!text.substr(position).starts_with(option.text)) continue;
    if (const Piece* piece = piece_at(state)) tellings.push_back({piece, position});
    const bool go_on =
        derive(text, position + option.text.size(), option.next,
               log_p + std::log(double(option.weight)) - log_total, tellings, limit, visit);
    if (piece_at(state)) tellings.pop_back();
    if (!go_on) return false;
  }
  return true;
}

int64_t Grammar::count_derivations(std::string_view text, int64_t limit) const {
  int64_t count = 0;
  std::vector<Telling> tellings;
  derive(text, 0, start(), 0, tellings, limit, [&](double, const auto&) { ++count; });
  return count;
}

std::optional<double> Grammar::log_probability(std::string_view text) const {
  std::optional<double> sum;
  std::vector<Telling> tellings;
  int64_t limit = 1 << 20;
  derive(text, 0, start(), 0, tellings, limit, [&](double log_p, const auto&) {
    sum = sum ? std::max(*sum, log_p) + std::log1p(std::exp(-std::abs(*sum - log_p))) : log_p;
  });
  return sum;
}

std::vector<Recall> Grammar::recalls(std::string_view text) const {
  std::vector<Recall> found;
  std::vector<Telling> path;
  int64_t limit = 1;
  derive(text, 0, start(), 0, path, limit, [&](double, const std::vector<Telling>& tellings) {
    std::array<std::size_t, kMaxVariables> told{};  // where each variable's last telling ended
    for (std::size_t i = 0; i < tellings.size(); ++i) {
      const auto& [piece, from] = tellings[i];
      if (piece->variable < 0) continue;
      const std::size_t v = std::size_t(piece->variable);
      const std::size_t to = i + 1 < tellings.size() ? tellings[i + 1].position : text.size();
      if (piece->question) {
        found.push_back({std::string(text.substr(0, from)),
                         std::string(text.substr(from, to - from)), piece->texts,
                         domains_[std::size_t(domain_of_[v])].name, int64_t(from - told[v])});
      }
      told[v] = to;
    }
  });
  return found;
}

double Grammar::prefix_probability(std::string_view prefix) const {
  return prefix_probability(prefix, start());
}

double Grammar::prefix_probability(std::string_view prefix, const State& state) const {
  if (prefix.empty()) return 1;
  if (is_final(state)) return 0;
  const std::vector<Option> all = options(state);
  double sum = 0;
  for (const Option& option : all) {
    if (prefix.starts_with(option.text)) {
      sum += double(option.weight) *
             prefix_probability(prefix.substr(option.text.size()), option.next);
    } else if (option.text.starts_with(prefix)) {
      sum += double(option.weight);
    }
  }
  return sum / double(total_weight(all));
}

void Grammar::enumerate(const std::function<void(const std::string&, double)>& visit) const {
  std::string text;
  enumerate(start(), 1, text, visit);
}

void Grammar::enumerate(const State& state, double p, std::string& text,
                        const std::function<void(const std::string&, double)>& visit) const {
  if (is_final(state)) return visit(text, p);
  const std::vector<Option> all = options(state);
  for (const Option& option : all) {
    const std::size_t size = text.size();
    text += option.text;
    enumerate(option.next, p * double(option.weight) / double(total_weight(all)), text, visit);
    text.resize(size);
  }
}

}  // namespace pellucid::demos
