// A desk with what is wrong in every way, for the tables of bad input: wrong command lines,
// settings, files and folders of every command, each with its message, whole, and its exit code: 2
// for the line, 1 for what it names. Nothing is written, nothing goes to stdout, and the message is
// one line of ASCII.
#pragma once
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>

#include "autograd/ops.h"
#include "desk.h"
#include "tensor/safetensors.h"

using namespace pellucid;
namespace fs = std::filesystem;

using Words = std::vector<std::string>;

struct Row {
  Words arguments;
  std::string message;
  RunOptions options = {};
};

inline Words words(const std::string& line) {
  Words parts;
  std::stringstream in(line);
  for (std::string part; in >> part;) parts.push_back(part);
  return parts;
}

// A model of llama2.c: the header, and 0.1 for every weight.
inline std::string llama_file(int32_t width) {
  const int32_t sizes[] = {width, 10, 2, 3, 1, 256, 9};  // C, hidden, L, H, Hkv, V, T
  const std::vector<float> weights(
      256 * 12 + 4 * 12 + 2 * 12 * 12 * 2 + 2 * 2 * 4 * 12 + 3 * 2 * 10 * 12 + 12 + 9 * 4, 0.1F);
  std::string bytes(reinterpret_cast<const char*>(sizes), sizeof sizes);
  return bytes.append(reinterpret_cast<const char*>(weights.data()),
                      weights.size() * sizeof(float));
}

// A desk with a trained run, copies of it each damaged in one file, and other files that are wrong.
struct Damaged : Desk {
  Damaged() {
    REQUIRE(train("run").code == 0);
    REQUIRE(train("bytes", {"--tokenizer", "byte"}).code == 0);
    copies();
    spit(folder.file("old.txt"), text);
    REQUIRE(pellucid({"train", "--data", "old.txt", "--preset", "tiny", "--out", "changed",
                      "--steps", "2"})
                .code == 0);
    spit(folder.file("old.txt"), sentences(4000, 2));
    models();
    spit(folder.file("empty"), ""), spit(folder.file("three"), "abc");
    spit(folder.file("binary"),
         "\x7f"
         "ELF" +
             std::string(4, '\0') + text);
    spit(folder.file("open.json"), "{\"model\": {},\n\"steps\" 3}");
    spit(folder.file("list.json"), "[1]"), spit(folder.file("deep.json"), std::string(100000, '['));
    spit(folder.file("key.json"), R"({"model": {}, "stepz": 3})");
    spit(folder.file("model_key.json"), R"({"model": {"n_layers": 3}, "steps": 3})");
    spit(folder.file("kind.json"), R"({"model": {}, "steps": 3, "lr": "fast"})");
    spit(folder.file("nan.json"), R"({"model": {}, "steps": 3, "lr": NaN})");
    spit(folder.file("twice.json"), R"({"model": {}, "steps": 3, "steps": 4})");
    spit(folder.file("minus.json"), R"({"model": {}, "steps": -3})");
    spit(folder.file("gold.jsonl"), R"({"query": "a", "choices": ["b", "c"], "gold": 2})");
    spit(folder.file("extra.jsonl"),
         std::string(R"({"query": "a", "choices": ["b", "c"], "gold": 1})") + "\n" +
             R"({"query": "a", "choices": ["b", "c"], "gold": 1, "label": 0})");
    spit(folder.file("twice.jsonl"),
         std::string(R"({"query": "a", "choices": ["b", "c"], "gold": 1})") + "\n" +
             R"({"query": "a", "choices": ["b", "c"], "gold": 1, "gold": 0})");
    spit(folder.file("both.jsonl"), R"({"context": "a", "continuation": "b", "gold": 0})");
    spit(folder.file("cut.jsonl"), R"({"query": "a", "choices": ["b",)");
    spit(folder.file("foreign.jsonl"), R"({"context": "the", "continuation": "Zebra"})");
    fs::create_directory(folder.file("hollow"));
    spit(folder.file("blank"), "\n\r\n\n");
  }
  void copies() const {
    const auto copy = [&](const char* name, const char* file, const std::string& bytes) {
      fs::copy(folder.file("run"), folder.file(name));
      spit(folder.file(std::string(name) + "/" + file), bytes);
    };
    const std::string model = slurp(folder.file("run/model.safetensors"));
    copy("cut_model", "model.safetensors", model.substr(0, 5000));
    copy("no_model", "model.safetensors", "");
    std::string nan = model;
    const float bad = std::nanf("");
    std::memcpy(&nan[nan.size() - 40], &bad, sizeof bad);
    copy("nan_model", "model.safetensors", nan);
    copy("bad_config", "config.json", "{");
    copy("bad_tokens", "tokenizer.json", "{\"kind\": 3}");
    copy("other_tokens", "tokenizer.json", slurp(folder.file("bytes/tokenizer.json")));
    copy("twice_config", "config.json",
         "{\"format\": 1," + slurp(folder.file("run/config.json")).substr(1));
    copy("twice_tokens", "tokenizer.json",
         "{\"type\": 1," + slurp(folder.file("run/tokenizer.json")).substr(1));
    SafeTensors state = load_safetensors(folder.file("run/state.safetensors"));
    state.metadata["rest"].insert(1, "\"seconds\":1,");
    copy("twice_state", "state.safetensors", "");
    save_safetensors(folder.file("twice_state/state.safetensors"), state);
    copy("cut_state", "state.safetensors",
         slurp(folder.file("run/state.safetensors")).substr(0, 50000));
    copy("no_config", "config.json", "");
    fs::remove(folder.file("no_config/config.json"));
    copy("no_state", "state.safetensors", "");
    fs::remove(folder.file("no_state/state.safetensors"));
  }
  void models() const {
    const std::string llama = llama_file(12);
    std::string nan = llama;
    const float bad = std::numeric_limits<float>::infinity();
    std::memcpy(&nan[28], &bad, sizeof bad);
    spit(folder.file("llama.bin"), llama), spit(folder.file("nan.bin"), nan);
    spit(folder.file("cut.bin"), llama.substr(0, llama.size() - 100));
    spit(folder.file("minus.bin"), llama_file(-12));
    save_safetensors(folder.file("half.safetensors"), {{{"wte.weight", full({7, 12}, 0)}}, {}});
    const std::string half = slurp(folder.file("half.safetensors"));
    spit(folder.file("cut.safetensors"), half.substr(0, half.size() - 10));
  }
};
inline const Damaged& damaged() {
  static const Damaged one;
  return one;
}

// Each row as the heading says; returns how many there were.
inline std::size_t check(int code, const std::vector<Row>& rows) {
  const Damaged& desk = damaged();
  const auto before = snapshot(desk.folder.path);
  for (const Row& row : rows) {
    RunOptions options = row.options;
    options.environment["PELLUCID_COMMAND"] = "pellucid";
    const Ended ended = desk.pellucid(row.arguments, options);
    std::string command;
    for (const std::string& argument : row.arguments) command += argument + " ";
    CAPTURE(command);
    CHECK(ended.err == "pellucid: " + row.message + "\n");
    CHECK(ended.code == code);
    CHECK(ended.out == "");
    CHECK(ascii(ended.err));
    CHECK(snapshot(desk.folder.path) == before);
  }
  return rows.size();
}

inline std::string twice(const std::string& key) {
  return "\"" + key + "\" stands there twice; wanted once";
}

inline void tell(const char* what, std::size_t rows) {
  std::cout << "FIGURE | rows of bad input, " << what << " | " << rows << std::endl;
}
