#include "nn/tokenizer.h"

#include <cstdio>

#include "tensor/check.h"

namespace pellucid::nn {

CharTokenizer::CharTokenizer(std::string_view text) {
  std::array<bool, 256> seen{};
  for (char c : text) seen[static_cast<uint8_t>(c)] = true;
  ids_.fill(-1);
  for (std::size_t b = 0; b < 256; ++b) {
    if (!seen[b]) continue;
    ids_[b] = vocab_size();
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
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t begin = i;
  while (begin > 0 && i - begin < 3 && continues(begin)) --begin;
  const auto lead = static_cast<uint8_t>(text[begin]);
  const std::size_t length = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::size_t end = begin + 1;
  while (end - begin < length && continues(end)) ++end;
  const std::string byte = spelled(static_cast<uint8_t>(text[i]));
  if (length == 1 || lead > 0xf4 || end - begin < length || i >= end) return byte;
  uint32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t at = begin + 1; at < end; ++at)
    code = code << 6 | (static_cast<uint8_t>(text[at]) & 0x3f);
  if (code < 0xa0) return byte;  // a control character, or spelled too long
  char name[32];
  std::snprintf(name, sizeof name, " (U+%04X)", code);
  return '\'' + std::string(text.substr(begin, length)) + '\'' + name + ", " + byte;
}

std::vector<int64_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    CHECK_ARG(ids_[byte] >= 0, "encode: ", spelled(text, i), " at position ", i,
              " is not among the ", vocab_size(), " characters that the model was trained on");
    ids.push_back(ids_[byte]);
  }
  return ids;
}

std::string CharTokenizer::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (int64_t id : ids) {
    CHECK_ARG(id >= 0 && id < vocab_size(), "decode: id ", id, " is outside [0, ", vocab_size(),
              ")");
    text.push_back(static_cast<char>(bytes_[static_cast<std::size_t>(id)]));
  }
  return text;
}

nlohmann::json CharTokenizer::to_json() const { return {{"type", "char"}, {"bytes", bytes_}}; }

CharTokenizer CharTokenizer::from_json(const nlohmann::json& json) {
  CHECK_ARG(json.is_object() && json.value("type", "") == "char" && json.contains("bytes") &&
                json["bytes"].is_array(),
            "tokenizer: wanted {\"type\": \"char\", \"bytes\": [...]}");
  CharTokenizer tokenizer;
  for (const nlohmann::json& entry : json["bytes"]) {
    CHECK_ARG(entry.is_number_integer() && entry >= 0 && entry < 256,
              "tokenizer: a byte is a whole number in [0, 256); got ", entry.dump());
    const auto byte = entry.get<uint8_t>();
    CHECK_ARG(tokenizer.ids_[byte] < 0, "tokenizer: ", spelled(byte), " stands twice");
    tokenizer.ids_[byte] = tokenizer.vocab_size();
    tokenizer.bytes_.push_back(byte);
  }
  CHECK_ARG(tokenizer.vocab_size() > 0, "tokenizer: the vocabulary is empty");
  return tokenizer;
}

}  // namespace pellucid::nn
