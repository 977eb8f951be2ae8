// BPE and llama2.c's tokenizer: the merges that training must find, the ids that GPT-2 and llama2.c
// give, every byte string there and back, work that grows with the length, and files that are not
// what they should be.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "error_of.h"
#include "nn/tokenizer.h"
#include "nn/tokenizer_merge.h"
#include "nn/tokenizer_split.h"
#include "tensor/file_helpers.h"

using namespace pellucid;
using namespace pellucid::nn;
using nlohmann::json;

namespace {

const char* const kData = std::getenv("PELLUCID_DATA");
std::string data(const std::string& name) { return std::string(kData) + "/" + name; }

std::vector<BpeTokenizer::Pair> merges_of(const std::string& path) {
  std::vector<BpeTokenizer::Pair> merges;
  std::ifstream in(path);
  for (std::string left, right; in >> left >> right;)
    merges.emplace_back(unspell_bytes(left), unspell_bytes(right));
  return merges;
}

// Training as its definition says it: count all pairs anew before each merge.
std::vector<BpeTokenizer::Pair> naive_training(const std::string& text, std::size_t wanted) {
  std::vector<std::vector<std::string>> pieces;
  split(text, [&](std::string_view piece) {
    pieces.emplace_back();
    for (const char c : piece) pieces.back().emplace_back(1, c);
  });
  std::vector<BpeTokenizer::Pair> merges;
  while (merges.size() < wanted) {
    std::map<BpeTokenizer::Pair, int64_t> counts;
    for (const auto& piece : pieces)
      for (std::size_t i = 0; i + 1 < piece.size(); ++i) ++counts[{piece[i], piece[i + 1]}];
    auto best = counts.end();
    for (auto at = counts.begin(); at != counts.end(); ++at)
      if (best == counts.end() || at->second >= best->second) best = at;  // the map is in order
    if (best == counts.end() || best->second < 2) break;
    merges.push_back(best->first);
    for (auto& piece : pieces) {
      std::vector<std::string> merged;
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const bool both = i + 1 < piece.size() && piece[i] == best->first.first &&
                          piece[i + 1] == best->first.second;
        merged.push_back(both ? piece[i] + piece[i + 1] : piece[i]);
        i += both;
      }
      piece = merged;
    }
  }
  return merges;
}

// Encoding as GPT-2's encoder.py does it: the lowest merge, everywhere from left to right.
std::vector<std::string> naive_encode(const std::vector<BpeTokenizer::Pair>& merges,
                                      std::string_view text) {
  std::map<BpeTokenizer::Pair, std::size_t> ranks;
  for (const auto& merge : merges) ranks.emplace(merge, ranks.size());
  std::vector<std::string> all;
  split(text, [&](std::string_view piece) {
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    for (;;) {
      std::size_t best = merges.size();
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (const auto at = ranks.find({word[i], word[i + 1]}); at != ranks.end())
          best = std::min(best, at->second);
      if (best == merges.size()) break;
      std::vector<std::string> merged;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool both = i + 1 < word.size() && word[i] == merges[best].first &&
                          word[i + 1] == merges[best].second;
        merged.push_back(both ? word[i] + word[i + 1] : word[i]);
        i += both;
      }
      word = merged;
    }
    all.insert(all.end(), word.begin(), word.end());
  });
  return all;
}

// Texts of few letters, so that everything repeats; or of any bytes.
std::string random_text(uint64_t seed, std::size_t n, int letters) {
  std::string text;
  for (uint64_t x = seed; text.size() < n;) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const auto r = static_cast<int>(x >> 33) % (letters + 1);
    text.push_back(letters == 256 ? static_cast<char>(x >> 40)
                   : r == letters ? ' '
                                  : char('a' + r));
  }
  return text;
}

}  // namespace

