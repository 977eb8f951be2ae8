// GPT-2's splitting rule and the classes of Unicode that it stands on, against Python's regex
// package where that is installed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "nn/tokenizer_split.h"
#include "tensor/file_helpers.h"

using namespace pellucid::nn;

namespace {

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> found;
  split(text, [&](std::string_view piece) { found.emplace_back(piece); });
  return found;
}

// The first command that runs a Python with regex; "" where there is none.
std::string python() {
  for (const std::string name : {"python3", "python"})
    if (std::system((name + " -c 'import regex' > /dev/null 2>&1").c_str()) == 0) return name;
  return "";
}
const std::string& the_python() {
  static const std::string one = python();
  return one;
}

// What the script prints for the file "in" of its folder.
std::string run_python(const std::string& script, const std::string& input) {
  const TemporaryFolder folder;
  spit(folder.file("script.py"), script);
  spit(folder.file("in"), input);
  const std::string command =
      "cd '" + folder.path.string() + "' && " + the_python() + " script.py > out";
  REQUIRE(std::system(command.c_str()) == 0);
  return slurp(folder.file("out"));
}

std::string utf8(uint32_t code) {
  std::string text;
  const auto add = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6), add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12), add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18), add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
  }
  return text;
}

std::string hex(std::string_view text) {
  const char* digits = "0123456789abcdef";
  std::string found;
  for (const char c : text) {
    found.push_back(digits[static_cast<uint8_t>(c) >> 4]);
    found.push_back(digits[static_cast<uint8_t>(c) & 15]);
  }
  return found;
}

// Strings of what the rule tells apart: letters, numbers, spaces of every width, apostrophes with
// their endings, marks, and bytes that are no UTF-8.
std::string fuzzed(uint64_t& seed) {
  const auto below = [&](uint64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
  };
  const std::vector<std::string> bits = {" ",
                                         " ",
                                         "  ",
                                         "\n",
                                         "\t",
                                         "\r\n",
                                         "\v",
                                         "\f",
                                         "\x1c",
                                         "\xc2\x85",
                                         "\xc2\xa0",
                                         "\xe2\x80\xa8",
                                         "\xe3\x80\x80",
                                         "'s",
                                         "'t",
                                         "'re",
                                         "'ve",
                                         "'m",
                                         "'ll",
                                         "'d",
                                         "'S",
                                         "'",
                                         "''",
                                         "a",
                                         "Zebra",
                                         "\xc3\xa9",
                                         "\xd0\x96",
                                         "\xe6\xbc\xa2",
                                         "\xe0\xb8\x81",
                                         "7",
                                         "42",
                                         "\xd9\xa3",
                                         "\xc2\xb2",
                                         "\xe2\x85\xa7",
                                         ".",
                                         "...",
                                         "-",
                                         "_",
                                         "\xcc\x81",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x90\xb8",
                                         "\xf0\x9d\x94\x98",
                                         "\xc3",
                                         "\x80",
                                         "\xe2\x82",
                                         "\xf0\x9f\x90",
                                         "\xed\xa0\x80",
                                         "\xc0\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xff",
                                         std::string(1, '\0')};
  std::string text;
  for (uint64_t n = below(14); n > 0; --n) {
    if (below(6) == 0) {
      text += utf8(static_cast<uint32_t>(below(0x30000)));  // surrogates too: no UTF-8
    } else {
      text += bits[below(bits.size())];
    }
  }
  return text;
}

}  // namespace

TEST_CASE("pieces by hand") {
  using List = std::vector<std::string>;
  CHECK(pieces("") == List{});
  CHECK(pieces("Hello World!") == List{"Hello", " World", "!"});
  CHECK(pieces("it's we'll 'tis I'D") ==
        List{"it", "'s", " we", "'ll", " '", "tis", " I", "'", "D"});
  CHECK(pieces("a  b\n\nc \n ") == List{"a", " ", " b", "\n", "\n", "c", " \n "});
  CHECK(pieces("   ") == List{"   "});
  CHECK(pieces("x\t1.5km2") == List{"x", "\t", "1", ".", "5", "km", "2"});
  CHECK(pieces("\xc3\xa9t\xc3\xa9 \xd9\xa3\xc2\xb2") ==
        List{"\xc3\xa9t\xc3\xa9", " \xd9\xa3\xc2\xb2"});
  // Bytes that are no UTF-8 stay together with other marks.
  CHECK(pieces("a\xc3!\x80 b") == List{"a", "\xc3!\x80", " b"});
}

