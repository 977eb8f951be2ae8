// The program as its user meets it: the files of a run, and for everything that can be wrong with a
// command, a file or a folder one line, the right exit code, and nothing written.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "desk.h"
#include "nn/checkpoint.h"
#include "tensor/safetensors.h"

using namespace pellucid;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::vector<json> json_lines(const std::string& path) {
  std::vector<json> found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) found.push_back(json::parse(line));
  return found;
}

}  // namespace

TEST_CASE("a run's folder: the files, the metrics' keys, the words on the way") {
  const Desk desk;
  const Ended ended = desk.train("a/b run");
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ascii(ended.out));
  CHECK(ascii(ended.err));
  CHECK(ended.out.find("a/b run: ") == 0);
  CHECK(ended.out.find("Done: val_loss ") != std::string::npos);
  CHECK(ended.out.find("after 40 steps") != std::string::npos);
  // The hint is a command that runs, quoted for a shell.
  const std::string hint = ended.out.substr(ended.out.rfind("\n  ") + 3);
  CHECK(hint.ends_with("/pellucid sample --model 'a/b run' --tokens 300\n"));
  const Ended hinted = desk.pellucid({"-c", hint}, {.program = "/bin/sh"});
  CHECK(hinted.code == 0);
  CHECK(hinted.out.size() == 302);
  CHECK(ended.err.find("step 40: loss ") != std::string::npos);
  for (const char* word : {"step 40/40", "loss ", "tokens/s", "lr ", "norm ", "left "})
    CHECK(ended.err.find(word) != std::string::npos);

  const std::string folder = desk.folder.file("a/b run");
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path().filename());
  CHECK(files == std::set<std::string>{"command.txt", "config.json", "lock", "metrics.jsonl",
                                       "model.safetensors", "samples.jsonl", "state.safetensors",
                                       "tokenizer.json"});

  const std::vector<json> metrics = json_lines(folder + "/metrics.jsonl");
  REQUIRE(metrics.size() == 40);
  for (int64_t i = 0; i < 40; ++i) {
    const json& line = metrics[static_cast<std::size_t>(i)];
    CHECK(line.at("step") == i + 1);
    CHECK(line.at("tokens") == (i + 1) * 8 * 32);
    std::set<std::string> keys, wanted = {"step", "tokens",    "loss",         "bits_per_byte",
                                          "lr",   "grad_norm", "tokens_per_s", "seconds"};
    if (i + 1 == 40) wanted.insert({"val_loss", "val_bits_per_byte"});
    for (const auto& [key, value] : line.items()) {
      keys.insert(key);
      CHECK(value.is_number());
      CHECK(value > 0);
    }
    CHECK(keys == wanted);
  }
  CHECK(metrics.back().at("loss") < metrics.front().at("loss"));

  const json config = json::parse(slurp(folder + "/config.json"));
  CHECK(config.at("train").at("steps") == 40);
  CHECK(config.at("data").at("bytes") == desk.text.size());
  SafeTensors model = load_safetensors(folder + "/model.safetensors");
  CHECK(model.tensors.count("h.0.attn.c_attn.weight") == 1);
  CHECK(model.tensors.count("wte.weight") == 1);
}

TEST_CASE("the same command gives the same bytes, another seed or attention gives others") {
  const Desk desk;
  for (const auto& [name, more] :
       std::map<std::string, std::vector<std::string>>{{"one", {"--threads", "1"}},
                                                       {"three", {"--threads", "3"}},
                                                       {"seven", {"--threads", "7"}},
                                                       {"seed", {"--seed", "2"}},
                                                       {"sa", {"--attention", "sa"}}})
    REQUIRE(desk.train(name, more).code == 0);
  const auto model = [&](const std::string& name) {
    return slurp(desk.folder.file(name + "/model.safetensors"));
  };
  CHECK(model("one") == model("three"));
  CHECK(model("one") == model("seven"));
  CHECK(model("one") != model("seed"));
  CHECK(model("one") != model("sa"));
}

