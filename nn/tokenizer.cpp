#include "nn/tokenizer.h"

#include "nn/tokenizer_split.h"
#include "tensor/check.h"
#include "tensor/files.h"
#include "tensor/json.h"

namespace pellucid::nn {

Tokenizer Tokenizer::bytes(bool end_of_text) {
  return CharTokenizer::from_json({{"type", "byte"}, {"end_of_text", end_of_text}});
}

Tokenizer Tokenizer::load(const std::string& path) {
  if (path.ends_with(".bin")) return Llama2Tokenizer::load(path);
  if (!path.ends_with(".json")) return BpeTokenizer::load_gpt2(path);
  const std::string text = read_file(path);
  try {
    const nlohmann::json json = parse_json(text, false);
    CHECK_ARG(!json.is_discarded(), "this is not JSON");
    return from_json(json);
  } catch (const std::exception& error) {
    fail(path, ": ", error.what(), "; give the tokenizer.json of a run, GPT-2's vocab.bpe, or ",
         "llama2.c's tokenizer.bin");
  }
}

std::string Tokenizer::kind() const {
  if (std::holds_alternative<BpeTokenizer>(one_)) return "bpe";
  if (std::holds_alternative<Llama2Tokenizer>(one_)) return "llama2";
  return std::get<CharTokenizer>(one_).to_json().at("type");
}

int64_t Tokenizer::vocab_size() const {
  return std::visit([](const auto& one) { return one.vocab_size(); }, one_);
}

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  return std::visit([&](const auto& one) { return one.encode(text); }, one_);
}

std::string Tokenizer::token(int64_t id) const {
  CHECK_ARG(id >= 0 && id < vocab_size(), "decode: id ", id, " is outside [0, ", vocab_size(), ")");
  return std::visit([&](const auto& one) { return one.token(id); }, one_);
}

std::optional<int64_t> Tokenizer::end_of_text() const {
  return std::visit([](const auto& one) { return std::optional<int64_t>(one.end_of_text()); },
                    one_);
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids) const {
  TextStream stream(*this, true);
  std::string text;
  for (const int64_t id : ids) text += stream.push(id);
  return text + stream.rest();
}

nlohmann::json Tokenizer::to_json() const {
  return std::visit([](const auto& one) { return one.to_json(); }, one_);
}

Tokenizer Tokenizer::from_json(const nlohmann::json& json) {
  const auto type = json.is_object() && json.contains("type") ? json["type"] : nlohmann::json();
  if (type == "char" || type == "byte") return CharTokenizer::from_json(json);
  if (type == "bpe") return BpeTokenizer::from_json(json);
  if (type == "llama2") return Llama2Tokenizer::from_json(json);
  fail("tokenizer: wanted \"type\": \"char\", \"byte\", \"bpe\" or \"llama2\"; got ", type.dump());
}

// A text's first token brings a blank of its own there.
TextStream::TextStream(const Tokenizer& tokenizer, bool at_start)
    : tokenizer_(tokenizer), drop_blank_(at_start && tokenizer.kind() == "llama2") {}

std::string TextStream::push(int64_t id) {
  std::string text = held_ + tokenizer_.token(id);
  if (drop_blank_ && !text.empty()) {
    drop_blank_ = false;
    if (text[0] == ' ') text.erase(0, 1);
  }
  const std::size_t whole = text.size() - unfinished(text);
  held_ = text.substr(whole);
  text.resize(whole);
  return text;
}

std::string TextStream::rest() { return std::exchange(held_, ""); }

}  // namespace pellucid::nn
