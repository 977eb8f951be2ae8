// What `train` reads: tokenizers by name and from files, folders and several files as documents.
#include <nlohmann/json.hpp>

#include "desk.h"

using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("tokenizers that cannot be had, or do not fit the text; another run's serves again") {
  const Desk desk;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    std::vector<std::string> arguments = {"train", "--data", "text.txt", "--preset", "tiny",
                                          "--out", "new",    "--steps",  "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    desk.refused(arguments, {part});
  };
  refused({"--tokenizer", "bp"},
          "no tokenizer is called \"bp\"; there are: char, byte, bpe, and files");
  refused({"--tokenizer", "bpe", "--vocab-size", "100000"},
          "BPE: the text repeats enough for a vocabulary of ");
  refused({"--tokenizer", "text.txt"}, "text.txt:1: wanted two tokens with a blank between them");
  spit(desk.folder.file("t.json"), R"({"type":"char","bytes":[97]})");
  refused({"--tokenizer", "t.json"},
          "is not among the 1 characters that the model was trained on; give another --tokenizer");
  refused({"--tokenizer", "t.json", "--documents", "lines"},
          "text.txt: the tokenizer has no token that ends a document; give another --tokenizer");
  refused({"--separator", "no such words"},
          "text.txt: has 1 document, too few: one is for training and one for validation");

  REQUIRE(desk.train("first", {"--tokenizer", "bpe", "--vocab-size", "300"}).code == 0);
  REQUIRE(desk.train("second", {"--tokenizer", "first/tokenizer.json"}).code == 0);
  for (const char* file : {"tokenizer.json", "tokens.bin", "model.safetensors"})
    CHECK(slurp(desk.folder.file(std::string("first/") + file)) ==
          slurp(desk.folder.file(std::string("second/") + file)));
}

TEST_CASE("a folder and several files are documents; resuming finds them again") {
  const Desk desk;
  fs::create_directories(desk.folder.file("texts/more"));
  for (int i = 0; i < 12; ++i)
    spit(desk.folder.file("texts/" + std::string(i % 2 ? "more/" : "") + std::to_string(i)),
         sentences(200, static_cast<uint64_t>(i)));
  const auto before = snapshot(desk.folder.path / "texts");
  REQUIRE(desk.pellucid({"train", "--data", "texts", "text.txt", "--preset", "tiny", "--out", "run",
                         "--steps", "20"})
              .code == 0);
  CHECK(snapshot(desk.folder.path / "texts") == before);
  const json data = json::parse(slurp(desk.folder.file("run/config.json"))).at("data");
  CHECK(data.at("documents") == "files");
  CHECK(data.at("paths").size() == 2);
  CHECK(data.at("bytes") == 12 * 200 + 4000);
  CHECK(desk.pellucid({"train", "--resume", "run"}).code == 0);
  spit(desk.folder.file("texts/0"), sentences(200, 99));
  desk.refused({"train", "--resume", "run"}, {"texts: is not the text that the run began with"});
}