TEST_CASE("data that is no text: one line with the repair, nothing written") {
  const Desk desk;
  const auto refused = [&](const std::string& data, const std::vector<std::string>& parts) {
    desk.refused({"train", "--data", data, "--preset", "tiny", "--out", "new"}, parts);
  };
  refused("none.txt", {"none.txt: no such file; give the path of a text file"});
  refused("two\nlines", {"no such file"});
  spit(desk.folder.file("empty"), "");
  refused("empty", {"empty: is empty; give a text file"});
  spit(desk.folder.file("three"), "abc");
  refused("three", {"three: has 3 characters, too few", "give a text of at least 36 characters"});
  spit(desk.folder.file("short"), sentences(35));
  refused("short", {"short: has 35 characters, too few", "the context of 32"});
  spit(desk.folder.file("binary"), std::string("\x7f"
                                               "ELF\0\1\2\3",
                                               8) +
                                       desk.text);
  refused("binary", {"binary: looks binary (byte 0 at position 4); give a plain text file"});
  spit(desk.folder.file("tail"), desk.text + '\0');
  refused("tail", {"looks binary (byte 0 at position 4000)"});
  refused(".", {"binary: looks binary (byte 0 at position 4)"});  // a file in it
  fs::create_directory(desk.folder.file("none"));
  refused("none", {"none: holds no files; give a folder of text files"});
  refused("/dev/zero", {"is no ordinary file"});

  spit(desk.folder.file("enough"), sentences(36));
  CHECK(desk.pellucid(
                {"train", "--data", "enough", "--preset", "tiny", "--out", "new", "--steps", "2"})
            .code == 0);
}

TEST_CASE("folders that cannot be used: one line with the repair, nothing written") {
  const Desk desk;
  const auto refused = [&](const std::string& out, const std::vector<std::string>& parts) {
    desk.refused({"train", "--data", "text.txt", "--preset", "tiny", "--out", out}, parts);
  };
  refused("text.txt", {"text.txt: is a file, not a folder; give another name"});
  refused("text.txt/run", {"text.txt/run: this folder cannot be made: "});
  refused("/proc/self/run", {"/proc/self/run: this folder cannot be made: ", "give another one"});
  REQUIRE(desk.train("run").code == 0);
  refused("run", {"run: holds a run already", "go on with it by --resume run"});
  fs::create_directory(desk.folder.file("own"));
  for (const char* name : {"report.html", "tokenizer.json", "command.txt"}) {
    spit(desk.folder.file(std::string("own/") + name), "my own");
    desk.refused({"train", "--data", "text.txt", "--preset", "tiny", "--out", "own", "--report"},
                 {"own: holds a file ", name, "; give a new folder"});
    fs::remove(desk.folder.file(std::string("own/") + name));
  }
  desk.refused({"train", "--resume", "none"},
               {"none: no such folder; give the one that --out named"});
  desk.refused({"train", "--resume", "."}, {".: holds no run"});
  desk.refused({"sample", "--model", "none"}, {"none: no such folder"});
  desk.refused({"sample", "--model", "."}, {".: holds no run"});
  desk.refused({"eval", "--model", "run", "--data", "none"}, {"none: no such file"});
  fs::create_directory(desk.folder.file("hollow"));
  desk.refused({"eval", "--model", "run", "--data", "hollow"}, {"hollow: holds no files"});
}

