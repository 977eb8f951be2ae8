// Any of the tokenizers as one value: text into ids and back.
//
//   char    one token for each byte that the training text holds     nn/tokenizer_char.h
//   byte    one token for each of the 256 bytes                      nn/tokenizer_char.h
//   bpe     byte-level BPE, trained here or GPT-2's own              nn/tokenizer_bpe.h
//   llama2  a vocabulary with scores, of llama2.c's models           nn/tokenizer_llama2.h
//
// Any text that encode() takes comes back from decode() as it was; all but char take any bytes.
#pragma once
#include <variant>

#include "nn/tokenizer_bpe.h"
#include "nn/tokenizer_char.h"
#include "nn/tokenizer_llama2.h"

namespace pellucid::nn {

class Tokenizer {
 public:
  Tokenizer() = default;  // of no characters
  Tokenizer(CharTokenizer one) : one_(std::move(one)) {}
  Tokenizer(BpeTokenizer one) : one_(std::move(one)) {}
  Tokenizer(Llama2Tokenizer one) : one_(std::move(one)) {}

  static Tokenizer bytes(bool end_of_text = false);
  // tokenizer.json of a run, GPT-2's vocab.bpe (merges.txt), or llama2.c's tokenizer.bin. Throws,
  // naming the file, the fault and the repair.
  static Tokenizer load(const std::string& path);

  std::string kind() const;  // "char", "byte", "bpe", "llama2"
  int64_t vocab_size() const;
  // Throws std::invalid_argument for a character that it has no token for.
  std::vector<int64_t> encode(std::string_view text) const;
  // Throws std::invalid_argument for an id outside [0, vocab_size).
  std::string decode(const std::vector<int64_t>& ids) const;
  std::string token(int64_t id) const;  // one token's bytes; "" for one that stands for no text
  // The token that stands between two texts: it ends one, and the next begins after it. No text
  // gives it. Not every tokenizer has one.
  std::optional<int64_t> end_of_text() const;

  nlohmann::json to_json() const;
  static Tokenizer from_json(const nlohmann::json& json);

 private:
  std::variant<CharTokenizer, BpeTokenizer, Llama2Tokenizer> one_;
};

// Text as it is generated, in whole characters of UTF-8: bytes that may become a character with
// those of the next token are held back.
class TextStream {
 public:
  // at_start: nothing stands before the first token.
  TextStream(const Tokenizer& tokenizer, bool at_start);
  std::string push(int64_t id);
  std::string rest();  // what is held back, be it a character or not

 private:
  const Tokenizer& tokenizer_;
  bool drop_blank_;
  std::string held_;
};

}  // namespace pellucid::nn
