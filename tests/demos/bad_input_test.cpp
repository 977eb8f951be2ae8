// The table of bad input: wrong command lines, settings, files and folders of every command, each
// with its message, whole, and its exit code: 2 for the line, 1 for what it names. Nothing is
// written, nothing goes to stdout, and the message is one line of ASCII.
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>

#include "autograd/ops.h"
#include "desk.h"
#include "tensor/safetensors.h"
#include "tutorials/demos/step_memory.h"

using namespace pellucid;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

struct Row {
  Words arguments;
  std::string message;
  RunOptions options = {};
};

Words words(const std::string& line) {
  Words parts;
  std::stringstream in(line);
  for (std::string part; in >> part;) parts.push_back(part);
  return parts;
}

// A model of llama2.c: the header, and 0.1 for every weight.
std::string llama_file(int32_t width) {
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
const Damaged& damaged() {
  static const Damaged one;
  return one;
}

// Each row as the heading says; returns how many there were.
std::size_t check(int code, const std::vector<Row>& rows) {
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

std::string twice(const std::string& key) {
  return "\"" + key + "\" stands there twice; wanted once";
}

void tell(const char* what, std::size_t rows) {
  std::cout << "FIGURE | rows of bad input, " << what << " | " << rows << std::endl;
}

}  // namespace

TEST_CASE("bad input: command lines, code 2") {
  const auto line = [](const std::string& arguments, const std::string& message) {
    const Words all = words(arguments);
    const bool known = all[0][0] != '-' && all[0] != "tain";
    return Row{all, message + "; see pellucid " + (known ? all[0] + " " : "") + "--help"};
  };
  const std::string train = "train --data text.txt --preset tiny --out new ";
  const std::string commands =
      "there are: train, sample, eval, demo, inspect, report, doctor, bench, grade, test";
  const std::string seeds = "--seed: wanted a whole number from 0 to 18446744073709551615; got ";
  std::vector<Row> rows = {
      line("tain", "no command \"tain\"; " + commands),
      line("--steps 3", "wanted a command; got \"--steps\"; " + commands),
      line("train", "train: needs --data and --preset and --out (or --resume alone)"),
      line("train --data text.txt --preset tiny", "train: needs --out (or --resume alone)"),
      line("train --data", "--data: 1 required value missing"),
      line(train + "--preset demo", "--preset: wanted once; got 2"),
      line(train + "--report=3", "--report takes no value"),
      line(train + "--config mine.json", "--preset excludes --config"),
      line("train --resume run --set lr=3", "--set excludes --resume"),
      line("train --data text.txt --out new --preset huge",
           "no preset is called \"huge\"; there are: tiny, demo, names, shakespeare, stories, "
           "gpt2-small-shape"),
      line(train + "--steps 0",
           "--steps: wanted a whole number from 1 to 1099511627776; got \"0\""),
      line(train + "--minutes nan", "--minutes: wanted a number from 0.05 to 1e+06; got \"nan\""),
      line(train + "--minutes 1e300",
           "--minutes: wanted a number from 0.05 to 1e+06; got \"1e300\""),
      line(train + "--minutes 1 --steps 2", "--steps excludes --minutes"),
      line(train + "--seed -1", seeds + "\"-1\""),
      line(train + "--attention linear", "--attention: wanted xsa or sa; got \"linear\""),
      line(train + "--documents pages",
           "--documents: wanted text or files or lines; got \"pages\""),
      line(train + "--documents lines --separator x", "--documents excludes --separator"),
      line(train + "--vocab-size 300", "--vocab-size: needs --tokenizer bpe"),
      line(train + "--tokenizer bpe --vocab-size 99999999999",
           "--vocab-size: wanted a whole number from 257 to 16777216; got \"99999999999\""),
      line(train + "--threads 100000",
           "--threads: wanted a whole number from 1 to 1024; got \"100000\""),
      line(train + "--set lr", "--set lr: wanted key=value, such as n_layer=4"),
      line(train + "--set lr=nan", "--set: TrainConfig: lr must be a number; got \"nan\""),
      line(train + "--set lr=1e999", "--set: TrainConfig: lr must be a number; got \"1e999\""),
      line(train + "--set n_layer=1000000",
           "--set: GPT config: n_layer must be from 1 to 1000; got 1000000"),
      line(train + "--set batch_size=-1",
           "--set: TrainConfig: batch_size must be at least 1; got -1"),
      line(train + "--set batch_size=9999999999",
           "--set: TrainConfig: batch_size must be at most 2147483648; got 9999999999"),
      line(train + "--set dropout=1", "--set: GPT config: dropout must be in [0, 1); got 1"),
      line(train + "--set n_embd=33",
           "--set: GPT config: n_embd must be a multiple of n_head; got n_embd 33, n_head 2"),
      line(train + "--set nolayer=3",
           "--set nolayer=3: unknown key \"nolayer\"; the nearest are n_layer, xsa_layers, "
           "norm_eps"),
      line("sample", "--model is required"),
      line("sample --model run --model bytes", "--model: wanted once; got 2"),
      line("sample --model run --temperature nan",
           "--temperature: wanted a number from 0 to 1e+06; got \"nan\""),
      line("sample --model run --top-p 0", "--top-p: wanted a number from 1e-06 to 1; got \"0\""),
      line("sample --model run --tokens 99999999999999999999",
           "--tokens: wanted a whole number from 0 to 1099511627776; got "
           "\"99999999999999999999\""),
      line("sample --model run --interactive --prompt x", "--prompt excludes --interactive"),
      line("sample --model run --interactive --samples 2", "--samples excludes --interactive"),
      line("sample --model run --samples 0",
           "--samples: wanted a whole number from 1 to 1099511627776; got \"0\""),
      line("sample --model run --interactive=5", "--interactive takes no value"),
      line("eval --model run", "eval: needs --data or --tasks"),
      line("eval --model run --ngram", "--ngram requires --data"),
      line("inspect", "folder is required"),
      line("inspect run --data text.txt --text a", "--data excludes --text"),
      line("report run bytes", "not expected: bytes"),
      line("grade --hint", "--hint requires exercise"),
      line("grade --seed 3", "--seed requires exercise"),
      line("grade 01-tensors --watch --hint", "--watch excludes --hint"),
      line("grade 01-tensors --seed x", seeds + "\"x\""),
      line("demo --minutes -1", "--minutes: wanted a number from 0.05 to 10000; got \"-1\""),
      line("demo --seed 1.5", seeds + "\"1.5\""),
      line("bench --quick=7", "--quick takes no value"),
      line("bench extra", "not expected: extra"),
      line("doctor --threads -1", "--threads: wanted a whole number from 1 to 1024; got \"-1\"")};
  rows.push_back(
      {{"report", "run", "--text", ""}, "--text: the value is empty; see pellucid report --help"});
  rows.push_back({{"grade", ""}, "exercise: the value is empty; see pellucid grade --help"});
  tell("command lines", check(2, rows));
}

TEST_CASE("bad input: texts, settings, tokenizers and places, code 1") {
  const auto train = [](const std::string& more, const std::string& message) {
    return Row{words("train --out new " + more), message};
  };
  const std::string tiny = "--preset tiny --data ", config = "--data text.txt --config ";
  const std::string json = "is not JSON, as line ",
                    form = " shows; give a file in the form of a preset";
  const std::string few =
      "text.txt: has 1 document, too few: one is for training and one for "
      "validation; give more, or read it as one text by --documents text";
  tell(
      "texts, settings, places",
      check(
          1,
          {train(tiny + "none.txt", "none.txt: no such file; give the path of a text file"),
           train(tiny + "empty", "empty: is empty; give a text file"),
           train(tiny + "hollow", "hollow: holds no files; give a folder of text files"),
           train(tiny + "binary",
                 "binary: looks binary (byte 0 at position 4); give a plain text file"),
           train(tiny + "/dev/zero", "/dev/zero: is no ordinary file; give a text file"),
           train(
               tiny + "three",
               "three: has 3 characters, too few: 90 % are for training and must be more than the "
               "context of 32, 10 % for validation; give a text of at least 36 characters"),
           train(tiny + "text.txt --documents files", few),
           train(tiny + "blank --documents lines",
                 "blank: has 0 documents, too few: one is for training and one for validation; "
                 "give more, or read it as one text by --documents text"),
           train(tiny + "text.txt --separator qqq", few),
           train(config + "none.json",
                 "none.json: cannot be opened: No such file or directory; check the path"),
           train(config + "hollow", "hollow: is a folder; wanted a file"),
           train(config + "open.json", "open.json: " + json + "2" + form),
           train(config + "deep.json", "deep.json: lists and objects lie more than 1000 deep"),
           train(config + "twice.json", "twice.json: " + twice("steps")),
           train(config + "binary", "binary: " + json + "1" + form),
           train(config + "nan.json", "nan.json: " + json + "1" + form),
           train(config + "list.json",
                 "list.json: wanted a JSON object with the settings; got [1]"),
           train(config + "key.json",
                 "key.json: unknown key \"stepz\"; the nearest are steps, eps, seed"),
           train(config + "model_key.json",
                 "model_key.json: unknown key \"n_layers\"; the nearest are n_layer, xsa_layers, "
                 "n_head"),
           train(config + "kind.json", "kind.json: TrainConfig: lr must be a number; got \"fast\""),
           train(config + "minus.json",
                 "minus.json: TrainConfig: steps must be at least 0; got -3"),
           train(tiny + "text.txt --tokenizer none",
                 "no tokenizer is called \"none\"; there are: char, byte, bpe, and files"),
           train(tiny + "text.txt --tokenizer key.json",
                 "key.json: tokenizer: wanted \"type\": \"char\", \"byte\", \"bpe\" or \"llama2\"; "
                 "got "
                 "null; give the tokenizer.json of a run, GPT-2's vocab.bpe, or llama2.c's "
                 "tokenizer.bin"),
           train(tiny + "text.txt --tokenizer twice_tokens/tokenizer.json",
                 "twice_tokens/tokenizer.json: " + twice("type") +
                     "; give the tokenizer.json of a run, GPT-2's vocab.bpe, or llama2.c's "
                     "tokenizer.bin"),
           train(tiny + "text.txt --tokenizer cut.bin",
                 "cut.bin: token 1 has a length of 16777216, but the longest has 12, and 18530 "
                 "bytes are left; wanted a tokenizer of llama2.c (tok512.bin, tokenizer.bin)"),
           train(tiny + "text.txt --tokenizer bpe --vocab-size 4000",
                 "BPE: the text repeats enough for a vocabulary of 321 tokens only; got 4000; give "
                 "a smaller vocabulary or a longer text"),
           {words("train --preset tiny --data text.txt --out run"),
            "run: holds a run already (state.safetensors); go on with it by --resume run, or give "
            "a "
            "new folder"},
           {words("train --preset tiny --data text.txt --out text.txt"),
            "text.txt: is a file, not a folder; give another name"},
           {words("train --preset tiny --data text.txt --out /proc/x"),
            "/proc/x: this folder cannot be made: No such file or directory; give another one"},
           {words("report run"),
            "run/report.html: cannot be written: File too large; free some space or choose another "
            "disk",
            {.file_limit = 1000}},
           {words("doctor"),
            "PELLUCID_NUM_THREADS: wanted a number from 1 to 1024; got \"x\"",
            {.environment = {{"PELLUCID_NUM_THREADS", "x"}}}},
           {words("sample --model run"),
            "PELLUCID_GEMM: wanted native or openblas; got \"x\"",
            {.environment = {{"PELLUCID_GEMM", "x"}}}},
           {words("grade none"),
            "grade: no exercise \"none\"; there are: 01-tensors, 11-xsa, 11-xsa-kernel"},
           {words("grade 01-tensors --file none.cpp"),
            "none.cpp: cannot be opened: No such file or directory; check the path"},
           {words("eval --model run --tasks none.jsonl"),
            "none.jsonl: cannot be opened: No such file or directory; check the path"},
           {words("grade 01-tensors --junit no/x.xml"),
            "no/x.xml: cannot be written (as no/x.xml.tmp): No such file or directory; check the "
            "path, and make its folder first"},
           {words("grade 01-tensors --gradescope hollow"),
            "hollow: is not an ordinary file; choose another name"},
           {words("grade 01-tensors --file hollow"), "hollow: is a folder; wanted a file"}}));
}

TEST_CASE("bad input: settings that take more memory than there is, code 1") {
  const std::string
      there =
          " of memory, but this machine has " + demos::memory_text(demos::machine_memory()) + "; ",
      batch =
          "give a smaller batch_size, with more accumulation in its place, or "
          "block_size",
      model =
          "its parameters alone are too many: give a smaller n_embd, n_layer, block_size or "
          "vocabulary";
  const auto train = [&](const std::string& set, const std::string& about,
                         const std::string& repair) {
    return Row{words("train --data text.txt --preset tiny --out new " + set),
               "train: a step would take about " + about + there + repair};
  };
  tell("memory",
       check(1,
             {train("--set batch_size=99999999", "14.6 TB", batch),
              train("--set batch_size=2147483648", "312.8 TB", batch),
              train("--set accumulation=999999999999", "4096.0 TB", "give a smaller accumulation"),
              train("--set n_embd=65536 --set n_head=256 --set n_layer=1000", "825.7 TB", model),
              train("--documents lines --set block_size=16777216 --set n_embd=65536 "
                    "--set n_head=256",
                    "1.9 TB", model)}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
TEST_CASE("bad input: memory that runs out on the way is one line too") {
  const TemporaryFolder folder;
  spit(folder.file("large.txt"), "");
  fs::resize_file(folder.file("large.txt"), std::uintmax_t{1} << 29);
  const Ended ended =
      run({"train", "--data", "large.txt", "--preset", "tiny", "--out", "new", "--threads", "1"},
          {.folder = folder.path.string(), .memory_limit = rlim_t{1} << 28});
  CHECK(ended.code == 1);
  CHECK(ended.err ==
        "pellucid: out of memory; give a smaller text, batch or model, or end other programs\n");
  CHECK_FALSE(fs::exists(folder.file("new")));
}
#endif

TEST_CASE("bad input: runs and models that are damaged or no models at all, code 1") {
  const auto anew = [](const std::string& run, const std::string& file, const std::string& fault) {
    return run + "/" + file + ": " + fault + "; write it anew with: pellucid train --resume " + run;
  };
  const std::string copy = "; restore it from a copy, or train again in a new folder";
  const std::string none = "none: no such folder; give the one that --out named";
  const std::string file = "text.txt: is a file, not a run's folder; give the one that --out named";
  const std::string hollow =
      "hollow: holds no run (neither state.safetensors nor config.json); begin one by --out";
  const auto sample = [](const std::string& model, const std::string& message) {
    return Row{words("sample --tokens 3 --tokenizer bytes/tokenizer.json --model " + model),
               message};
  };
  const std::string cut = anew("cut_model", "model.safetensors",
                               "holds 3824 bytes of data, but its header describes 101888: it was "
                               "cut short, or something was added");
  const std::string nan =
      anew("nan_model", "model.safetensors", "wte.weight holds a number that is not finite");
  tell(
      "runs and models",
      check(
          1,
          {{words("train --resume none"), none},
           {words("train --resume text.txt"), file},
           {words("train --resume hollow"), hollow},
           {words("train --resume run --data bytes/config.json"),
            "bytes/config.json: is not the text that the run began with (4000 bytes then, 1129 "
            "now, or other contents); give that one by --data"},
           {words("train --resume changed"),
            "old.txt: is not the text that the run began with (4000 bytes then, 4000 now, or other "
            "contents); give that one by --data"},
           {words("train --resume cut_state"),
            "cut_state/state.safetensors: holds 44584 bytes of data, but its header describes "
            "305672: it was cut short, or something was added" +
                copy},
           {words("train --resume no_state"),
            "no_state/state.safetensors: is missing, and without it no run goes on" + copy},
           {words("sample --model none"), none},
           {words("sample --model no_config"), anew("no_config", "config.json", "is missing")},
           {words("sample --model bad_config"),
            anew("bad_config", "config.json", "is damaged: this is not JSON")},
           {words("sample --model twice_config"),
            anew("twice_config", "config.json", twice("format"))},
           {words("sample --model twice_tokens"),
            anew("twice_tokens", "tokenizer.json", twice("type"))},
           {words("train --resume twice_state"),
            "twice_state/state.safetensors: " + twice("seconds") + copy},
           {words("sample --model bad_tokens"),
            anew(
                "bad_tokens", "tokenizer.json",
                "tokenizer: wanted \"type\": \"char\", \"byte\", \"bpe\" or \"llama2\"; got null")},
           {words("eval --data text.txt --model other_tokens"),
            anew("other_tokens", "tokenizer.json",
                 "has 256 tokens, but the model of config.json has 23")},
           {words("eval --data text.txt --model no_model"),
            anew("no_model", "model.safetensors", "is no safetensors file: shorter than 8 bytes")},
           {words("sample --model cut_model"), cut},
           {words("inspect cut_model"), cut},
           {words("report cut_model"), cut},
           {words("sample --model nan_model"), nan},
           {words("eval --data text.txt --model nan_model"), nan},
           {words("inspect nan_model"), nan},
           {words("eval --model text.txt --data text.txt"),
            "text.txt: is a file: give the folder of a run, or the file's tokenizer by --tokenizer "
            "FILE"},
           {words("eval --model run --tokenizer text.txt --data text.txt"),
            "run: a run has its own tokenizer; leave --tokenizer out"},
           {words("inspect hollow"), hollow},
           {words("report none"), none},
           {words("inspect run --data none"), "none: no such file; give the path of a text file"},
           {words("report run --text Z"),
            "the text: encode: 'Z' at position 0 is not among the 23 characters that the model was "
            "trained on; use characters of the training text only"},
           {words("sample --model run --prompt Z"),
            "the prompt: encode: 'Z' at position 0 is not among the 23 characters that the model "
            "was "
            "trained on; use characters of that text only"},
           {{"sample", "--model", "run", "--prompt", ""},
            "sample: the prompt is empty; give at least one character"},
           {words("eval --model run --data empty"), "empty: is empty; give a text file"},
           {words("eval --model run --data hollow"),
            "hollow: holds no files; give a folder of text files"},
           {words("eval --model run --data binary"),
            "binary: looks binary (byte 0 at position 4); give a plain text file"},
           {words("eval --model run --tasks gold.jsonl"),
            "gold.jsonl:1: gold must be a whole number from 0 to 1; got 2; mend the line or take "
            "it out"},
           {words("eval --model run --tasks extra.jsonl"),
            "extra.jsonl:2: unknown key \"label\"; an item of this kind has: query, choices, gold; "
            "mend the line or take it out"},
           {words("eval --model run --tasks twice.jsonl"),
            "twice.jsonl:2: " + twice("gold") + "; mend the line or take it out"},
           {words("eval --model run --tasks both.jsonl"),
            "both.jsonl:1: unknown key \"gold\"; an item of this kind has: context, continuation; "
            "mend the line or take it out"},
           {words("eval --model run --tasks cut.jsonl"),
            "cut.jsonl:1: this is not JSON; mend the line or take it out"},
           {words("eval --model run --tasks binary"),
            "binary:1: this is not JSON; mend the line or take it out"},
           {words("eval --model run --tasks empty"),
            "empty: holds no items; give a file of JSON lines"},
           {words("eval --model run --tasks foreign.jsonl"),
            "foreign.jsonl:1: encode: 'Z' at position 4 is not among the 23 characters that the "
            "model "
            "was trained on; take the line out, or another model"},
           {words("sample --model llama.bin"),
            "llama.bin: is a file: give the folder of a run, or the file's tokenizer by "
            "--tokenizer "
            "FILE"},
           {words("sample --model llama.bin --tokenizer run/tokenizer.json"),
            "run/tokenizer.json: has 23 tokens, but the model llama.bin has 256; give the "
            "tokenizer "
            "that it was trained with"},
           sample("run", "run: a run has its own tokenizer; leave --tokenizer out"),
           sample("empty",
                  "empty: has 0 bytes, fewer than the header of a llama2.c model; get it again"),
           sample("cut.bin",
                  "cut.bin: has 18552 bytes, but a llama2.c model with its header's sizes (dim 12, "
                  "hidden 10, layers 2, heads 3, key heads 1, vocabulary 256, context 9) has "
                  "18652; get it again"),
           sample("minus.bin",
                  "minus.bin: is no llama2.c model of version 0: by its header, GPT config: n_embd "
                  "must "
                  "be from 1 to 65536; got -12"),
           sample("nan.bin", "nan.bin: wte.weight holds a number that is not finite; get it again"),
           sample("half.safetensors",
                  "half.safetensors: has no matrix wpe.weight: it is no GPT-2; give the "
                  "model.safetensors of one"),
           sample(
               "cut.safetensors",
               "cut.safetensors: holds 326 bytes of data, but its header describes 336: it was cut "
               "short, or something was added; get it again")}));
}