TEST_CASE("training finds what counting anew before each merge finds") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::string text = random_text(seed, 60 + 40 * seed, seed % 3 == 0 ? 256 : 2 + seed % 4);
    text += text;
    const auto wanted = naive_training(text, 40);
    CAPTURE(seed);
    REQUIRE(wanted.size() > 3);
    const auto tokenizer = BpeTokenizer::train({text}, 257 + static_cast<int64_t>(wanted.size()));
    CHECK(tokenizer.merges() == wanted);
    CHECK(tokenizer.vocab_size() == 257 + static_cast<int64_t>(wanted.size()));
    CHECK(tokenizer.end_of_text() == tokenizer.vocab_size() - 1);
  }
  // Runs of one letter, whose pairs overlap.
  for (std::size_t n = 2; n < 40; ++n) {
    const std::string text(n, 'a');
    const auto wanted = naive_training(text, 40);
    CHECK(BpeTokenizer::train({text}, 257 + static_cast<int64_t>(wanted.size())).merges() ==
          wanted);
  }
}

TEST_CASE("ties go to the lexicographically greater pair; no pair crosses a piece or a text") {
  using Pairs = std::vector<BpeTokenizer::Pair>;
  CHECK(BpeTokenizer::train({"ab cd ab cd"}, 258).merges() == Pairs{{"c", "d"}});
  CHECK(BpeTokenizer::train({"\xc3\xa9 z \xc3\xa9"}, 258).merges() == Pairs{{"\xc3", "\xa9"}});
  // " b" twice, "a " never: a blank belongs to the word behind it.
  CHECK(BpeTokenizer::train({"a b a b"}, 258).merges() == Pairs{{" ", "b"}});
  CHECK(error_of([] {
          BpeTokenizer::train({"ab", "ab", "ba"}, 259);
        }) ==
        "BPE: the text repeats enough for a vocabulary of 258 tokens only; got 259; give a smaller "
        "vocabulary or a longer text");
  CHECK(error_of([] { BpeTokenizer::train({"abab"}, 256); }) ==
        "BPE: a vocabulary has at least 257 tokens, the bytes and the end of text; got 256");
  CHECK(BpeTokenizer::train({}, 257).vocab_size() == 257);
}

TEST_CASE("the published training run: 243 merges in order" * doctest::skip(!kData)) {
  const std::string corpus = slurp(data("bpe-training/corpus.en"));
  const auto wanted = merges_of(data("bpe-training/train-bpe-reference-merges.txt"));
  REQUIRE(wanted.size() == 243);
  const auto tokenizer = BpeTokenizer::train({corpus}, 500);
  CHECK(tokenizer.merges() == wanted);
  const json vocabulary = json::parse(slurp(data("bpe-training/train-bpe-reference-vocab.json")));
  CHECK(tokenizer.vocab_size() == static_cast<int64_t>(vocabulary.size()));
  std::set<std::string> ours, theirs;
  for (int64_t id = 0; id < 499; ++id) ours.insert(spell_bytes(tokenizer.token(id)));
  for (const auto& [token, id] : vocabulary.items())
    if (token != "<|endoftext|>") theirs.insert(token);
  CHECK(ours == theirs);
}