TEST_CASE("without permission: one line with the repair" * doctest::skip(!can_be_nobody()) *
          doctest::description("cannot become the user nobody here")) {
  const Desk desk;
  REQUIRE(desk.train("run").code == 0);
  fs::copy_file(PELLUCID_PROGRAM, desk.folder.file("program"));  // which nobody can reach
  REQUIRE(chmod(desk.folder.path.c_str(), 0755) == 0);
  REQUIRE(chmod(desk.folder.file("run").c_str(), 0755) == 0);
  const RunOptions nobody{.program = desk.folder.file("program"), .as_nobody = true};
  if (geteuid() != 0) REQUIRE(chmod(desk.folder.file("run").c_str(), 0555) == 0);
  fs::create_directory(desk.folder.file("mine"));
  REQUIRE(chmod(desk.folder.file("mine").c_str(), 0555) == 0);
  desk.refused({"train", "--data", "text.txt", "--preset", "tiny", "--out", "mine"},
               {"mine: this folder cannot be written: Permission denied; give another one"},
               nobody);
  desk.refused({"train", "--data", "text.txt", "--preset", "tiny", "--out", "mine/new"},
               {"mine/new: this folder cannot be made: Permission denied"}, nobody);
  fs::remove(desk.folder.file("run/lock"));
  desk.refused({"train", "--resume", "run"}, {"run/lock: cannot be made: Permission denied"},
               nobody);
  // Reading is enough for sampling.
  const Ended sampled =
      desk.pellucid({"sample", "--model", "run", "--prompt", "the", "--tokens", "3"}, nobody);
  CHECK(sampled.code == 0);

  spit(desk.folder.file("secret"), desk.text);
  REQUIRE(chmod(desk.folder.file("secret").c_str(), 0) == 0);
  desk.refused({"eval", "--model", "run", "--data", "secret"},
               {"secret: cannot be read: Permission denied; change its permissions"}, nobody);
  REQUIRE(chmod(desk.folder.file("secret").c_str(), 0600) == 0);
  fs::create_directory(desk.folder.file("hidden"));
  REQUIRE(chmod(desk.folder.file("hidden").c_str(), 0) == 0);
  // As a user without rights of a folder that cannot be searched: not "no such file".
  const Ended ended = desk.pellucid({"eval", "--model", "run", "--data", "hidden/text"}, nobody);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("hidden/text: cannot be read: Permission denied") != std::string::npos);
  REQUIRE(chmod(desk.folder.file("hidden").c_str(), 0700) == 0);
}

