#include "nn/tokenizer_bpe.h"

#include <algorithm>

#include "nn/tokenizer_merge.h"
#include "nn/tokenizer_split.h"
#include "tensor/check.h"
#include "tensor/files.h"
#include "tensor/json.h"

namespace pellucid::nn {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

// The bytes in the order of GPT-2's ids: those that print in Latin-1, then the others.
struct ByteOrder {
  std::array<uint8_t, 256> bytes;     // in that order
  std::array<uint32_t, 256> letters;  // the code point that spells each byte
};
const ByteOrder& byte_order() {
  static const ByteOrder order = [] {
    ByteOrder made{};
    std::size_t n = 0;
    uint32_t spare = 0x100;
    for (const bool printed : {true, false})
      for (uint32_t b = 0; b < 256; ++b) {
        const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
        if (prints != printed) continue;
        made.bytes[n++] = static_cast<uint8_t>(b);
        made.letters[b] = prints ? b : spare++;
      }
    return made;
  }();
  return order;
}

uint64_t key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const uint32_t code = byte_order().letters[static_cast<uint8_t>(c)];
    if (code < 0x80) {
      text.push_back(static_cast<char>(code));
    } else {
      text.push_back(static_cast<char>(0xc0 | code >> 6));
      text.push_back(static_cast<char>(0x80 | (code & 0x3f)));
    }
  }
  return text;
}

std::string unspell_bytes(std::string_view spelled) {
  static const std::unordered_map<uint32_t, char> bytes = [] {
    std::unordered_map<uint32_t, char> all;
    for (std::size_t b = 0; b < 256; ++b) all[byte_order().letters[b]] = static_cast<char>(b);
    return all;
  }();
  std::string text;
  for (std::size_t at = 0; at < spelled.size();) {
    const Character c = character_at(spelled, at);
    const auto found = bytes.find(c.code);
    CHECK_ARG(found != bytes.end(), "BPE: the token ", spelled,
              " has a character that spells no byte");
    text.push_back(found->second);
    at += c.length;
  }
  return text;
}

BpeTokenizer::BpeTokenizer(std::vector<std::string> tokens, std::vector<Pair> merges,
                           std::vector<std::string> special)
    : tokens_(std::move(tokens)), merges_(std::move(merges)), special_(std::move(special)) {
  std::unordered_map<std::string, int64_t> ids;
  for (std::size_t id = 0; id < tokens_.size(); ++id)
    CHECK_ARG(ids.emplace(tokens_[id], id).second, "BPE: the token ", spell_bytes(tokens_[id]),
              " stands twice");
  const auto id_of = [&](const std::string& token) {
    const auto found = ids.find(token);
    CHECK_ARG(found != ids.end(), "BPE: no token for ", spell_bytes(token));
    return found->second;
  };
  for (std::size_t b = 0; b < 256; ++b) byte_ids_[b] = id_of(std::string(1, static_cast<char>(b)));
  ranks_.reserve(merges_.size());
  for (const auto& [left, right] : merges_) {
    const Ranked ranked{static_cast<int64_t>(ranks_.size()), id_of(left + right)};
    CHECK_ARG(ranks_.emplace(key(id_of(left), id_of(right)), ranked).second, "BPE: the merge of ",
              spell_bytes(left), " and ", spell_bytes(right), " stands twice");
  }
  for (const std::string& name : special_) end_of_text_ = id_of(name);
}

static std::vector<std::string> gpt2_tokens(const std::vector<BpeTokenizer::Pair>& merges,
                                            const std::vector<std::string>& special) {
  std::vector<std::string> tokens;
  for (const uint8_t byte : byte_order().bytes) tokens.emplace_back(1, static_cast<char>(byte));
  for (const auto& [left, right] : merges) tokens.push_back(left + right);
  tokens.insert(tokens.end(), special.begin(), special.end());
  return tokens;
}

BpeTokenizer::BpeTokenizer(std::vector<Pair> merges, const std::vector<std::string>& special)
    : BpeTokenizer(gpt2_tokens(merges, special), merges, special) {}

std::vector<int64_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  std::unordered_map<std::string_view, std::vector<int64_t>> known;  // texts repeat their words
  split(text, [&](std::string_view piece) {
    auto [at, is_new] = known.try_emplace(piece);
    std::vector<int64_t>& merged = at->second;
    if (is_new) {
      for (const char c : piece) merged.push_back(byte_ids_[static_cast<uint8_t>(c)]);
      merge_neighbours(merged, true, [&](int64_t left, int64_t right) {
        const auto found = ranks_.find(key(left, right));
        return found == ranks_.end() ? Merge{} : Merge{found->second.rank, found->second.id};
      });
    }
    ids.insert(ids.end(), merged.begin(), merged.end());
  });
  return ids;
}

