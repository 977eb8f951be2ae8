// The character tokenizer: one token for each byte that the text contains, in the order of the
// byte values. A character of several bytes (UTF-8) is several tokens, so that every byte string
// over the vocabulary comes back as it was. With all 256 of them it is the byte tokenizer.
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pellucid::nn {

class CharTokenizer {
 public:
  CharTokenizer() { ids_.fill(-1); }
  // The vocabulary is what text contains, and after that a token that ends a text, if so wanted.
  explicit CharTokenizer(std::string_view text, bool end_of_text = false);

  int64_t vocab_size() const { return static_cast<int64_t>(bytes_.size()) + has_end_; }
  std::optional<int64_t> end_of_text() const;
  // Throws std::invalid_argument for a byte that is not in the vocabulary, naming it and its place.
  std::vector<int64_t> encode(std::string_view text) const;
  // Throws std::invalid_argument for an id outside [0, vocab_size).
  std::string decode(const std::vector<int64_t>& ids) const;
  std::string decode(int64_t id) const { return decode(std::vector<int64_t>{id}); }
  std::string token(int64_t id) const;  // its bytes; of the end ""

  nlohmann::json to_json() const;
  static CharTokenizer from_json(const nlohmann::json& json);

 private:
  std::vector<uint8_t> bytes_;  // of each id
  bool has_end_ = false;
  std::array<int64_t, 256> ids_;  // of each byte; -1 where it has none
};

}  // namespace pellucid::nn