TEST_CASE("characters: UTF-8 by the standard, everything else byte by byte") {
  for (uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 37) {
    const std::string text = utf8(code);
    const Character c = character_at(text, 0);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (c.code != (surrogate ? kNoCharacter : code) || c.length != (surrogate ? 1 : text.size()))
      FAIL("U+" << code);
    for (std::size_t n = 1; n < text.size(); ++n) {
      // A surrogate's second byte is the first that cannot be.
      const bool may_go_on = !surrogate || n == 1;
      if (character_at(text.substr(0, n), 0).code != kNoCharacter) FAIL("cut U+" << code);
      if (unfinished("abc" + text.substr(0, n)) != (may_go_on ? n : 0)) FAIL("cut U+" << code);
    }
    if (unfinished(text) != 0) FAIL("U+" << code);
  }
  for (const char* bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\x80", "\xe2\x28\xa1"})
    CHECK(character_at(bad, 0).code == kNoCharacter);
  CHECK(unfinished("") == 0);
  CHECK(unfinished("\x80\x80\x80\x80") == 0);
  CHECK(unfinished("\xf4\x90") == 0);
}

TEST_CASE("the classes of all assigned characters are Python's" *
          doctest::skip(the_python().empty()) *
          doctest::description("needs python3 with the package regex")) {
  // Of an older Unicode in Python, the characters that it knows.
  const std::string theirs = run_python(R"(
import regex, unicodedata
letter, number, space = (regex.compile(p) for p in (r'\p{L}', r'\p{N}', r'\s'))
out = []
for code in range(0x110000):
    c = chr(code)
    if unicodedata.category(c) == 'Cn': out.append('?')
    else: out.append('1' if letter.match(c) else '2' if number.match(c) else '3' if space.match(c) else '0')
print(''.join(out), end='')
)",
                                        "");
  REQUIRE(theirs.size() == 0x110000);
  int64_t compared = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (theirs[code] == '?') continue;
    ++compared;
    if (static_cast<int>(character_kind(code)) != theirs[code] - '0') FAIL("U+" << code);
  }
  CHECK(compared > 280'000);
  CHECK(character_kind(kNoCharacter) == CharacterKind::kOther);
  std::cout << "FIGURE | characters whose class is that of Python's regex | " << compared << "\n";
}

TEST_CASE("20,000 fuzzed strings split as Python's regex splits them" *
          doctest::skip(the_python().empty()) *
          doctest::description("needs python3 with the package regex")) {
  uint64_t seed = 1;
  std::string input, ours;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = fuzzed(seed);
    input += hex(text) + "\n";
    for (const std::string& piece : pieces(text)) ours += hex(piece) + " ";
    ours += "\n";
  }
  const std::string theirs = run_python(R"(
import regex, unicodedata
rule = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
for line in open('in'):
    text = bytes.fromhex(line.strip()).decode('utf-8', 'surrogateescape')
    unknown = any(unicodedata.category(c) == 'Cn' for c in text)
    print('?' if unknown else
          ''.join(p.encode('utf-8', 'surrogateescape').hex() + ' ' for p in rule.findall(text)))
)",
                                        input);
  std::stringstream a(ours), b(theirs), in(input);
  int64_t compared = 0;
  for (std::string x, y, text; std::getline(a, x);) {
    REQUIRE(std::getline(b, y));
    std::getline(in, text);
    if (y == "?") continue;  // a character that Python may not know yet
    ++compared;
    if (x != y) FAIL(text << ": " << x << "; Python: " << y);
  }
  CHECK(compared > 10'000);
  std::cout << "FIGURE | fuzzed strings split as Python's regex splits them | " << compared << "\n";
}
