// The character tokenizer: every byte string over its vocabulary comes back, everything else is
// refused by name.
#include "nn/tokenizer.h"

#include <doctest/doctest.h>

#include <map>
#include <stdexcept>

using nlohmann::json;
using pellucid::nn::CharTokenizer;

namespace {

std::string all_bytes() {
  std::string text;
  for (int b = 255; b >= 0; --b) text.push_back(static_cast<char>(b));
  return text;
}

}  // namespace

TEST_CASE("every byte string over the vocabulary comes back as it was") {
  const std::string all = all_bytes();
  const CharTokenizer every(all);
  CHECK(every.vocab_size() == 256);
  CHECK(every.decode(every.encode(all)) == all);
  CHECK(every.encode("").empty());
  CHECK(every.decode(std::vector<int64_t>{}).empty());
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; b += 17) {
      const std::string text{static_cast<char>(a), static_cast<char>(b), static_cast<char>(a)};
      if (every.decode(every.encode(text)) != text) FAIL("bytes " << a << ", " << b);
    }

  // Characters of several bytes, and a cut one: bytes are all that counts.
  const std::string utf8 = "na\xc3\xafve \xf0\x9f\x90\xb8 \xc3";
  const CharTokenizer some(utf8);
  CHECK(some.decode(some.encode(utf8)) == utf8);
}

TEST_CASE("ids follow the order of the byte values, whatever the order in the text") {
  const CharTokenizer tokenizer("zb\naab");
  CHECK(tokenizer.vocab_size() == 4);
  CHECK(tokenizer.encode("\nabz") == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(tokenizer.decode(1) == "a");
  CHECK(CharTokenizer("ab\nz").to_json() == tokenizer.to_json());
  // Bytes above 127 are not negative.
  CHECK(CharTokenizer("\xffz").encode("z\xff") == std::vector<int64_t>{0, 1});
}

TEST_CASE("a byte without an id is named, with its place") {
  const CharTokenizer tokenizer("abc");
  CHECK_THROWS_WITH_AS(tokenizer.encode("abxc"),
                       "encode: 'x' at position 2 is not among the 3 characters that the model was "
                       "trained on",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(tokenizer.encode("\n"), doctest::Contains("byte 0x0a at position 0"),
                       std::invalid_argument);
  // A character of several bytes by its name, whichever of them is foreign.
  const CharTokenizer half("ab\xc3");
  for (const auto& [text, part] : std::map<std::string, std::string>{
           {"a\xc3\xa9z", "'\xc3\xa9' (U+00E9), byte 0xa9 at position 2"},
           {"\xe2\x82\xac", "'\xe2\x82\xac' (U+20AC), byte 0xe2 at position 0"},
           {"\xf0\x9f\x98\x80", "'\xf0\x9f\x98\x80' (U+1F600), byte 0xf0 at position 0"},
           {"\xe2\x82z", "encode: byte 0xe2 at"},
           {"\xc3\x80\x80", "'\xc3\x80' (U+00C0), byte 0x80 at position 1"},
           {"\xc2\x85", "encode: byte 0xc2 at"},
           {"ab\x80", "encode: byte 0x80 at"},
           {"\xf8\x80\x80\x80", "encode: byte 0xf8 at"}})
    CHECK_THROWS_WITH_AS(half.encode(text), doctest::Contains(part.c_str()), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tokenizer.encode("a\xe9"), doctest::Contains("byte 0xe9 at position 1"),
                       std::invalid_argument);
  CHECK_THROWS_AS(CharTokenizer().encode("a"), std::invalid_argument);
}

TEST_CASE("ids outside the vocabulary are refused") {
  const CharTokenizer tokenizer("abc");
  for (int64_t id : {int64_t{-1}, int64_t{3}, int64_t{256}, INT64_MAX, INT64_MIN})
    CHECK_THROWS_WITH_AS(tokenizer.decode(id), doctest::Contains("is outside [0, 3)"),
                         std::invalid_argument);
}

TEST_CASE("JSON and back: the same ids") {
  for (const std::string& text : {all_bytes(), std::string("to be"), std::string(1, '\0')}) {
    const CharTokenizer before(text);
    const CharTokenizer after = CharTokenizer::from_json(json::parse(before.to_json().dump()));
    CHECK(after.vocab_size() == before.vocab_size());
    CHECK(after.encode(text) == before.encode(text));
    CHECK(after.decode(before.encode(text)) == text);
  }
  CHECK(CharTokenizer("ba").to_json().dump() == R"({"bytes":[97,98],"type":"char"})");
}

TEST_CASE("JSON that is no tokenizer is refused") {
  for (const char* bad : {"null", "[]", "3", "{}", R"({"type":"char"})", R"({"bytes":[97]})",
                          R"({"type":"bpe","bytes":[97]})", R"({"type":"char","bytes":97})",
                          R"({"type":"char","bytes":{"a":97}})", R"({"type":"char","bytes":[]})",
                          R"({"type":"char","bytes":["a"]})", R"({"type":"char","bytes":[1.5]})",
                          R"({"type":"char","bytes":[-1]})", R"({"type":"char","bytes":[256]})",
                          R"({"type":"char","bytes":[18446744073709551615]})",
                          R"({"type":"char","bytes":[97,98,97]})", R"({"type":3,"bytes":[97]})"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(CharTokenizer::from_json(json::parse(bad)), std::exception);
  }
  CHECK_THROWS_WITH_AS(CharTokenizer::from_json(json::parse(R"({"type":"char","bytes":[97,97]})")),
                       "tokenizer: 'a' stands twice", std::invalid_argument);
}