TEST_CASE("twice the text costs at most 2.5 times the operations") {
  const auto check = [](const char* what, auto operations) {
    const double once = static_cast<double>(operations(100'000)),
                 twice = static_cast<double>(operations(200'000));
    std::cout << "FIGURE | " << what << ": operations for 200 kB over those for 100 kB | "
              << twice / once << "\n";
    CHECK(once > 1000);
    CHECK(twice / once <= 2.5);
  };
  const auto training = [](auto text) {
    return [text](std::size_t n) {
      int64_t operations = 0;
      BpeTokenizer::train({text(n)}, 270, &operations);
      return operations;
    };
  };
  check("BPE training, words", training([](std::size_t n) { return random_text(1, n, 5); }));
  check("BPE training, one piece", training([](std::size_t n) {
          std::string text = random_text(2, n, 5);
          std::replace(text.begin(), text.end(), ' ', 'z');
          return text;
        }));
  check("BPE training, one letter", training([](std::size_t n) { return std::string(n, 'a'); }));
  // Encoding one long piece: how often two neighbours are looked at.
  check("merging a long piece", [](std::size_t n) {
    std::vector<int64_t> ids(n, 0);
    int64_t looks = 0;
    merge_neighbours(ids, true, [&](int64_t left, int64_t right) {
      ++looks;
      return left == right && left < 10 ? Merge{left, left + 1} : Merge{};
    });
    CHECK(ids.size() < n / 500);
    return looks;
  });
}

TEST_CASE("a megabyte of one letter is encoded and trained on") {
  const std::string text(1 << 20, 'a');
  const Tokenizer tokenizer = BpeTokenizer::train({text}, 266);
  const auto ids = tokenizer.encode(text);
  CHECK(ids == std::vector<int64_t>(2048, 264));  // of 512 letters each
  CHECK(tokenizer.decode(ids) == text);
}

TEST_CASE("encoding merges as GPT-2's own loop does") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const int letters = seed % 4 == 0 ? 256 : 2 + static_cast<int>(seed % 3);
    const std::string text = random_text(seed, 400, letters);
    std::vector<BpeTokenizer::Pair> merges = naive_training(text, 60);
    if (seed % 2 == 0) std::reverse(merges.begin(), merges.end());  // ranks that no training gives
    const BpeTokenizer tokenizer(merges, {"<|endoftext|>"});
    const std::string other = random_text(seed + 100, 300, letters);
    std::vector<std::string> tokens;
    for (const int64_t id : tokenizer.encode(other)) tokens.push_back(tokenizer.token(id));
    CHECK(tokens == naive_encode(merges, other));
  }
}

TEST_CASE("GPT-2's vocabulary: the ids of another implementation, 100 of 100" *
          doctest::skip(!kData)) {
  const Tokenizer tokenizer =
      BpeTokenizer::load_gpt2(data("gpt2-vocab.bpe"), data("gpt2-encoder.json"));
  CHECK(tokenizer.vocab_size() == 50257);
  CHECK(tokenizer.end_of_text() == 50256);
  std::ifstream in(data("gpt2-token-ids-100.txt"));
  int same = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.rfind(" => ");
    REQUIRE(at != line.npos);
    std::vector<int64_t> ids;
    std::stringstream numbers(line.substr(at + 4));
    for (std::string id; std::getline(numbers, id, ',');) ids.push_back(std::stoll(id));
    INFO(line);
    const std::string text = line.substr(0, at);
    CHECK(tokenizer.encode(text) == ids);
    CHECK(tokenizer.decode(ids) == text);
    same += tokenizer.encode(text) == ids;
  }
  CHECK(same == 100);
  std::cout << "FIGURE | GPT-2's token ids, of 100 | " << same << "\n";

  // vocab.bpe alone says the same, and so does what we write.
  const Tokenizer alone = Tokenizer::load(data("gpt2-vocab.bpe"));
  CHECK(alone.to_json() == tokenizer.to_json());
  CHECK(Tokenizer::from_json(tokenizer.to_json()).to_json() == tokenizer.to_json());

  const std::string plays = slurp(data("tinyshakespeare.txt"));
  const std::size_t cut = plays.size() * 9 / 10;
  CHECK(tokenizer.encode(plays.substr(0, cut)).size() == 301966);
  CHECK(tokenizer.encode(plays.substr(cut)).size() == 36059);
}

TEST_CASE(
    "any bytes come back, from every tokenizer that takes any; TextStream cuts no character") {
  std::vector<Tokenizer> tokenizers = {
      Tokenizer::bytes(), Tokenizer::bytes(true),
      BpeTokenizer::train(
          {"the cat sat on the mat, the cat \xc3\xa9\xc3\xa9 \xe2\x82\xac\xe2\x82\xac"}, 262)};
  if (kData) tokenizers.push_back(Tokenizer::load(data("gpt2-vocab.bpe")));
  if (kData) tokenizers.push_back(Tokenizer::load(data("tok512.bin")));
  std::vector<std::string> texts = {"",
                                    " ",
                                    "  a",
                                    "na\xc3\xafve \xf0\x9f\x90\xb8\xe2\x82\xac",
                                    "\xc3",
                                    "\x80",
                                    "<0x41> <s>\n</s>",
                                    "\xed\xa0\x80 \xf4\x90\x80\x80"};
  for (uint64_t seed = 1; seed <= 50; ++seed) texts.push_back(random_text(seed, 3 * seed, 256));
  for (const Tokenizer& tokenizer : tokenizers)
    for (const std::string& text : texts) {
      CAPTURE(tokenizer.kind());
      CAPTURE(text);
      const auto ids = tokenizer.encode(text);
      CHECK(tokenizer.decode(ids) == text);
      for (const int64_t id : ids) CHECK(id != tokenizer.end_of_text());
      TextStream stream(tokenizer, true);
      std::string all;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        all += stream.push(ids[i]);
        const std::string before = tokenizer.decode({ids.begin(), ids.begin() + i + 1});
        CHECK(all == before.substr(0, before.size() - unfinished(before)));
      }
      CHECK(all + stream.rest() == text);
      CHECK(stream.rest() == "");
    }
}