TEST_CASE("wrong command lines: exit code 2, and nothing written") {
  const Desk desk;
  const auto before = snapshot(desk.folder.path);
  const std::vector<std::string> train = {"train", "--data", "text.txt", "--preset",
                                          "tiny",  "--out",  "new"};
  const auto wrong = [&](std::vector<std::string> arguments,
                         const std::vector<std::string>& more = {}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = desk.pellucid(arguments);
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    INFO(command << "\n" << ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.err.size() > 10);
    CHECK(ended.out == "");
    CHECK(ascii(ended.err));
  };
  wrong({});
  wrong({"tain"});
  wrong({"--steps", "3"});
  wrong({"train"});
  wrong({"train", "--data", "text.txt"});
  wrong({"train", "--data", "text.txt", "--out", "new"});
  wrong({"train", "--data", "text.txt", "--preset", "tiny"});
  wrong({"train", "--resume", "new", "--out", "other"});
  wrong({"train", "--resume", "new", "--steps", "5"});
  wrong({"train", "--resume", ""});
  wrong({"train", "--data", "", "--preset", "tiny", "--out", "new"});
  wrong({"train", "--data", "text.txt", "--preset", "tiny", "--out", ""});
  wrong({"sample", "--model", ""});
  wrong({"train", "--resume", "new", "--preset", "tiny"});
  wrong(train, {"--attention", "linear"});
  wrong(train, {"--steps", "0"});
  wrong(train, {"--steps", "-1"});
  wrong(train, {"--steps", "x"});
  wrong(train, {"--steps", "1.5"});
  wrong(train, {"--steps", "99999999999999999999"});
  wrong(train, {"--steps", "5", "--minutes", "1"});
  wrong(train, {"--minutes", "0"});
  wrong(train, {"--minutes", "-3"});
  wrong(train, {"--minutes", "nan"});
  wrong(train, {"--minutes", "inf"});
  for (const char* seed :
       {"-1", "18446744073709551616", "99999999999999999999999", "0x10", "1.0", "", " 1", "1 "})
    wrong(train, {"--seed", seed});
  wrong(train, {"--vocab-size", "500"});
  wrong(train, {"--tokenizer", "bpe", "--vocab-size", "256"});
  wrong(train, {"--tokenizer", ""});
  wrong(train, {"--documents", "pages"});
  wrong(train, {"--documents", "lines", "--separator", "x"});
  wrong(train, {"--separator", ""});
  wrong({"train", "--resume", "new", "--tokenizer", "byte"});
  wrong({"train", "--resume", "new", "--documents", "lines"});
  wrong(train, {"--threads", "0"});
  wrong(train, {"--threads", "x"});
  wrong(train, {"--unknown"});
  wrong(train, {"left over"});
  wrong({"sample"});
  wrong({"sample", "--model", "run", "--tokens", "-1"});
  wrong({"sample", "--model", "run", "--top-k", "-1"});
  wrong({"sample", "--model", "run", "--temperature", "-0.1"});
  wrong({"sample", "--model", "run", "--temperature", "nan"});
  wrong({"sample", "--model", "run", "--top-p", "0"});
  wrong({"sample", "--model", "run", "--top-p", "1.1"});
  wrong({"sample", "--model", "run", "--interactive", "--prompt", "a"});
  wrong({"eval", "--model", "run"});
  wrong({"eval", "--model", "run", "--ngram"});
  wrong({"eval", "--model", "run", "--tasks"});
  wrong({"eval", "--data", "text.txt"});
  wrong({"demo", "--attention", "x"});
  wrong({"demo", "--minutes", "0"});
  CHECK(snapshot(desk.folder.path) == before);

  // One line that says what is wrong, and where help is.
  RunOptions named;
  named.environment = {{"PELLUCID_COMMAND", "./pellucid"}};
  for (const auto& [arguments, line] : std::map<std::vector<std::string>, std::string>{
           {{"tain"},
            "no command \"tain\"; there are: train, sample, eval, demo, inspect, report, doctor, "
            "bench, grade, test; see ./pellucid --help"},
           {{"train", "--data", "text.txt"},
            "train: needs --preset and --out (or --resume alone); see ./pellucid train --help"},
           {{"train", "--out", ""}, "--out: the value is empty; see ./pellucid train --help"},
           {{"sample", "--model", "run", "--temperatur", "1"},
            "not expected: --temperatur 1; see ./pellucid sample --help"},
           {{"sample", "--model", "run", "--seed", "-1"},
            "--seed: wanted a whole number from 0 to 18446744073709551615; got \"-1\"; see "
            "./pellucid sample --help"},
           {{"demo", "--minutes", "x"},
            "--minutes: wanted a number from 0.05 to 10000; got \"x\"; see ./pellucid demo --help"},
           {{"train", "--data", "text.txt", "--preset", "huge", "--out", "new"},
            "no preset is called \"huge\"; there are: tiny, demo, names, shakespeare, stories, "
            "gpt2-small-shape; see ./pellucid train --help"},
           {{"demo", "--seed"}, "--seed: 1 required value missing; see ./pellucid demo --help"}})
    CHECK(desk.pellucid(arguments, named).err == "pellucid: " + line + "\n");
  CHECK(desk.pellucid({}).err == desk.pellucid({"--help"}).out);
  const std::string page = desk.pellucid({"train", "--help"}, named).out;
  CHECK(page.find("Usage: ./pellucid train [OPTIONS]\n") != std::string::npos);
  CHECK(page.find("  --seed N  ") != std::string::npos);
  for (const char* type : {"INT", "UINT", "TEXT:", "FLOAT", "=1"})
    CHECK(page.find(type) == std::string::npos);
  CHECK(desk.pellucid({"--help"}).out.find("test [--all] [NAME...]") != std::string::npos);

  for (const std::vector<std::string>& help : std::vector<std::vector<std::string>>{
           {"--help"}, {"train", "--help"}, {"sample", "--help"}, {"--version"}}) {
    const Ended ended = desk.pellucid(help);
    CHECK(ended.code == 0);
    CHECK(ended.out.size() > 10);
    CHECK(ended.err == "");
  }
}

