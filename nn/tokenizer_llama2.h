// The tokenizer of llama2.c's models, a vocabulary with scores: a text, a blank put before it, is
// its characters at first, those without a token spelled as bytes; then the two neighbours whose
// union has the best score merge, of equals the leftmost, until no union is a token.
//
// The file: int32 longest token, then for each token float32 score, int32 length, bytes. Ids 0, 1
// and 2 are unknown, begin and end; 3 .. 258 are the bytes, written <0x00> .. <0xFF>.
// Source: github.com/karpathy/llama2.c, run.c and tokenizer.py; Kudo and Richardson 2018.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pellucid::nn {

class Llama2Tokenizer {
 public:
  Llama2Tokenizer() = default;
  Llama2Tokenizer(std::vector<std::string> tokens, std::vector<float> scores);
  static Llama2Tokenizer load(const std::string& path);

  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }
  std::vector<int64_t> encode(std::string_view text) const;
  std::string token(int64_t id) const;       // its bytes; of unknown, begin and end ""
  int64_t end_of_text() const { return 1; }  // stands between two texts

  nlohmann::json to_json() const;
  static Llama2Tokenizer from_json(const nlohmann::json& json);

 private:
  std::vector<std::string> tokens_;  // a byte's token holds that byte
  std::vector<float> scores_;
  std::vector<int64_t> ranks_;  // of each token: 0 for the best score, equal for equal ones
  std::unordered_map<std::string, int64_t> ids_;  // of all but the first 259
};

}  // namespace pellucid::nn