TEST_CASE("what ends a text stands for no text") {
  for (const Tokenizer& tokenizer : {Tokenizer::bytes(true), Tokenizer(CharTokenizer("ab", true)),
                                     Tokenizer(BpeTokenizer::train({"abab"}, 258))}) {
    const int64_t end = tokenizer.end_of_text().value();
    CHECK(end == tokenizer.vocab_size() - 1);
    CHECK(tokenizer.token(end) == "");
    auto ids = tokenizer.encode("ab");
    ids.push_back(end);
    CHECK(tokenizer.decode(ids) == "ab");
    CHECK(Tokenizer::from_json(tokenizer.to_json()).end_of_text() == end);
    for (const int64_t id : {int64_t{-1}, end + 1, INT64_MIN, INT64_MAX})
      CHECK(error_of([&] { tokenizer.token(id); }) == "decode: id " + std::to_string(id) +
                                                          " is outside [0, " +
                                                          std::to_string(end + 1) + ")");
  }
  CHECK(!Tokenizer(CharTokenizer("ab")).end_of_text());
  CHECK(!Tokenizer::bytes().end_of_text());
  CHECK(!Tokenizer().end_of_text());
}

TEST_CASE("llama2.c's tokenizer: the best score first, a blank in front, bytes for the rest" *
          doctest::skip(!kData)) {
  const Tokenizer tokenizer = Tokenizer::load(data("tok512.bin"));
  CHECK(tokenizer.kind() == "llama2");
  CHECK(tokenizer.vocab_size() == 512);
  CHECK(tokenizer.end_of_text() == 1);
  // The reference: one merge at a time, the whole text looked at before each.
  const json tokens = tokenizer.to_json();
  std::map<std::string, int64_t> ids;
  for (int64_t id = 259; id < 512; ++id) ids[tokenizer.token(id)] = id;
  const auto naive = [&](const std::string& text) {
    std::vector<int64_t> found;
    if (text.empty()) return found;
    const std::string all = " " + text;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t n = character_at(all, at).length;
      const auto piece = ids.find(all.substr(at, n));
      if (piece != ids.end())
        found.push_back(piece->second);
      else
        for (std::size_t i = at; i < at + n; ++i) found.push_back(3 + static_cast<uint8_t>(all[i]));
      at += n;
    }
    for (;;) {
      double best = -INFINITY;
      std::size_t where = 0;
      int64_t what = -1;
      for (std::size_t i = 0; i + 1 < found.size(); ++i) {
        const auto at = ids.find(tokenizer.token(found[i]) + tokenizer.token(found[i + 1]));
        if (at == ids.end()) continue;
        const double score = tokens["scores"][static_cast<std::size_t>(at->second)];
        if (score > best) best = score, where = i, what = at->second;
      }
      if (what < 0) return found;
      found[where] = what;
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
  };
  const std::string stories = slurp(data("tinystories-first-2MiB.txt"));
  for (std::size_t at = 0; at < 40'000; at += 400) {
    const std::string text = stories.substr(at, 400);
    if (tokenizer.encode(text) != naive(text)) FAIL("at " << at);
  }
  CHECK(tokenizer.encode("Once upon a time") == naive("Once upon a time"));
  CHECK(tokenizer.encode("\xe2\x98\x83") == naive("\xe2\x98\x83"));  // a snowman: three bytes
  CHECK(tokenizer.encode("\xe2\x98\x83").back() == 3 + 0x83);
  CHECK(tokenizer.encode("").empty());
  CHECK(Tokenizer::from_json(tokenizer.to_json()).to_json() == tokenizer.to_json());
}

