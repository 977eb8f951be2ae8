// The presets, --config and --set: every value has its reason, every file is in the program, and
// for everything that can be wrong one line that names it, the right exit code, nothing written.
#include "tutorials/demos/presets.h"

#include <doctest/doctest.h>

#include <set>

#include "error_of.h"
#include "program.h"

using namespace pellucid;
using namespace pellucid::demos;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

json with(const std::vector<std::string>& assignments) {
  json values = find_preset("tiny").values;
  for (const std::string& assignment : assignments) set_value(values, assignment);
  return values;
}

// The config after assignments, whose numbers are given at once: "tiny" with them.
nn::TrainConfig tiny_with(const std::vector<std::string>& assignments) {
  return make_config("tiny", "", assignments);
}

}  // namespace

TEST_CASE("every preset validates, and says of every value why") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    CHECK(preset.about.size() > 20);
    CHECK_NOTHROW(to_config(preset.values, 50257));
    std::set<std::string> values = keys(preset.values), why;
    values.merge(keys(preset.values.at("model")));
    values.erase("model");
    for (const auto& [key, sentence] : preset.why) {
      CAPTURE(key);
      why.insert(key);
      CHECK(sentence.size() > 10);
      CHECK((sentence.ends_with('.') || sentence.ends_with(".)")));
    }
    CHECK(why == values);
  }
}

TEST_CASE("the program has within itself what the files say, and no more and no less") {
  CHECK(preset_names() == "tiny, demo, names, shakespeare, stories, gpt2-small-shape");
  std::set<std::string> files, names;
  const fs::path folder = PELLUCID_SOURCE_DIR "/tutorials/demos/presets";
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path().stem());
  for (const Preset& preset : presets()) {
    names.insert(preset.name);
    CHECK(read_values((folder / (preset.name + ".json")).string()) == preset.values);
  }
  CHECK(files == names);
}

TEST_CASE("the numbers that README and demo make claims of") {
  const nn::TrainConfig s = to_config(find_preset("shakespeare").values, 65);
  nn::TrainConfig wanted;
  wanted.model = {.vocab_size = 65, .block_size = 128, .n_layer = 4, .n_head = 4, .n_embd = 128};
  wanted.model.dropout = 0.1, wanted.model.norm = "rms_norm", wanted.model.position = "rope";
  wanted.model.bias = false;
  wanted.batch_size = 16, wanted.steps = 6000, wanted.warmup = 100, wanted.lr = 2e-3;
  wanted.min_lr = 2e-4, wanted.eval_interval = 250;
  CHECK(json(s) == json(wanted));

  const nn::TrainConfig d = to_config(find_preset("demo").values, 40);
  wanted = {};
  wanted.model = {.vocab_size = 40, .block_size = 256, .n_layer = 4, .n_head = 4, .n_embd = 128};
  wanted.model.norm = "rms_norm", wanted.model.bias = false;
  wanted.batch_size = 8, wanted.minutes = 4, wanted.warmup = 50, wanted.lr = 3e-3;
  wanted.min_lr = 1e-4;
  CHECK(json(d) == json(wanted));
  // GPT-2 small's 124,439,808 parameters, from its shapes: nn/gpt_test.cpp counts them.
  const nn::GPTConfig gpt2 = to_config(find_preset("gpt2-small-shape").values, 50257).model;
  CHECK((gpt2.block_size == 1024 && gpt2.n_layer == 12 && gpt2.n_head == 12));
  CHECK((gpt2.n_embd == 768 && gpt2.tied_head && gpt2.bias && gpt2.kv_heads() == 12));
}

