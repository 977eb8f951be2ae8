#include "nn/tokenizer_split.h"

#include <algorithm>
#include <vector>

namespace pellucid::nn {

// The bytes of a character by its first one; 0 for a byte that begins none.
static std::size_t length_by_lead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Whether `second` may follow `lead`: no character has two spellings, and surrogates and what lies
// beyond U+10FFFF are none.
static bool may_follow(uint8_t lead, uint8_t second) {
  const uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

// How many bytes from `at` on follow the rules of one character, at most its length.
static std::size_t well_formed(std::string_view text, std::size_t at, std::size_t length) {
  const auto lead = static_cast<uint8_t>(text[at]);
  std::size_t n = 1;
  for (; n < length && at + n < text.size(); ++n) {
    const auto byte = static_cast<uint8_t>(text[at + n]);
    if (n == 1 ? !may_follow(lead, byte) : (byte & 0xc0) != 0x80) break;
  }
  return n;
}

Character character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  const std::size_t length = length_by_lead(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || well_formed(text, at, length) < length) return {kNoCharacter, 1};
  uint32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    code = code << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3f);
  return {code, length};
}

std::size_t unfinished(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const std::size_t at = text.size() - n;
    const std::size_t length = length_by_lead(static_cast<uint8_t>(text[at]));
    if (length > 0) return length > n && well_formed(text, at, length) == n ? n : 0;
  }
  return 0;
}

CharacterKind character_kind(uint32_t code) {
  static constexpr uint32_t runs[] = {
#include "nn/tokenizer_unicode.inc"
  };
  static const std::vector<CharacterKind> kinds = [] {
    std::vector<CharacterKind> all;
    for (const uint32_t run : runs)
      all.insert(all.end(), run / 4, static_cast<CharacterKind>(run % 4));
    return all;
  }();
  return code < kinds.size() ? kinds[code] : CharacterKind::kOther;
}

// The end of the run of characters of one kind that begins at `at`.
static std::size_t end_of_run(std::string_view text, std::size_t at, CharacterKind kind) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (character_kind(c.code) != kind) break;
    at += c.length;
  }
  return at;
}

// The end of the piece that begins at `at`.
static std::size_t end_of_piece(std::string_view text, std::size_t at) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.substr(at).starts_with(ending)) return at + ending.size();

  // One kind of character, behind at most one blank.
  const std::size_t from = at + (text[at] == ' ' && at + 1 < text.size());
  const CharacterKind kind = character_kind(character_at(text, from).code);
  if (kind != CharacterKind::kSpace) return end_of_run(text, from, kind);

  // Spaces: the last one before a word is left to it, if there is another.
  const std::size_t end = end_of_run(text, at, CharacterKind::kSpace);
  if (end == text.size()) return end;
  std::size_t last = end - 1;
  while ((static_cast<uint8_t>(text[last]) & 0xc0) == 0x80) --last;
  return last > at ? last : end;
}

void split(std::string_view text, const std::function<void(std::string_view)>& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_piece(text, at);
    visit(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace pellucid::nn
