// Files, folders and documents become tokens, and a damaged file of tokens is not believed.
#include "nn/corpus.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "error_of.h"
#include "tensor/file_helpers.h"

using namespace pellucid;
using namespace pellucid::nn;
namespace fs = std::filesystem;
using Views = std::vector<std::string_view>;

namespace {

Corpus read(const std::vector<std::string>& paths, const std::string& documents,
            const std::string& separator = "") {
  return read_corpus({.paths = paths, .documents = documents, .separator = separator});
}

}  // namespace

TEST_CASE("one running text: the last tenth is held out; several files stand behind each other") {
  const TemporaryFolder folder;
  spit(folder.file("a"), "0123456789abcdefghij");
  spit(folder.file("b"), "klmnopqrst");
  const Corpus one = read({folder.file("a")}, "text");
  CHECK(one.training == Views{"0123456789abcdefgh"});
  CHECK(one.validation == Views{"ij"});
  CHECK(one.source.bytes == 20);
  const Corpus two = read({folder.file("a"), folder.file("b")}, "text");
  CHECK(two.training == Views{"0123456789abcdefghijklmnopq"});
  CHECK(two.validation == Views{"rst"});
  CHECK(two.source.bytes == 30);
  CHECK(fs::path(two.source.paths[0]).is_absolute());
}

TEST_CASE("the hash is FNV-1a of the bytes, and tells where files end") {
  const TemporaryFolder folder;
  const auto hash = [&](const std::vector<std::string>& texts) {
    std::vector<std::string> paths;
    for (const std::string& text : texts) {
      paths.push_back(folder.file(std::to_string(paths.size())));
      spit(paths.back(), text);
    }
    return read(paths, "text").source.hash;
  };
  CHECK(hash({"a"}) == 0xaf63dc4c8601ec8cu);
  CHECK(hash({"\xff"}) == 0xaf64724c8602eb6eu);
  CHECK(hash({"ab"}) != hash({"ba"}));
  CHECK(hash({"ab", "c"}) != hash({"a", "bc"}));
}

TEST_CASE("a folder's files in the order of their names, those below it too, hidden ones not") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("data/sub"));
  fs::create_directories(folder.file("data/.git"));
  spit(folder.file("data/b.txt"), "bee");
  spit(folder.file("data/a.txt"), "ay");
  spit(folder.file("data/sub/c.txt"), "sea");
  spit(folder.file("data/.hidden"), "no");
  spit(folder.file("data/.git/d"), "no");
  const Corpus corpus = read({folder.file("data")}, "files");
  CHECK(corpus.training == Views{"ay", "bee"});
  CHECK(corpus.validation == Views{"sea"});
  fs::create_directory(folder.file("hollow"));
  CHECK(error_of([&] { read({folder.file("hollow")}, "files"); }) ==
        folder.file("hollow") + ": holds no files; give a folder of text files");
  spit(folder.file("data/z.bin"), std::string("a\0b", 3));
  CHECK(error_of([&] { read({folder.file("data")}, "files"); }) ==
        folder.file("data/z.bin") +
            ": looks binary (byte 0 at position 1); give a plain text file");
}

TEST_CASE("lines and separators: every tenth document is held out, empty ones are none") {
  const TemporaryFolder folder;
  std::string lines, stories;
  for (int i = 1; i <= 25; ++i) {
    lines += "name" + std::to_string(i) + (i % 2 ? "\n" : "\r\n\n");
    stories += "story " + std::to_string(i) + "\nends.\n<|x|>\n";
  }
  spit(folder.file("lines"), lines);
  spit(folder.file("stories"), stories);
  const Corpus names = read({folder.file("lines")}, "lines");
  CHECK(names.training.size() == 23);
  CHECK(names.validation == Views{"name10", "name20"});
  CHECK(names.training[1] == "name2");
  const Corpus told = read({folder.file("stories")}, "separator", "<|x|>");
  CHECK(told.training.size() == 23);
  CHECK(told.training[0] == "story 1\nends.");
  CHECK(told.validation == Views{"story 10\nends.", "story 20\nends."});

  spit(folder.file("three"), "a\nb\nc");
  CHECK(read({folder.file("three")}, "lines").validation == Views{"c"});
  spit(folder.file("one"), "a\n\n");
  CHECK(error_of([&] { read({folder.file("one")}, "lines"); }) ==
        folder.file("one") +
            ": has 1 document, too few: one is for training and one for validation; give more, or "
            "read it as one text by --documents text");
}

