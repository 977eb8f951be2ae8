#include "nn/tokenizer_char.h"

#include <cstdio>

#include "nn/tokenizer_split.h"
#include "tensor/check.h"

namespace pellucid::nn {

CharTokenizer::CharTokenizer(std::string_view text, bool end_of_text) : has_end_(end_of_text) {
  std::array<bool, 256> seen{};
  for (char c : text) seen[static_cast<uint8_t>(c)] = true;
  ids_.fill(-1);
  for (std::size_t b = 0; b < 256; ++b) {
    if (!seen[b]) continue;
    ids_[b] = static_cast<int64_t>(bytes_.size());
    bytes_.push_back(static_cast<uint8_t>(b));
  }
}

// A byte as a reader would name it.
static std::string spelled(uint8_t byte) {
  char text[16];
  std::snprintf(text, sizeof text, byte > 32 && byte < 127 ? "'%c'" : "byte 0x%02x", byte);
  return text;
}

// The byte at i, and the UTF-8 character that it is a part of, if it is a part of one.
static std::string spelled(std::string_view text, std::size_t i) {
  const std::string byte = spelled(static_cast<uint8_t>(text[i]));
  for (std::size_t begin = i;; --begin) {
    const Character c = character_at(text, begin);
    if (c.code != kNoCharacter && begin + c.length > i) {
      if (c.code < 0xa0) return byte;  // ASCII or a control character
      char name[32];
      std::snprintf(name, sizeof name, " (U+%04X), ", c.code);
      return '\'' + std::string(text.substr(begin, c.length)) + '\'' + name + byte;
    }
    if (begin == 0 || i - begin == 3) return byte;
  }
}

std::optional<int64_t> CharTokenizer::end_of_text() const {
  if (!has_end_) return std::nullopt;
  return static_cast<int64_t>(bytes_.size());
}

std::vector<int64_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    CHECK_ARG(ids_[byte] >= 0, "encode: ", spelled(text, i), " at position ", i,
              " is not among the ", bytes_.size(), " characters that the model was trained on");
    ids.push_back(ids_[byte]);
  }
  return ids;
}

std::string CharTokenizer::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (int64_t id : ids) {
    CHECK_ARG(id >= 0 && id < vocab_size(), "decode: id ", id, " is outside [0, ", vocab_size(),
              ")");
    text += token(id);
  }
  return text;
}

std::string CharTokenizer::token(int64_t id) const {
  return id == end_of_text() ? "" : std::string(1, static_cast<char>(bytes_[id]));
}

nlohmann::json CharTokenizer::to_json() const {
  nlohmann::json json = {{"type", "byte"}};
  if (bytes_.size() < 256) json = {{"type", "char"}, {"bytes", bytes_}};
  if (has_end_) json["end_of_text"] = true;
  return json;
}

CharTokenizer CharTokenizer::from_json(const nlohmann::json& json) {
  const std::string type = json.is_object() ? json.value("type", "") : "";
  CharTokenizer tokenizer;
  if (type == "byte") {
    std::string all;
    for (int b = 0; b < 256; ++b) all.push_back(static_cast<char>(b));
    tokenizer = CharTokenizer(all);
  } else {
    CHECK_ARG(type == "char" && json.contains("bytes") && json["bytes"].is_array(),
              "tokenizer: wanted {\"type\": \"char\", \"bytes\": [...]}");
    for (const nlohmann::json& entry : json["bytes"]) {
      CHECK_ARG(entry.is_number_integer() && entry >= 0 && entry < 256,
                "tokenizer: a byte is a whole number in [0, 256); got ", entry.dump());
      const auto byte = entry.get<uint8_t>();
      CHECK_ARG(tokenizer.ids_[byte] < 0, "tokenizer: ", spelled(byte), " stands twice");
      tokenizer.ids_[byte] = static_cast<int64_t>(tokenizer.bytes_.size());
      tokenizer.bytes_.push_back(byte);
    }
  }
  CHECK_ARG(!tokenizer.bytes_.empty(), "tokenizer: the vocabulary is empty");
  if (json.contains("end_of_text")) {
    CHECK_ARG(json["end_of_text"].is_boolean(), "tokenizer: end_of_text is true or false; got ",
              json["end_of_text"].dump());
    tokenizer.has_end_ = json["end_of_text"];
  }
  return tokenizer;
}

}  // namespace pellucid::nn