std::string BpeTokenizer::token(int64_t id) const {
  const std::string& bytes = tokens_[static_cast<std::size_t>(id)];
  return std::count(special_.begin(), special_.end(), bytes) > 0 ? "" : bytes;
}

// ---- files ----

static std::vector<BpeTokenizer::Pair> read_merges(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<BpeTokenizer::Pair> merges;
  int64_t number = 0;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t blank = line.find(' ');
    CHECK_ARG(blank != 0 && blank != line.npos && blank + 1 < line.size() &&
                  line.find(' ', blank + 1) == line.npos,
              path, ":", number, ": wanted two tokens with a blank between them, as in GPT-2's ",
              "vocab.bpe; download the file again");
    try {
      merges.emplace_back(unspell_bytes(line.substr(0, blank)),
                          unspell_bytes(line.substr(blank + 1)));
    } catch (const std::invalid_argument& error) {
      fail(path, ":", number, ": ", error.what(), "; download the file again");
    }
  }
  CHECK_ARG(!merges.empty(), path, ": holds no merges; wanted GPT-2's vocab.bpe");
  return merges;
}

// The tokens of an encoder.json by their ids, those that it alone knows in `special` as well.
static std::vector<std::string> read_encoder(const std::string& path,
                                             const std::vector<BpeTokenizer::Pair>& merges,
                                             std::vector<std::string>& special) {
  const nlohmann::json ids = parse_json(read_file(path), false);
  CHECK_ARG(ids.is_object(), "wanted a JSON object of tokens and ids; download the file again");
  std::unordered_map<std::string, bool> ordinary;
  for (const std::string& token : gpt2_tokens(merges, {})) ordinary[token] = true;
  std::vector<std::string> tokens(ids.size());
  std::vector<bool> taken(ids.size());
  for (const auto& [spelled, id] : ids.items()) {
    CHECK_ARG(id.is_number_unsigned() && id < ids.size() && !taken[id.get<std::size_t>()],
              "wanted each id from 0 to ", ids.size() - 1, " once; got ", id.dump(), " for ",
              spelled);
    std::string token = spelled;
    try {
      token = unspell_bytes(spelled);
    } catch (const std::invalid_argument&) {  // a special token may be spelled in any way
    }
    if (!ordinary.count(token)) special.push_back(token = spelled);
    tokens[id.get<std::size_t>()] = token;
    taken[id.get<std::size_t>()] = true;
  }
  return tokens;
}

BpeTokenizer BpeTokenizer::load_gpt2(const std::string& vocab_bpe,
                                     const std::string& encoder_json) {
  std::vector<Pair> merges = read_merges(vocab_bpe);
  const std::string& path = encoder_json.empty() ? vocab_bpe : encoder_json;
  try {
    if (encoder_json.empty()) return {std::move(merges), {kEndOfText}};
    std::vector<std::string> special;
    std::vector<std::string> tokens = read_encoder(encoder_json, merges, special);
    return {std::move(tokens), std::move(merges), std::move(special)};
  } catch (const std::invalid_argument& error) {
    fail(path, ": ", error.what());
  }
}

nlohmann::json BpeTokenizer::to_json() const {
  nlohmann::json tokens = nlohmann::json::array(), merges = nlohmann::json::array();
  const auto is_special = [&](const std::string& token) {
    return std::count(special_.begin(), special_.end(), token) > 0;
  };
  for (const std::string& token : tokens_)
    tokens.push_back(is_special(token) ? token : spell_bytes(token));
  for (const auto& [left, right] : merges_)
    merges.push_back(spell_bytes(left) + " " + spell_bytes(right));
  return {{"type", "bpe"}, {"tokens", tokens}, {"merges", merges}, {"special", special_}};
}

BpeTokenizer BpeTokenizer::from_json(const nlohmann::json& json) {
  const auto strings = [&](const char* name) {
    const auto at = json.find(name);
    CHECK_ARG(at != json.end() && at->is_array() &&
                  std::all_of(at->begin(), at->end(), [](const auto& s) { return s.is_string(); }),
              "tokenizer: wanted {\"type\": \"bpe\", \"tokens\": [...], \"merges\": [...], ",
              "\"special\": [...]}, all strings");
    return at->template get<std::vector<std::string>>();
  };
  std::vector<std::string> tokens = strings("tokens");
  const std::vector<std::string> special = strings("special");
  for (std::string& token : tokens)
    if (std::count(special.begin(), special.end(), token) == 0) token = unspell_bytes(token);
  std::vector<Pair> merges;
  for (const std::string& merge : strings("merges")) {
    const std::size_t blank = merge.find(' ');
    CHECK_ARG(blank != merge.npos, "tokenizer: the merge \"", merge, "\" has no blank");
    merges.emplace_back(unspell_bytes(merge.substr(0, blank)),
                        unspell_bytes(merge.substr(blank + 1)));
  }
  return {std::move(tokens), std::move(merges), special};
}

}  // namespace pellucid::nn
