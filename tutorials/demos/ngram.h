// A character n-gram: predicts a character from the n - 1 before it, by counting.
//
//   add-0.1:      p(c | h) = (count(h c) + 0.1) / (count(h) + 0.1 V)
//   Witten-Bell:  p(c | h) = (count(h c) + T(h) p(c | h')) / (count(h) + T(h))
//
// h = the last n - 1 characters, h' = h without its first, V = characters in the alphabet, T(h) =
// different characters seen after h; below the empty context stands 1 / V. A context that was never
// seen is cut to the longest suffix that was (add-0.1 knows no shorter contexts, and says 1 / V).
// Witten-Bell is the stronger one on stories and on Shakespeare, so it is the baseline to beat.
// Source: Bell, Cleary and Witten, Text Compression (1990); Chen and Goodman (1999), section 2.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pellucid::demos {

enum class Smoothing { kAddTenth, kWittenBell };

class NGram {
 public:
  // `order` is n: 1 .. 8, with at most 255 characters in the alphabet.
  NGram(int order, std::string_view alphabet, Smoothing smoothing = Smoothing::kWittenBell);

  // Counts every character of the text, its context being what came before it in this text or in
  // the call before (so a stream may come in parts of any size); see end_stream.
  void count(std::string_view text);
  // The next text has only this before it.
  void end_stream(std::string_view context = "");

  // ln p(next | context): its last n - 1 characters, or all it has.
  double log_prob(std::string_view context, char next) const;
  // The sum of ln p over the characters of the text, each after all that is before it.
  double log_prob(std::string_view context, std::string_view text) const;
  // Mean of -ln p over the characters of the text, in nats.
  double loss(std::string_view text, std::string_view context = "") const;

  int64_t counted() const { return counted_; }

 private:
  struct Row {
    std::vector<int32_t> counts;  // (V) how often each character came next
    int64_t total = 0, kinds = 0;
  };

  int symbol(char c) const;
  uint64_t key(std::string_view context) const;
  const Row* row(std::string_view context) const;
  double witten_bell(std::string_view context, int next) const;

  int order_;
  int vocabulary_ = 0;
  Smoothing smoothing_;
  int symbols_[256];
  std::vector<std::unordered_map<uint64_t, Row>> rows_;  // [length of context]
  std::string tail_;                                     // the last n - 1 characters counted
  int64_t counted_ = 0;
};

}  // namespace pellucid::demos
