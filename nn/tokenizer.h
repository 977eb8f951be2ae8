// The character tokenizer: one token for each byte that the text contains, in the order of the
// byte values. A character of several bytes (UTF-8) is several tokens, so that every byte string
// over the vocabulary comes back as it was.
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pellucid::nn {

class CharTokenizer {
 public:
  CharTokenizer() { ids_.fill(-1); }
  explicit CharTokenizer(std::string_view text);  // the vocabulary is what text contains

  int64_t vocab_size() const { return static_cast<int64_t>(bytes_.size()); }
  // Throws std::invalid_argument for a byte that is not in the vocabulary, naming it and its place.
  std::vector<int64_t> encode(std::string_view text) const;
  // Throws std::invalid_argument for an id outside [0, vocab_size).
  std::string decode(const std::vector<int64_t>& ids) const;
  std::string decode(int64_t id) const { return decode(std::vector<int64_t>{id}); }

  nlohmann::json to_json() const;
  static CharTokenizer from_json(const nlohmann::json& json);

 private:
  std::vector<uint8_t> bytes_;    // of each id
  std::array<int64_t, 256> ids_;  // of each byte; -1 where it has none
};

}  // namespace pellucid::nn
