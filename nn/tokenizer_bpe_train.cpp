// Training of BPE with incremental counts: each merge touches the places of its pair alone.
#include <algorithm>
#include <queue>

#include "nn/tokenizer_bpe.h"
#include "nn/tokenizer_split.h"
#include "tensor/check.h"

namespace pellucid::nn {
namespace {

// All different pieces stand one behind the other as linked tokens, each piece with the number of
// times that the texts hold it.
class Training {
 public:
  explicit Training(const std::vector<std::string_view>& texts) {
    for (int b = 0; b < 256; ++b) tokens_.emplace_back(1, static_cast<char>(b));
    std::unordered_map<std::string_view, int64_t> pieces;
    for (const std::string_view text : texts)
      split(text, [&](std::string_view piece) { ++pieces[piece]; });
    for (const auto& [piece, count] : pieces)
      if (piece.size() > 1) add_piece(piece, count);
    for (const auto& entry : pairs_) push(entry.first);
  }

  // Merges the most frequent pair; false if none stands twice.
  bool merge(std::vector<BpeTokenizer::Pair>& merges) {
    Ids best;
    do {
      if (queue_.empty()) return false;
      const Entry top = queue_.top();
      queue_.pop();
      ++operations_;
      const auto found = pairs_.find(top.pair);
      if (found == pairs_.end()) continue;
      best = top.pair;
      if (found->second.count == top.count) break;
      push(top.pair);  // other merges took some of its places: it waits for its turn
    } while (true);
    if (pairs_.at(best).count < 2) return false;

    merges.emplace_back(tokens_[best.first], tokens_[best.second]);
    const auto made = static_cast<int64_t>(tokens_.size());
    tokens_.push_back(merges.back().first + merges.back().second);
    const std::vector<int64_t> places = std::move(pairs_.at(best).places);
    std::vector<Ids> fresh;
    for (const int64_t i : places) merge_at(i, best, made, fresh);
    pairs_.erase(best);
    for (const Ids& pair : fresh)
      if (pairs_.count(pair)) push(pair);
    return true;
  }
  int64_t operations() const { return operations_; }

 private:
  using Ids = std::pair<int64_t, int64_t>;
  struct Hash {
    std::size_t operator()(const Ids& pair) const {
      return static_cast<std::size_t>(pair.first * 0x9e3779b97f4a7c15 + pair.second);
    }
  };
  struct Pair {
    int64_t count = 0;
    std::vector<int64_t> places;  // of the left token, in order; some may be gone
  };
  struct Entry {
    int64_t count;
    Ids pair;
  };

  void add_piece(std::string_view piece, int64_t count) {
    const auto begin = static_cast<int64_t>(ids_.size());
    const auto n = static_cast<int64_t>(piece.size());
    for (int64_t i = 0; i < n; ++i) {
      ids_.push_back(static_cast<uint8_t>(piece[static_cast<std::size_t>(i)]));
      prev_.push_back(i == 0 ? -1 : begin + i - 1);
      next_.push_back(i + 1 == n ? -1 : begin + i + 1);
      counts_.push_back(count);
      if (i > 0) change(begin + i - 1, 1, nullptr);
    }
  }

  // The pair whose left token stands at i comes (sign 1) or goes (-1).
  void change(int64_t i, int64_t sign, std::vector<Ids>* fresh) {
    ++operations_;
    const Ids ids{ids_[i], ids_[next_[i]]};
    Pair& pair = pairs_[ids];
    if (sign > 0 && pair.count == 0 && fresh) fresh->push_back(ids);
    pair.count += sign * counts_[i];
    if (sign > 0) pair.places.push_back(i);
    if (pair.count == 0) pairs_.erase(ids);
  }

  void merge_at(int64_t i, const Ids& best, int64_t made, std::vector<Ids>& fresh) {
    ++operations_;
    const int64_t right = next_[i];
    if (ids_[i] != best.first || right < 0 || ids_[right] != best.second) return;
    const int64_t left = prev_[i], after = next_[right];
    if (left >= 0) change(left, -1, nullptr);
    if (after >= 0) change(right, -1, nullptr);
    ids_[i] = made, ids_[right] = -1, next_[i] = after;
    if (after >= 0) prev_[after] = i;
    if (left >= 0) change(left, 1, &fresh);
    if (after >= 0) change(i, 1, &fresh);
  }

  void push(const Ids& pair) {
    ++operations_;
    queue_.push({pairs_.at(pair).count, pair});
  }

  struct Later {
    const std::vector<std::string>* tokens;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.count != b.count) return a.count < b.count;
      const auto bytes = [&](int64_t id) -> const std::string& { return (*tokens)[id]; };
      const int left = bytes(a.pair.first).compare(bytes(b.pair.first));
      if (left != 0) return left < 0;
      return bytes(a.pair.second) < bytes(b.pair.second);
    }
  };

  std::vector<std::string> tokens_;
  std::vector<int64_t> ids_, prev_, next_, counts_;  // of each place; a merged one has id -1
  std::unordered_map<Ids, Pair, Hash> pairs_;
  std::priority_queue<Entry, std::vector<Entry>, Later> queue_{Later{&tokens_}};
  int64_t operations_ = 0;
};

}  // namespace

BpeTokenizer BpeTokenizer::train(const std::vector<std::string_view>& texts, int64_t vocab_size,
                                 int64_t* operations) {
  CHECK_ARG(vocab_size >= 257,
            "BPE: a vocabulary has at least 257 tokens, the bytes and the end of ", "text; got ",
            vocab_size);
  Training training(texts);
  std::vector<Pair> merges;
  while (static_cast<int64_t>(merges.size()) < vocab_size - 257) {
    CHECK_ARG(training.merge(merges), "BPE: the text repeats enough for a vocabulary of ",
              merges.size() + 257, " tokens only; got ", vocab_size,
              "; give a smaller vocabulary or a longer text");
  }
  if (operations) *operations = training.operations();
  return {std::move(merges), {"<|endoftext|>"}};
}

}  // namespace pellucid::nn