TEST_CASE("a wrong setting in the environment ends every command before it begins") {
  const Desk desk;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"PELLUCID_NUM_THREADS", "abc"}, {"PELLUCID_GEMM", "foo"}})
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"train", "--data", "text.txt", "--preset", "tiny", "--out", "new"}, {"doctor"}}) {
      RunOptions options;
      options.environment = {{name, value}};
      desk.refused(arguments, {name + ": wanted ", "got \"" + value + "\""}, options);
    }
}

TEST_CASE("a seed of more than 63 bits counts, and no number is octal") {
  const Desk desk;
  REQUIRE(desk.train("run", {"--seed", "18446744073709551615", "--threads", "02"}).code == 0);
  const json config = json::parse(slurp(desk.folder.file("run/config.json")));
  CHECK(config.at("train").at("seed") == 18446744073709551615u);
  REQUIRE(desk.train("ten", {"--seed", "010"}).code == 0);
  CHECK(json::parse(slurp(desk.folder.file("ten/config.json"))).at("train").at("seed") == 10);
}

TEST_CASE("changed data is refused on resume, moved data is found by --data") {
  const Desk desk;
  REQUIRE(desk.train("run").code == 0);
  const std::string path = desk.folder.file("text.txt");
  for (std::string changed : {desk.text + "x", desk.text.substr(1), "T" + desk.text.substr(1)}) {
    spit(path, changed);
    desk.refused({"train", "--resume", "run"},
                 {"text.txt: is not the text that the run began with", "give that one by --data"});
  }
  fs::remove(path);
  desk.refused({"train", "--resume", "run"}, {"text.txt: no such file"});
  spit(desk.folder.file("elsewhere"), desk.text);
  const std::string weights = slurp(desk.folder.file("run/model.safetensors"));
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--data", "elsewhere"}, {}}) {
    std::vector<std::string> arguments = {"train", "--resume", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = desk.pellucid(arguments);
    CHECK(ended.err == "");
    CHECK(ended.code == 0);
    CHECK(ended.out.find("This run is complete.") != std::string::npos);
    if (!more.empty()) spit(path, desk.text);
  }
  CHECK(slurp(desk.folder.file("run/model.safetensors")) == weights);
}

TEST_CASE("data beside what a link leads to are found again") {
  const Desk desk;
  fs::create_directories(desk.folder.file("far/deep"));
  fs::create_directory_symlink("far/deep", desk.folder.file("link"));
  fs::rename(desk.folder.file("text.txt"), desk.folder.file("far/text.txt"));
  CHECK(desk.pellucid({"train", "--data", "link/../text.txt", "--preset", "tiny", "--out", "run",
                       "--steps", "2"})
            .code == 0);
  CHECK(desk.pellucid({"train", "--resume", "run"}).code == 0);
}

