// Merging neighbours in the order of a rank, in O(n log n): what encoding by BPE and by scores
// share.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace pellucid::nn {

// What two neighbours become. Lower ranks go first, of equals the one further left.
struct Merge {
  int64_t rank = -1;  // below 0: they stay as they are
  int64_t id = -1;
};

// Merges neighbours in ids until find(left, right) knows nothing more. With `together`, all pairs
// of one rank merge before what they become is looked at; else every merge looks at once.
template <class Find>
void merge_neighbours(std::vector<int64_t>& ids, bool together, const Find& find) {
  const auto n = static_cast<int64_t>(ids.size());
  std::vector<int64_t> next(ids.size()), prev(ids.size());
  for (int64_t i = 0; i < n; ++i) next[i] = i + 1, prev[i] = i - 1;
  using Place = std::pair<int64_t, int64_t>;  // rank, position of the left one
  std::priority_queue<Place, std::vector<Place>, std::greater<Place>> places;
  const auto look = [&](int64_t i) {
    if (i < 0 || next[i] >= n) return Merge{};
    return find(ids[i], ids[next[i]]);
  };
  const auto add = [&](int64_t i) {
    if (const Merge merge = look(i); merge.rank >= 0) places.push({merge.rank, i});
  };
  for (int64_t i = 0; i < n; ++i) add(i);

  std::vector<int64_t> merged;
  while (!places.empty()) {
    const int64_t rank = places.top().first;
    merged.clear();
    while (!places.empty() && places.top().first == rank && (together || merged.empty())) {
      const int64_t i = places.top().second;
      places.pop();
      if (ids[i] < 0) continue;  // it was merged into its left neighbour meanwhile
      const Merge merge = look(i);
      if (merge.rank != rank) continue;  // or one of the two became another
      ids[next[i]] = -1;
      ids[i] = merge.id;
      next[i] = next[next[i]];
      if (next[i] < n) prev[next[i]] = i;
      merged.push_back(i);
    }
    for (const int64_t i : merged) add(prev[i]), add(i);
  }
  std::erase(ids, -1);
}

}  // namespace pellucid::nn
