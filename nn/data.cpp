#include "nn/data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tensor/check.h"

namespace pellucid::nn {

std::string read_text(const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw std::runtime_error(path + ": " + why); };
  std::error_code error;
  using std::filesystem::file_type;
  const file_type type = std::filesystem::status(path, error).type();
  if (type == file_type::not_found) refuse("no such file; give the path of a text file");
  if (type == file_type::directory) refuse("is a folder; give a text file inside it");
  if (type == file_type::none) refuse("cannot be read: " + error.message());
  // A pipe may wait for ever and cannot be read again on resume; a device may never end.
  if (type != file_type::regular) refuse("is no ordinary file; give a text file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    refuse(std::string("cannot be read: ") + std::strerror(errno) + "; change its permissions");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) refuse("reading it failed");
  if (text.empty()) refuse("is empty; give a text file");

  // Text has tabs, line ends, form feeds and escapes, but no other control character.
  constexpr std::string_view allowed = "\t\n\r\f\b\x1b";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 32 && allowed.find(text[i]) == std::string_view::npos)
      refuse("looks binary (byte " + std::to_string(c) + " at position " + std::to_string(i) +
             "); give a plain text file");
  }
  return text;
}

// Row b of a batch: the window that begins at token `start`; only targets in [from, to) count.
static void fill_row(Batch& batch, int64_t b, const std::vector<int64_t>& tokens, int64_t start,
                     int64_t from, int64_t to) {
  const int64_t T = batch.inputs.size(1), n = static_cast<int64_t>(tokens.size());
  int64_t* x = static_cast<int64_t*>(batch.inputs.data()) + b * T;
  int64_t* y = static_cast<int64_t*>(batch.targets.data()) + b * T;
  for (int64_t t = 0; t < T; ++t) {
    const int64_t target = start + t + 1;
    x[t] = tokens[static_cast<std::size_t>(std::min(start + t, n - 1))];
    const bool counts = target >= from && target < to;
    y[t] = counts ? tokens[static_cast<std::size_t>(target)] : kIgnore;
    batch.counted += counts;
  }
}

Loader::Loader(std::vector<int64_t> tokens, int64_t B, int64_t T, uint64_t seed)
    : tokens_(std::move(tokens)), B_(B), T_(T), seed_(seed) {
  CHECK_ARG(B >= 1 && T >= 1, "Loader: B and T must be at least 1; got ", B, " and ", T);
  CHECK_ARG(static_cast<int64_t>(tokens_.size()) > T, "Loader: ", tokens_.size(),
            " tokens for training are too few for windows of ", T, ": more than ", T,
            " are needed; give a longer text or a shorter context");
  begin_epoch();
}

// Each epoch has a stream of random numbers of its own.
void Loader::begin_epoch() {
  Generator rng{seed_, static_cast<uint64_t>(state_.epoch), 0};
  phase_ = rng.below(T_);
  // Targets are the tokens 1 .. n - 1. The windows at phase + w T cover what follows the phase.
  const int64_t targets = static_cast<int64_t>(tokens_.size()) - 1;
  const int64_t windows = (phase_ > 0) + (targets - phase_ + T_ - 1) / T_;
  order_ = permutation(windows, rng);
}

void Loader::set_state(const State& state) {
  CHECK_ARG(state.epoch >= 0 && state.next >= 0, "Loader: epoch ", state.epoch, ", window ",
            state.next, " is no place in an epoch");
  state_ = state;
  begin_epoch();
  CHECK_ARG(state.next <= windows(), "Loader: window ", state.next, " of ", windows());
}

Batch Loader::next() {
  Batch batch{empty({B_, T_}, kInt64), empty({B_, T_}, kInt64)};  // (B, T)
  const int64_t n = static_cast<int64_t>(tokens_.size());
  for (int64_t b = 0; b < B_; ++b) {
    if (state_.next == windows()) {
      state_ = {state_.epoch + 1, 0};
      begin_epoch();
    }
    // Window 0 holds what lies before the phase, if anything does. One that would reach over the
    // end begins earlier instead: its first targets belong to the window before.
    int64_t w = order_[static_cast<std::size_t>(state_.next++)];
    if (phase_ > 0 && w == 0) {
      fill_row(batch, b, tokens_, 0, 1, phase_ + 1);
      continue;
    }
    const int64_t start = phase_ + (w - (phase_ > 0)) * T_;
    fill_row(batch, b, tokens_, std::min(start, n - 1 - T_), start + 1, n);
  }
  return batch;
}

std::vector<Batch> validation_batches(const std::vector<int64_t>& tokens, int64_t B, int64_t T) {
  const int64_t n = static_cast<int64_t>(tokens.size());
  CHECK_ARG(B >= 1 && T >= 1, "validation: B and T must be at least 1; got ", B, " and ", T);
  CHECK_ARG(n >= 2, "validation: ", n, " tokens are too few: at least 2 are needed");
  const int64_t windows = (n - 2) / T + 1;
  std::vector<Batch> batches;
  for (int64_t w = 0, rows = 0; w < windows; w += rows) {
    rows = std::min(B, windows - w);
    Batch& batch = batches.emplace_back(Batch{empty({rows, T}, kInt64), empty({rows, T}, kInt64)});
    for (int64_t b = 0; b < rows; ++b) fill_row(batch, b, tokens, (w + b) * T, 0, n);
  }
  return batches;
}

}  // namespace pellucid::nn
