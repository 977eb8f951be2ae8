#include "nn/tokenizer_llama2.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "nn/tokenizer_bpe.h"
#include "nn/tokenizer_merge.h"
#include "tensor/check.h"
#include "tensor/files.h"

namespace pellucid::nn {

constexpr int64_t kFirstByte = 3, kFirstPiece = kFirstByte + 256;

static std::string byte_name(int64_t byte) {
  char name[8];
  std::snprintf(name, sizeof name, "<0x%02X>", static_cast<int>(byte));
  return name;
}

Llama2Tokenizer::Llama2Tokenizer(std::vector<std::string> tokens, std::vector<float> scores)
    : tokens_(std::move(tokens)), scores_(std::move(scores)) {
  CHECK_ARG(vocab_size() >= kFirstPiece && tokens_.size() == scores_.size(),
            "tokenizer: wanted at least 259 tokens, each with a score; got ", tokens_.size(),
            " and ", scores_.size());
  for (int64_t b = 0; b < 256; ++b) {
    std::string& token = tokens_[static_cast<std::size_t>(kFirstByte + b)];
    CHECK_ARG(token == byte_name(b), "tokenizer: token ", kFirstByte + b, " must be ", byte_name(b),
              "; got ", spell_bytes(token));
    token = std::string(1, static_cast<char>(b));
  }
  std::map<float, int64_t, std::greater<float>> ranks;
  for (const float score : scores_) {
    CHECK_ARG(score == score, "tokenizer: a score is not a number");
    ranks[score] = 0;
  }
  int64_t rank = 0;
  for (auto& [score, of_score] : ranks) of_score = rank++;
  for (const float score : scores_) ranks_.push_back(ranks[score]);
  for (int64_t id = kFirstPiece; id < vocab_size(); ++id)
    ids_.emplace(tokens_[static_cast<std::size_t>(id)], id);
}

Llama2Tokenizer Llama2Tokenizer::load(const std::string& path) {
  InputFile file(path);
  const auto refuse = [&](const std::string& why) {
    file.fail(why + "; wanted a tokenizer of llama2.c (tok512.bin, tokenizer.bin)");
  };
  int32_t longest = 0;
  if (file.size() < 4) refuse("has " + std::to_string(file.size()) + " bytes only");
  file.read(&longest, 4);
  std::vector<std::string> tokens;
  std::vector<float> scores;
  while (file.left() > 0) {
    float score = 0;
    int32_t length = 0;
    if (file.left() < 8) refuse("ends within token " + std::to_string(tokens.size()));
    file.read(&score, 4);
    file.read(&length, 4);
    if (length < 0 || length > longest || static_cast<uint64_t>(length) > file.left())
      refuse("token " + std::to_string(tokens.size()) + " has a length of " +
             std::to_string(length) + ", but the longest has " + std::to_string(longest) +
             ", and " + std::to_string(file.left()) + " bytes are left");
    std::string token(static_cast<std::size_t>(length), '\0');
    file.read(token.data(), token.size());
    tokens.push_back(std::move(token));
    scores.push_back(score);
  }
  try {
    return {std::move(tokens), std::move(scores)};
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  return {};
}

std::vector<int64_t> Llama2Tokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  if (text.empty()) return ids;
  const auto add = [&](std::string_view character) {
    const auto found = ids_.find(std::string(character));
    if (found != ids_.end()) {
      ids.push_back(found->second);
    } else {
      for (const char c : character) ids.push_back(kFirstByte + static_cast<uint8_t>(c));
    }
  };
  add(" ");
  // A character is a byte and up to three that continue it.
  for (std::size_t at = 0, end; at < text.size(); at = end) {
    end = at + 1;
    while (end < text.size() && end - at < 4 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80)
      ++end;
    add(text.substr(at, end - at));
  }
  merge_neighbours(ids, false, [&](int64_t left, int64_t right) {
    const auto found = ids_.find(tokens_[static_cast<std::size_t>(left)] +
                                 tokens_[static_cast<std::size_t>(right)]);
    if (found == ids_.end()) return Merge{};
    return Merge{ranks_[static_cast<std::size_t>(found->second)], found->second};
  });
  return ids;
}

std::string Llama2Tokenizer::token(int64_t id) const {
  return id < kFirstByte ? "" : tokens_[static_cast<std::size_t>(id)];
}

nlohmann::json Llama2Tokenizer::to_json() const {
  nlohmann::json tokens = nlohmann::json::array();
  for (int64_t id = 0; id < vocab_size(); ++id) {
    const bool is_byte = id >= kFirstByte && id < kFirstPiece;
    tokens.push_back(is_byte ? byte_name(id - kFirstByte)
                             : spell_bytes(tokens_[static_cast<std::size_t>(id)]));
  }
  return {{"type", "llama2"}, {"tokens", tokens}, {"scores", scores_}};
}

Llama2Tokenizer Llama2Tokenizer::from_json(const nlohmann::json& json) {
  const auto all = [&](const char* name, bool (nlohmann::json::*is)() const noexcept) {
    return json.contains(name) && json[name].is_array() &&
           std::all_of(json[name].begin(), json[name].end(),
                       [is](const nlohmann::json& entry) { return (entry.*is)(); });
  };
  CHECK_ARG(
      all("tokens", &nlohmann::json::is_string) && all("scores", &nlohmann::json::is_number),
      "tokenizer: wanted {\"type\": \"llama2\", \"tokens\": [strings], \"scores\": [numbers]}");
  std::vector<std::string> tokens;
  for (const nlohmann::json& token : json["tokens"])
    tokens.push_back(unspell_bytes(token.get<std::string>()));
  return {std::move(tokens), json["scores"].get<std::vector<float>>()};
}

}  // namespace pellucid::nn
