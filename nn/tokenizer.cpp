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

std::vector<int64_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    CHECK_ARG(ids_[byte] >= 0, "encode: ", spelled(byte), " at position ", i, " is not among the ",
              vocab_size(), " characters that the model was trained on");
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