TEST_CASE("tokens: documents stand between ends, a running text has none; bytes per token") {
  const TemporaryFolder folder;
  spit(folder.file("lines"), "ab\nb\na\n");
  const Corpus corpus = read({folder.file("lines")}, "lines");
  const Tokenizer tokenizer = CharTokenizer("ab", true);
  const Tokens tokens = encode(corpus, tokenizer);
  CHECK(tokens.training == std::vector<int64_t>{2, 0, 1, 2, 1, 2});
  CHECK(tokens.validation == std::vector<int64_t>{2, 0, 2});
  CHECK(bytes_per_token(tokens.training, tokenizer) == 3.0 / 5);
  // The blank that llama2 puts before a text is not of it: "ab" has 2 bytes, " ab" is one token.
  std::vector<std::string> pieces(3);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    pieces.emplace_back(name);
  }
  pieces.insert(pieces.end(), {" ", "a", "b", " a", " ab"});
  const Tokenizer llama = Llama2Tokenizer(pieces, std::vector<float>(pieces.size(), 0));
  const std::vector<int64_t> documents = encode(corpus, llama).training;
  CHECK(documents == std::vector<int64_t>{1, 263, 1, 259, 261, 1});
  CHECK(bytes_per_token(documents, llama) == 3.0 / 5);
  CHECK(bytes_per_token({263, 259, 261}, llama) == 2.0 / 2);  // within a text it is
  CHECK(error_of([&] { encode(corpus, Tokenizer(CharTokenizer("ab"))); }) ==
        "the tokenizer has no token that ends a document");
  const Corpus text = read({folder.file("lines")}, "text");
  CHECK(encode(text, Tokenizer(CharTokenizer("\nab"))).training ==
        std::vector<int64_t>{1, 2, 0, 2, 0, 1, 0});
}

TEST_CASE("a file of tokens: the same tokens back, and nothing from a damaged or another one") {
  const TemporaryFolder folder;
  spit(folder.file("text"), "the cat and the dog and the bird and the cat and the dog");
  Corpus corpus = read({folder.file("text")}, "text");
  const Tokenizer tokenizer = BpeTokenizer::train(corpus.training, 262);
  const Tokens tokens = encode(corpus, tokenizer);
  const std::string path = folder.file("tokens.bin");
  CHECK(!load_tokens(path, corpus.source, tokenizer));
  save_tokens(path, corpus.source, tokenizer, tokens);
  const auto back = load_tokens(path, corpus.source, tokenizer);
  REQUIRE(back);
  CHECK(back->training == tokens.training);
  CHECK(back->validation == tokens.validation);

  CHECK(!load_tokens(path, corpus.source, Tokenizer::bytes()));
  for (int change = 0; change < 4; ++change) {
    DataSource other = corpus.source;
    if (change == 0) ++other.bytes;
    if (change == 1) ++other.hash;
    if (change == 2) other.documents = "lines";
    if (change == 3) other.separator = "x";
    CHECK(!load_tokens(path, other, tokenizer));
  }
  const std::string whole = slurp(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    spit(path, damaged);
    const auto read_back = load_tokens(path, corpus.source, tokenizer);
    // JSON has bytes that do not matter, and no others may pass.
    if (read_back &&
        (read_back->training != tokens.training || read_back->validation != tokens.validation))
      FAIL("byte " << i);
    spit(path, whole.substr(0, i));
    if (load_tokens(path, corpus.source, tokenizer)) FAIL("cut at " << i);
  }
}
