// Byte-level byte-pair encoding (BPE): a text's pieces (nn/tokenizer_split.h) are bytes at first;
// then neighbours merge into longer tokens, in the order in which training found the pairs, until
// no pair is left that it found. Every byte is a token, so that any text has ids and comes back.
//
// Training: the most frequent pair of neighbours becomes a token, again and again; of equals the
// lexicographically greatest (left bytes, then right bytes).
// Sources: Sennrich, Haddow and Birch 2016; Radford et al. 2019 ("GPT-2").
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pellucid::nn {

class BpeTokenizer {
 public:
  using Pair = std::pair<std::string, std::string>;  // two tokens that merge, as bytes

  BpeTokenizer() = default;
  // tokens: the bytes of each id, all 256 bytes among them. special: tokens that no text gives, the
  // last of which ends a text. Throws std::invalid_argument where these do not fit together.
  BpeTokenizer(std::vector<std::string> tokens, std::vector<Pair> merges,
               std::vector<std::string> special);
  // As GPT-2 numbers them: the bytes, in an order of its own, then each merge's token, then
  // special.
  BpeTokenizer(std::vector<Pair> merges, const std::vector<std::string>& special);

  // A vocabulary of this size from texts that no piece crosses: 256 bytes, what training merges,
  // and <|endoftext|>. Throws if the texts repeat too little for so many. operations counts what
  // the training does: places looked at, and pairs that came and went.
  static BpeTokenizer train(const std::vector<std::string_view>& texts, int64_t vocab_size,
                            int64_t* operations = nullptr);
  // GPT-2's vocab.bpe (others call it merges.txt); and its encoder.json (vocab.json), which must
  // say the same, for files whose ids stand in another order.
  static BpeTokenizer load_gpt2(const std::string& vocab_bpe, const std::string& encoder_json = "");

  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }
  std::vector<int64_t> encode(std::string_view text) const;
  std::string token(int64_t id) const;  // its bytes; of a special one ""
  std::optional<int64_t> end_of_text() const { return end_of_text_; }
  const std::vector<Pair>& merges() const { return merges_; }

  nlohmann::json to_json() const;
  static BpeTokenizer from_json(const nlohmann::json& json);

 private:
  std::vector<std::string> tokens_;
  std::vector<Pair> merges_;
  std::vector<std::string> special_;
  std::array<int64_t, 256> byte_ids_{};
  struct Ranked {
    int64_t rank, id;
  };
  std::unordered_map<uint64_t, Ranked> ranks_;  // by the pair of ids
  std::optional<int64_t> end_of_text_;
};

// Bytes as GPT-2's files spell them: printable ones of Latin-1 as they are, the others from U+0100
// on.
std::string spell_bytes(std::string_view bytes);
std::string unspell_bytes(std::string_view spelled);  // throws std::invalid_argument

}  // namespace pellucid::nn