TEST_CASE("--set: values of training and of the model, as JSON or as bare words") {
  nn::TrainConfig c =
      tiny_with({"n_layer=3", "attention=xsa", "xsa_layers=[0, 2]", "lr=1e-2", "tied_head=false",
                 "seed=18446744073709551615", "mlp=\"swiglu\"", "optimizer=muon", "dropout=0"});
  CHECK(c.model.n_layer == 3);
  CHECK(c.model.xsa_layers == std::vector<int64_t>{0, 2});
  CHECK(c.model.mlp == "swiglu");
  CHECK(!c.model.tied_head);
  CHECK((c.lr == 1e-2 && c.seed == UINT64_MAX && c.optimizer == "muon" && c.model.dropout == 0));
  CHECK(tiny_with({"n_layer=3", "n_layer=1"}).model.n_layer == 1);  // the last counts
  // Together they fit, though each alone would not.
  CHECK(tiny_with({"n_head=3", "n_embd=48"}).model.n_head == 3);
  // Steps and minutes end each other.
  c = tiny_with({"minutes=2"});
  CHECK((c.steps == 0 && c.minutes == 2));
  c = tiny_with({"minutes=2", "steps=7"});
  CHECK((c.steps == 7 && c.minutes == 0));
}

TEST_CASE("--set: every message") {
  for (const auto& [assignment, message] : std::map<std::string, std::string>{
           {"n_layer", "--set n_layer: wanted key=value, such as n_layer=4"},
           {"=4", "--set =4: wanted key=value, such as n_layer=4"},
           {"", "--set : wanted key=value, such as n_layer=4"},
           {"n_layers=4",
            "--set n_layers=4: unknown key \"n_layers\"; the nearest are n_layer, xsa_layers, "
            "n_head"},
           {"learning_rate=1",
            "--set learning_rate=1: unknown key \"learning_rate\"; the nearest are "
            "xsa_gate, eval_interval, rope_base"},
           {"model=1",
            "--set model=1: unknown key \"model\"; the nearest are muon_lr, momentum, min_lr"},
           {"vocab_size=9", "--set vocab_size=9: vocab_size follows from the text; leave it out"},
           {"n_layer=four", "--set: GPT config: n_layer must be an integer; got \"four\""},
           {"n_layer=", "--set: GPT config: n_layer must be an integer; got \"\""},
           {"n_layer=0", "--set: GPT config: n_layer must be from 1 to 1000; got 0"},
           {"n_layer=2.5", "--set: GPT config: n_layer must be an integer; got 2.5"},
           {"n_layer=9223372036854775808",
            "--set: GPT config: n_layer must be an integer; got 9223372036854775808"},
           {"n_head=3",
            "--set: GPT config: n_embd must be a multiple of n_head; got n_embd 32, n_head 3"},
           {"attention=linear",
            "--set: GPT config: attention must be one of sa, xsa; got \"linear\""},
           {"norm=3", "--set: GPT config: norm must be a string; got 3"},
           {"bias=1", "--set: GPT config: bias must be true or false; got 1"},
           {"xsa_layers=0", "--set: GPT config: xsa_layers must be a list of integers; got 0"},
           {"xsa_layers=[2]", "--set: GPT config: each of xsa_layers must be from 0 to 1; got 2"},
           {"lr=high", "--set: TrainConfig: lr must be a number; got \"high\""},
           {"lr=nan", "--set: TrainConfig: lr must be a number; got \"nan\""},
           {"lr=0", "--set: TrainConfig: lr must be a finite number above 0; got 0"},
           {"batch_size=0", "--set: TrainConfig: batch_size must be at least 1; got 0"},
           {"seed=-1", "--set: TrainConfig: seed must be an integer of at least 0; got -1"},
           {"steps=0", "--set: TrainConfig: wanted steps or minutes; both are 0"}}) {
    CAPTURE(assignment);
    CHECK_THROWS_AS(tiny_with({assignment}), UsageError);
    CHECK(error_of([&] { tiny_with({assignment}); }) == message);
  }
  CHECK(keys(with({"n_layer=4"})) == keys(find_preset("tiny").values));
}

