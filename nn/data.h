// Texts and the windows of tokens that training and validation read.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tensor/random.h"

namespace pellucid::nn {

// The text of a file. Throws std::runtime_error, with the repair, for a file that is missing, no
// regular file, unreadable, empty or binary (it holds control characters that no text has).
std::string read_text(const std::string& path);

// One batch: targets[b, t] is the token after inputs[b, t], or kIgnore where it is not to count.
constexpr int64_t kIgnore = -100;
struct Batch {
  Tensor inputs, targets;  // (B, T) int64
  int64_t counted = 0;     // targets that are not kIgnore
};

// A row of a batch: its inputs begin at token `start`; only targets in [from, to) count.
struct Window {
  int64_t start, from, to;
};

// Windows of T tokens in random order, such that every token but the very first is the target
// exactly once an epoch. Each epoch cuts the text at another phase, so that a token does not meet
// the same context each time: windows begin at phase, phase + T, ...; the pieces left over at both
// ends are whole windows whose targets outside the piece are kIgnore. seed and the two numbers of
// State say everything.
//
// Documents, between which an end-of-text token stands, share no window: each begins in one of its
// own, the end-of-text token before it being the first input and the one behind it the last target.
// So no target and no attention crosses from one to another, and a model learns where they end.
// Only those with more than T targets are cut, again at each epoch's phase. A batch has as many
// rows as fill B T places: its windows are as long as the longest of them, what is left over is
// kIgnore.
class Loader {
 public:
  struct State {
    int64_t epoch = 0, next = 0;  // next: how many windows of the epoch have been read
  };

  // Throws std::invalid_argument if there are fewer than T + 1 tokens; with end_of_text, if the
  // first and the last token are not that, or there is nothing between them.
  Loader(std::vector<int64_t> tokens, int64_t B, int64_t T, uint64_t seed,
         std::optional<int64_t> end_of_text = {});

  Batch next();  // (B, T); goes on into the next epoch where this one ends, but not with documents
  State state() const { return state_; }
  void set_state(const State& state);
  int64_t windows() const { return static_cast<int64_t>(order_.size()); }  // of this epoch

 private:
  void begin_epoch();

  std::vector<int64_t> tokens_;
  int64_t B_, T_;
  uint64_t seed_;
  std::optional<int64_t> end_of_text_;
  State state_;
  std::vector<Window> windows_;  // of this epoch, as they lie in the text
  std::vector<int64_t> order_;
};

// Non-overlapping windows of T tokens from the first to the last, B at a time: every token but the
// first is a target once. The last window may be short: then it is filled up with kIgnore.
// Documents are windows of their own, as for the Loader.
std::vector<Batch> validation_batches(const std::vector<int64_t>& tokens, int64_t B, int64_t T,
                                      std::optional<int64_t> end_of_text = {});

}  // namespace pellucid::nn