TEST_CASE("names that are not UTF-8, or long") {
  const Desk desk;
  const std::string strange = "caf\xe9 'n\" $x.txt", deep = std::string(200, 'x');
  spit(desk.folder.file(strange), desk.text);
  const Ended ended = desk.pellucid(
      {"train", "--data", strange, "--preset", "tiny", "--out", deep + "/" + deep, "--steps", "2"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(desk.pellucid({"train", "--resume", deep + "/" + deep, "--data", strange}).code == 0);
  CHECK(desk.pellucid({"sample", "--model", deep + "/" + deep, "--tokens", "2"}).code == 0);
}

TEST_CASE("a damaged state: one line with the repair, nothing written, nothing lost") {
  const Desk desk;
  REQUIRE(desk.train("run").code == 0);
  const std::string path = desk.folder.file("run/state.safetensors"), whole = slurp(path);
  const std::string copy = "; restore it from a copy, or train again in a new folder";
  // Every cut is tried in tests/nn/checkpoint_test.cpp; here, that the program does as the library.
  const std::size_t header =
      8 + static_cast<unsigned char>(whole[0]) + 256U * static_cast<unsigned char>(whole[1]);
  for (const std::size_t left : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{100},
                                 header - 1, header, header + 1, whole.size() - 1}) {
    spit(path, whole.substr(0, left));
    desk.refused({"train", "--resume", "run"}, {"run/state.safetensors: ", copy});
  }
  spit(path, whole + "x");
  desk.refused({"train", "--resume", "run"}, {"run/state.safetensors: ", copy});
  spit(path, whole);
  flip_bit(path, 8 * (header / 2));
  desk.refused({"train", "--resume", "run"}, {"run/state.safetensors: ", copy});

  spit(path, whole);
  const SafeTensors good = load_safetensors(path);
  const auto with = [&](auto change, const std::vector<std::string>& parts) {
    SafeTensors bad = good;
    change(bad);
    save_safetensors(path, bad);
    std::vector<std::string> all = parts;
    all.insert(all.end(), {"run/state.safetensors: ", copy});
    desk.refused({"train", "--resume", "run"}, all);
  };
  const std::string name = "model.h.1.mlp.c_fc.weight";
  with([&](SafeTensors& s) { s.tensors.erase(name); }, {"missing: h.1.mlp.c_fc.weight"});
  with([&](SafeTensors& s) { s.tensors[name + "2"] = zeros({2}); }, {"unexpected: "});
  with([&](SafeTensors& s) { s.tensors[name] = zeros({2, 3}); }, {"h.1.mlp.c_fc.weight: wanted"});
  with([&](SafeTensors& s) { s.tensors.erase("optimizer.step"); }, {"missing: step"});
  with([&](SafeTensors& s) { s.metadata["config"] = "{"; }, {});
  with([&](SafeTensors& s) { s.metadata["tokenizer"] = "{}"; }, {"tokenizer: wanted"});
  with([&](SafeTensors& s) { s.metadata["rest"] = "{}"; }, {});
  with([&](SafeTensors& s) { s.metadata.erase("rest"); }, {"has no \"rest\" in its metadata"});
  with(
      [&](SafeTensors& s) {
        json rest = json::parse(s.metadata["rest"]);
        rest["loader"]["next"] = 1 << 20;
        s.metadata["rest"] = rest.dump();
      },
      {"Loader: window "});

  // A state that was lost is not begun anew over the model that came from it.
  fs::remove(path);
  desk.refused({"train", "--resume", "run"}, {"run/state.safetensors: is missing", copy});

  // The other files come back from the state.
  spit(path, whole);
  const auto before = snapshot(desk.folder.path);
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) {
    spit(desk.folder.file(std::string("run/") + file), "{");
    desk.refused({"sample", "--model", "run"},
                 {std::string("run/") + file + ": ", "pellucid train --resume run"});
    CHECK(desk.pellucid({"train", "--resume", "run"}).code == 0);
    CHECK(snapshot(desk.folder.path) == before);
  }
}

TEST_CASE("a loss that is not finite: the step, the parameter, and the state as it was") {
  const Desk desk;
  REQUIRE(desk.train("run").code == 0);
  const std::string path = desk.folder.file("run/state.safetensors");
  SafeTensors state = load_safetensors(path);
  static_cast<float*>(state.tensors.at("model.h.0.attn.c_proj.weight").data())[3] = INFINITY;
  json rest = json::parse(state.metadata["rest"]);
  rest["progress"]["steps"] = 45;
  state.metadata["rest"] = rest.dump();
  save_safetensors(path, state);

  const Ended ended = desk.pellucid({"train", "--resume", "run"});
  CHECK(ended.code == 1);
  CHECK(lines(ended.err) == 1);
  for (const char* part :
       {"pellucid: step 41: the loss is ", "h.0.attn.c_proj.weight is not finite",
        "the run is saved as it was before that step, in run; begin again with a lower learning"}) {
    INFO(ended.err);
    CHECK(ended.err.find(part) != std::string::npos);
  }
  const SafeTensors after = load_safetensors(path);
  for (const auto& [key, x] : state.tensors)
    CHECK(std::memcmp(x.data(), after.tensors.at(key).data(),
                      static_cast<std::size_t>(x.numel()) * item_size(x.dtype())) == 0);
  CHECK(json::parse(after.metadata.at("rest")).at("progress") == rest["progress"]);
  CHECK(json::parse(after.metadata.at("rest")).at("loader") == rest["loader"]);
}
