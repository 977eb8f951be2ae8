#include "nn/data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
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

static Batch make_batch(const std::vector<int64_t>& tokens, const std::vector<Window>& windows,
                        int64_t T) {
  const int64_t B = std::ssize(windows), n = std::ssize(tokens);
  Batch batch{empty({B, T}, kInt64), empty({B, T}, kInt64)};  // (B, T)
  auto *x = static_cast<int64_t*>(batch.inputs.data()),
       *y = static_cast<int64_t*>(batch.targets.data());
  for (const Window& w : windows)
    for (int64_t t = 0; t < T; ++t) {
      const int64_t target = w.start + t + 1;
      *x++ = tokens[static_cast<std::size_t>(std::min(w.start + t, n - 1))];
      const bool counts = target >= w.from && target < w.to;
      *y++ = counts ? tokens[static_cast<std::size_t>(target)] : kIgnore;
      batch.counted += counts;
    }
  return batch;
}

// Targets are the tokens 1 .. n - 1. The first `phase` of them, if any, are a window, then each T.
// One that would reach over the end begins earlier instead: its first targets belong to the window
// before.
static std::vector<Window> cut_text(int64_t n, int64_t T, int64_t phase) {
  std::vector<Window> windows;
  if (phase > 0) windows.push_back({0, 1, phase + 1});
  for (int64_t start = phase; start < n - 1; start += T)
    windows.push_back({std::min(start, n - 1 - T), start + 1, n});
  return windows;
}

// The documents between two end-of-text tokens, those with more than T targets cut in the same way.
static std::vector<Window> cut_documents(const std::vector<int64_t>& tokens, int64_t end_of_text,
                                         int64_t T, int64_t phase) {
  std::vector<Window> windows;
  int64_t begin = 0;
  for (int64_t end = 1; end < std::ssize(tokens); ++end) {
    if (tokens[static_cast<std::size_t>(end)] != end_of_text) continue;
    const bool cut = end - begin > T;
    for (int64_t start = begin, to; start < end; start = to) {
      to = std::min(end, start + (cut && start == begin && phase > 0 ? phase : T));
      windows.push_back({start, start + 1, to + 1});
    }
    begin = end;
  }
  return windows;
}

// From windows[next] on as many as fill at most `places`, all as long as the longest of them.
static Batch next_documents(const std::vector<int64_t>& tokens, const std::vector<Window>& windows,
                            const std::vector<int64_t>& order, int64_t& next, int64_t places) {
  std::vector<Window> rows;
  for (int64_t T = 0; next < std::ssize(order); ++next) {
    const Window& w = windows[static_cast<std::size_t>(order[static_cast<std::size_t>(next)])];
    const int64_t longest = std::max(T, w.to - w.from);
    if (!rows.empty() && longest > places / (std::ssize(rows) + 1)) break;
    T = longest;
    rows.push_back(w);
  }
  int64_t T = 0;
  for (const Window& w : rows) T = std::max(T, w.to - w.from);
  return make_batch(tokens, rows, T);
}

static void check_documents(const std::vector<int64_t>& tokens, int64_t end_of_text) {
  CHECK_ARG(tokens.size() >= 2 && tokens.front() == end_of_text && tokens.back() == end_of_text,
            "data: documents must stand between end-of-text tokens, ", end_of_text,
            " first and last");
}

Loader::Loader(std::vector<int64_t> tokens, int64_t B, int64_t T, uint64_t seed,
               std::optional<int64_t> end_of_text)
    : tokens_(std::move(tokens)), B_(B), T_(T), seed_(seed), end_of_text_(end_of_text) {
  CHECK_ARG(B >= 1 && T >= 1, "Loader: B and T must be at least 1; got ", B, " and ", T);
  if (end_of_text) {
    check_documents(tokens_, *end_of_text);
  } else {
    CHECK_ARG(std::ssize(tokens_) > T, "Loader: ", tokens_.size(),
              " tokens for training are too few for windows of ", T, ": more than ", T,
              " are needed; give a longer text or a shorter context");
  }
  begin_epoch();
}

// Each epoch has a stream of random numbers of its own.
void Loader::begin_epoch() {
  Generator rng{seed_, static_cast<uint64_t>(state_.epoch), 0};
  const int64_t phase = rng.below(T_);
  windows_ = end_of_text_ ? cut_documents(tokens_, *end_of_text_, T_, phase)
                          : cut_text(std::ssize(tokens_), T_, phase);
  order_ = permutation(std::ssize(windows_), rng);
}

void Loader::set_state(const State& state) {
  CHECK_ARG(state.epoch >= 0 && state.next >= 0, "Loader: epoch ", state.epoch, ", window ",
            state.next, " is no place in an epoch");
  state_ = state;
  begin_epoch();
  CHECK_ARG(state.next <= windows(), "Loader: window ", state.next, " of ", windows());
}

Batch Loader::next() {
  std::vector<Window> rows;
  do {
    if (state_.next == windows()) {
      state_ = {state_.epoch + 1, 0};
      begin_epoch();
    }
    if (end_of_text_) return next_documents(tokens_, windows_, order_, state_.next, B_ * T_);
    const int64_t window = order_[static_cast<std::size_t>(state_.next++)];
    rows.push_back(windows_[static_cast<std::size_t>(window)]);
  } while (std::ssize(rows) < B_);
  return make_batch(tokens_, rows, T_);
}

std::vector<Batch> validation_batches(const std::vector<int64_t>& tokens, int64_t B, int64_t T,
                                      std::optional<int64_t> end_of_text) {
  const int64_t n = std::ssize(tokens);
  CHECK_ARG(B >= 1 && T >= 1, "validation: B and T must be at least 1; got ", B, " and ", T);
  CHECK_ARG(n >= 2, "validation: ", n, " tokens are too few: at least 2 are needed");
  std::vector<Batch> batches;
  if (end_of_text) {
    check_documents(tokens, *end_of_text);
    const std::vector<Window> windows = cut_documents(tokens, *end_of_text, T, 0);
    std::vector<int64_t> order(windows.size());
    std::iota(order.begin(), order.end(), 0);
    for (int64_t next = 0; next < std::ssize(order);)
      batches.push_back(next_documents(tokens, windows, order, next, B * T));
    return batches;
  }
  std::vector<Window> rows;
  for (int64_t start = 0; start < n - 1; start += T) {
    rows.push_back({start, start + 1, n});
    if (std::ssize(rows) == B || n - 1 - start <= T) {
      batches.push_back(make_batch(tokens, rows, T));
      rows.clear();
    }
  }
  return batches;
}

}  // namespace pellucid::nn
