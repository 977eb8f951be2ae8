#include "tutorials/demos/ngram.h"

#include <algorithm>
#include <cmath>

#include "tensor/check.h"

namespace pellucid::demos {

NGram::NGram(int order, std::string_view alphabet, Smoothing smoothing)
    : order_(order), smoothing_(smoothing) {
  CHECK_ARG(order >= 1 && order <= 8, "NGram: order must be 1 .. 8; got ", order);
  std::fill(symbols_, symbols_ + 256, -1);
  for (const char c : alphabet) {
    int& symbol = symbols_[static_cast<unsigned char>(c)];
    CHECK_ARG(symbol < 0, "NGram: the alphabet holds a character twice: ", c);
    symbol = vocabulary_++;
  }
  CHECK_ARG(vocabulary_ >= 1 && vocabulary_ <= 255, "NGram: wanted 1 .. 255 characters; got ",
            vocabulary_);
  rows_.resize(std::size_t(order));
}

int NGram::symbol(char c) const {
  const int found = symbols_[static_cast<unsigned char>(c)];
  CHECK_ARG(found >= 0, "NGram: not in the alphabet: character ",
            int(static_cast<unsigned char>(c)));
  return found;
}

// One byte a character: at most 7 fit, and the lengths have tables of their own.
uint64_t NGram::key(std::string_view context) const {
  uint64_t packed = 0;
  for (const char c : context) packed = packed << 8 | uint64_t(symbol(c));
  return packed;
}

void NGram::count(std::string_view text) {
  const std::size_t most = std::size_t(order_ - 1);
  const std::string stream = tail_ + std::string(text);
  for (std::size_t i = tail_.size(); i < stream.size(); ++i) {
    const int next = symbol(stream[i]);
    uint64_t packed = 0;
    for (std::size_t length = 0; length <= std::min(most, i); ++length) {
      if (length > 0) packed |= uint64_t(symbol(stream[i - length])) << (8 * (length - 1));
      Row& row = rows_[length][packed];
      if (row.counts.empty()) row.counts.resize(std::size_t(vocabulary_));
      row.kinds += row.counts[std::size_t(next)]++ == 0;
      ++row.total;
    }
  }
  counted_ += int64_t(text.size());
  tail_ = stream.substr(stream.size() - std::min(stream.size(), most));
}

void NGram::end_stream(std::string_view context) {
  const std::size_t most = std::size_t(order_ - 1);
  tail_ = context.substr(context.size() - std::min(context.size(), most));
}

const NGram::Row* NGram::row(std::string_view context) const {
  const auto& rows = rows_[context.size()];
  const auto found = rows.find(key(context));
  return found == rows.end() ? nullptr : &found->second;
}

double NGram::witten_bell(std::string_view context, int next) const {
  double p = 1 / double(vocabulary_);
  for (std::size_t length = 0; length <= context.size(); ++length) {
    const Row* r = row(context.substr(context.size() - length));
    if (!r) break;
    p = (double(r->counts[std::size_t(next)]) + double(r->kinds) * p) / double(r->total + r->kinds);
  }
  return p;
}

double NGram::log_prob(std::string_view context, char next) const {
  const std::size_t most = std::size_t(order_ - 1);
  context.remove_prefix(context.size() - std::min(context.size(), most));
  const int c = symbol(next);
  if (smoothing_ == Smoothing::kWittenBell) return std::log(witten_bell(context, c));
  const Row* r = row(context);
  const double count = r ? double(r->counts[std::size_t(c)]) : 0;
  const double total = r ? double(r->total) : 0;
  return std::log((count + 0.1) / (total + 0.1 * vocabulary_));
}

double NGram::log_prob(std::string_view context, std::string_view text) const {
  const std::string all = std::string(context) + std::string(text);
  double sum = 0;
  for (std::size_t i = context.size(); i < all.size(); ++i) {
    sum += log_prob(std::string_view(all).substr(0, i), all[i]);
  }
  return sum;
}

double NGram::loss(std::string_view text, std::string_view context) const {
  return text.empty() ? 0 : -log_prob(context, text) / double(text.size());
}

}  // namespace pellucid::demos
