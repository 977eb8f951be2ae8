// Characters of UTF-8, and GPT-2's rule for cutting a text into pieces that no token crosses:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Any bytes will do: one that belongs to no character of UTF-8 counts as a character of its own,
// neither letter nor number nor space.
// Source: Radford et al. 2019 ("GPT-2"), encoder.py; the classes are those of the Unicode standard.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

namespace pellucid::nn {

struct Character {
  uint32_t code;       // kNoCharacter for a byte that belongs to none
  std::size_t length;  // in bytes
};
constexpr uint32_t kNoCharacter = 0xffffffff;
// The character that begins at text[at]; at < text.size().
Character character_at(std::string_view text, std::size_t at);
// How many bytes at the end are the beginning of a character that more bytes could complete: 0
// .. 3.
std::size_t unfinished(std::string_view text);

enum class CharacterKind { kOther, kLetter, kNumber, kSpace };
CharacterKind character_kind(uint32_t code);

// Calls visit with each piece, in order; together they are the text.
void split(std::string_view text, const std::function<void(std::string_view)>& visit);

}  // namespace pellucid::nn