TEST_CASE("--config: a file in a preset's form, and every message") {
  const TemporaryFolder folder;
  const std::string path = folder.file("mine.json");
  spit(path, R"({"model": {"n_layer": 1, "n_embd": 8, "n_head": 1}, "steps": 3})");
  const nn::TrainConfig c = make_config("", path, {"lr=0.5"});
  CHECK((c.model.n_layer == 1 && c.model.block_size == 256 && c.steps == 3 && c.lr == 0.5));

  for (const auto& [text, message] : std::map<std::string, std::string>{
           {"", "is not JSON, as line 1 shows; give a file in the form of a preset"},
           {"{\"model\": {},\n\n \"steps\" 3}",
            "is not JSON, as line 3 shows; give a file in the form of a preset"},
           {"[1]", "wanted a JSON object with the settings; got [1]"},
           {R"({"steps": 3})", "wanted the model's settings as an object under \"model\""},
           {R"({"model": 3})", "wanted the model's settings as an object under \"model\""},
           {R"({"model": {}, "why": 3, "steps": 1})",
            "\"about\" must be a string and \"why\" an object of strings"},
           {R"({"model": {}})", "TrainConfig: wanted steps or minutes; both are 0"},
           {R"({"model": {}, "step": 3})",
            "unknown key \"step\"; the nearest are steps, seed, nesterov"},
           {R"({"model": {"n_layers": 3}, "steps": 3})",
            "unknown key \"n_layers\"; the nearest are n_layer, xsa_layers, n_head"},
           {R"({"model": {"vocab_size": 3}, "steps": 3})",
            "vocab_size follows from the text; leave it out"},
           {R"({"model": {"n_layer": "2"}, "steps": 3})",
            "GPT config: n_layer must be an integer; got \"2\""}}) {
    CAPTURE(text);
    spit(path, text);
    CHECK(error_of([&] { make_config("", path, {}); }) == path + ": " + message);
  }
  CHECK(error_of([&] { make_config("", folder.file("none"), {}); }).find("none: ") !=
        std::string::npos);
}

TEST_CASE("the program: trains from a preset, from a file, and refuses") {
  const TemporaryFolder folder;
  spit(folder.file("text.txt"), sentences(400));
  spit(folder.file("mine.json"), R"({"model": {"n_layer": 1, "n_embd": 8, "n_head": 1,
      "block_size": 8}, "steps": 2, "batch_size": 2})");
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", "--data", "text.txt"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments,
               {.folder = folder.path.string(), .environment = {{"PELLUCID_COMMAND", "pellucid"}}});
  };
  const auto config = [&](const std::string& name) {
    return json::parse(slurp(folder.file(name + "/config.json"))).at("train");
  };
  Ended ended = train({"--preset", "tiny", "--set", "steps=2", "--set", "n_layer=1", "--out", "a",
                       "--attention", "sa", "--seed", "7"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(config("a").at("steps") == 2);
  CHECK(config("a").at("seed") == 7);
  CHECK(config("a").at("model").at("n_layer") == 1);
  CHECK(config("a").at("model").at("attention") == "sa");
  CHECK(config("a").at("model").at("dropout") == 0.1);  // the preset's
  ended = train({"--config", "mine.json", "--out", "b", "--steps", "3"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(config("b").at("steps") == 3);
  CHECK(config("b").at("model").at("n_embd") == 8);

  const auto before = snapshot(folder.path);
  const auto refused = [&](const std::vector<std::string>& more, int code,
                           const std::string& message) {
    const Ended wrong = train(more);
    CHECK(wrong.code == code);
    CHECK(wrong.out == "");
    CHECK(wrong.err == "pellucid: " + message + "\n");
  };
  const std::string help = "; see pellucid train --help";
  refused({"--preset", "tiny", "--out", "c", "--set", "n_layrs=3"}, 2,
          "--set n_layrs=3: unknown key \"n_layrs\"; the nearest are n_layer, xsa_layers, "
          "rope_layout" +
              help);
  refused({"--preset", "tiny", "--out", "c", "--set", "lr=x"}, 2,
          "--set: TrainConfig: lr must be a number; got \"x\"" + help);
  refused({"--preset", "tiny", "--out", "c", "--set"}, 2, "--set: 1 required value missing" + help);
  refused({"--preset", "tiny", "--config", "mine.json", "--out", "c"}, 2,
          "--preset excludes --config" + help);
  refused({"--config", "none.json", "--out", "c"}, 1,
          "none.json: cannot be opened: No such file or directory; check the path");
  refused({"--out", "c", "--set", "n_layer=1"}, 2,
          "train: needs --preset (or --resume alone)" + help);
  CHECK(snapshot(folder.path) == before);
}