TEST_CASE("files that are no tokenizer: the file, the fault, the repair") {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.file(name);
    spit(path, bytes);
    const std::string error = error_of([&] { Tokenizer::load(path); });
    CHECK(error.rfind(path + ":", 0) == 0);
    CHECK(error.find('\n') == error.npos);
    return error.substr(std::min(error.size(), path.size()));
  };
  CHECK(fault("v.bpe", "") == ": holds no merges; wanted GPT-2's vocab.bpe");
  CHECK(fault("v.bpe", "#version: 0.2\nh e\nhe\n").find(":3: wanted two tokens with a blank") == 0);
  CHECK(fault("v.bpe", "h e\na b c\n").find(":2: wanted two tokens") == 0);
  CHECK(fault("v.bpe", "h \xe2\x82\xac\n") ==
        ":1: BPE: the token \xe2\x82\xac has a character that spells no byte; download the file "
        "again");
  CHECK(fault("v.bpe", "a b\na b\n") == ": BPE: the token ab stands twice");
  CHECK(fault("v.bpe", "a b\nab cd\n") == ": BPE: no token for cd");
  CHECK(fault("t.json", "{").find(": this is not JSON; give the tokenizer.json of a run") == 0);
  CHECK(fault("t.json", "{}").find(": tokenizer: wanted \"type\"") == 0);
  CHECK(fault("t.json", R"({"type":"bpe","tokens":["a"],"merges":[],"special":[]})")
            .find(": BPE: no token for \xc4\x80") == 0);
  CHECK(fault("t.json", R"({"type":"bpe","tokens":[1],"merges":[],"special":[]})")
            .find(": tokenizer: wanted {\"type\": \"bpe\", \"tokens\"") == 0);
  CHECK(fault("t.json", R"({"type":"llama2","tokens":["a"],"scores":[0]})")
            .find(": tokenizer: wanted at least 259 tokens") == 0);
  CHECK(fault("t.json", R"({"type":"byte","end_of_text":3})")
            .find(": tokenizer: end_of_text is true or false; got 3") == 0);
  CHECK(fault("t.bin", "ab").find(": has 2 bytes only; wanted a tokenizer of llama2.c") == 0);
  CHECK(fault("t.bin", std::string(4, '\0')).find(": tokenizer: wanted at least 259") == 0);
  CHECK(fault("t.bin", std::string("\7\0\0\0\0\0\0\0\x7f\0\0\0", 12))
            .find(": token 0 has a length of 127, but the longest has 7, and 0 bytes are left") ==
        0);
  CHECK(fault("t.bin", std::string("\7\0\0\0abc", 7)).find(": ends within token 0") == 0);
  CHECK(error_of([&] { Tokenizer::load(folder.file("none.bpe")); }).find("none.bpe: ") !=
        std::string::npos);

  if (!kData) return;
  const std::string whole = slurp(data("tok512.bin"));
  for (std::size_t n : {std::size_t{3}, std::size_t{4}, std::size_t{100}, whole.size() - 1})
    fault("t.bin", whole.substr(0, n));
  std::string wrong = whole;
  wrong[wrong.find("<0x41>")] = '{';
  CHECK(fault("t.bin", wrong).find(": tokenizer: token 68 must be <0x41>; got {0x41>") == 0);
  // An encoder.json whose ids do not count from 0.
  json encoder = json::parse(slurp(data("gpt2-encoder.json")));
  encoder["he"] = 50257;
  spit(folder.file("e.json"), encoder.dump());
  CHECK(error_of([&] { BpeTokenizer::load_gpt2(data("gpt2-vocab.bpe"), folder.file("e.json")); }) ==
        folder.file("e.json") + ": wanted each id from 0 to 50256 once; got 50257 for he");
}
