// A run's folder: what it holds comes back, damage of any file is one line with the repair, and a
// process killed at any moment leaves the old state or the new one.
#include "nn/checkpoint.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>

#include "tensor/file_helpers.h"
#include "tensor/safetensors.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::string kText = "abcbacbabc\nacb";

// The smallest run: V 4, C 4, T 4, one layer.
TrainConfig smallest() {
  TrainConfig config;
  config.model.vocab_size = 4, config.model.block_size = 4, config.model.n_layer = 1;
  config.model.n_head = 1, config.model.n_embd = 4, config.model.dropout = 0.25;
  config.model.bias = false;
  config.batch_size = 2, config.steps = 100, config.seed = 9;
  return config;
}

struct Example {
  TrainConfig config = smallest();
  CharTokenizer tokenizer{kText};
  DataSource data{.paths = {"/some/text.txt"}, .bytes = kText.size(), .hash = 77};
  Trainer trainer{config};
  Loader loader{tokenizer.encode(kText), 2, 4, 9};

  explicit Example(int steps = 3) {
    for (int i = 0; i < steps; ++i) trainer.step([&] { return loader.next(); });
  }
  Checkpoint checkpoint() {
    return {config, tokenizer, data, trainer.state_dict(), trainer.progress(), loader.state(), 1.5};
  }
};

// A folder with a whole run in it.
struct SavedRun {
  TemporaryFolder temporary;
  std::string path = temporary.file("run");
  Example example;

  SavedRun() {
    const RunFolder folder = RunFolder::create(path);
    folder.write_config(example.config, example.tokenizer, example.data);
    folder.append_metrics({{"step", 3}});
    folder.commit(example.checkpoint());
    folder.export_from(example.checkpoint());
  }
  std::string file(const char* name) const { return path + "/" + name; }
};

bool same(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, x] : a) {
    const auto found = b.find(name);
    if (found == b.end() || x.shape() != found->second.shape() ||
        std::memcmp(x.data(), found->second.data(),
                    static_cast<std::size_t>(x.numel()) * item_size(x.dtype())) != 0)
      return false;
  }
  return true;
}

std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = slurp(entry.path().string());
  return files;
}

// What the call throws, which must be one line that ends in one of our repairs.
template <class Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "";
}

constexpr const char* kFromCopy = "; restore it from a copy, or train again in a new folder";

}  // namespace

TEST_CASE("a checkpoint comes back whole") {
  SavedRun run;
  const RunFolder folder = RunFolder::open(run.path);
  const Checkpoint before = run.example.checkpoint(), after = folder.read_state();
  CHECK(json(after.config) == json(before.config));
  CHECK(after.tokenizer.to_json() == before.tokenizer.to_json());
  CHECK(after.data.paths == before.data.paths);
  CHECK(after.data.documents == "text");
  CHECK(after.data.bytes == kText.size());
  CHECK(after.data.hash == before.data.hash);
  CHECK(after.progress == before.progress);
  CHECK(after.loader.epoch == before.loader.epoch);
  CHECK(after.loader.next == before.loader.next);
  CHECK(after.seconds == 1.5);
  CHECK(same(after.tensors, before.tensors));
  CHECK(json(folder.read_config().config) == json(before.config));
  CHECK(folder.read_config().data.hash == before.data.hash);

  // The export: the weights under their own names, and a model that gives the same logits.
  TrainedModel trained = load_model(run.path);
  CHECK(same(trained.model.state_dict(), run.example.trainer.model.state_dict()));
  CHECK(!trained.model.training());
  run.example.trainer.model.eval();
  const Tensor ids = random_ids(2, 4, 4, 1);
  CHECK(trained.model.forward(ids).to_vector() ==
        run.example.trainer.model.forward(ids).to_vector());
}

TEST_CASE("data of several files and of documents come back; one path is what old runs have") {
  const DataSource source{{"/a", "/b"}, "separator", "<|x|>", 12, 18446744073709551615u};
  const auto after = json::parse(json(source).dump()).get<DataSource>();
  CHECK(after.paths == source.paths);
  CHECK(after.documents == "separator");
  CHECK(after.separator == "<|x|>");
  CHECK(after.bytes == 12);
  CHECK(after.hash == source.hash);
  const auto old = json::parse(R"({"path":"/c","bytes":3,"fnv1a":4})").get<DataSource>();
  CHECK(old.paths == std::vector<std::string>{"/c"});
  CHECK(!old.has_documents());
  for (const char* bad : {R"({"path":"/c","bytes":3,"fnv1a":4,"documents":"pages"})",
                          R"({"path":"/c","bytes":3,"fnv1a":4,"documents":"separator"})",
                          R"({"path":"/c","bytes":3,"fnv1a":4,"separator":"x"})", R"({"bytes":3})"})
    CHECK_THROWS(json::parse(bad).get<DataSource>());
}

TEST_CASE("a state cut at any byte is refused with the repair, and nothing changes (R69)") {
  SavedRun run;
  const std::string path = run.file("state.safetensors"), whole = slurp(path);
  const RunFolder folder = RunFolder::open(run.path);
  for (std::size_t left = whole.size(); left-- > 0;) {
    REQUIRE(truncate(path.c_str(), static_cast<off_t>(left)) == 0);
    const std::string text = complaint([&] { folder.read_state(); });
    if (text.rfind(path + ": ", 0) != 0 || !text.ends_with(kFromCopy))
      FAIL(left << " bytes: " << text);
  }
  std::cout << "FIGURE | places where a state was cut, each refused in one line | " << whole.size()
            << "\n";
  const auto files = contents(run.path);
  complaint([&] { folder.read_state(); });
  CHECK(contents(run.path) == files);
  spit(path, whole);
  CHECK(same(folder.read_state().tensors, run.example.checkpoint().tensors));
}

TEST_CASE("the other files cut at any byte are refused; the state mends them") {
  SavedRun run;
  const auto files = contents(run.path);
  const RunFolder folder = RunFolder::open(run.path);
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::string path = run.file(name), whole = slurp(path);
    // Without its line end a JSON file is still whole.
    for (std::size_t left = whole.size() - 1; left-- > 0;) {
      REQUIRE(truncate(path.c_str(), static_cast<off_t>(left)) == 0);
      const std::string text = complaint([&] { load_model(run.path); });
      if (text.rfind(path + ": ", 0) != 0 ||
          !text.ends_with("; write it anew with: pellucid train --resume " + run.path))
        FAIL(name << ", " << left << " bytes: " << text);
    }
    folder.export_from(folder.read_state());
    CHECK(slurp(path) == whole);
    fs::remove(path);
    CHECK(complaint([&] { load_model(run.path); }) ==
          path + ": is missing; write it anew with: pellucid train --resume " + run.path);
    folder.export_from(folder.read_state());
  }
  CHECK(contents(run.path) == files);
  // Where there is no state there is only the copy.
  fs::remove(run.file("state.safetensors"));
  spit(run.file("tokenizer.json"), "{}");
  CHECK(complaint([&] { load_model(run.path); }).ends_with(kFromCopy));
}

TEST_CASE("files that are whole but do not fit together are refused") {
  SavedRun run;
  const auto edit = [&](const char* name, const std::string& from, const std::string& to) {
    std::string text = slurp(run.file(name));
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    spit(run.file(name), text.replace(at, from.size(), to));
    const std::string said = complaint([&] { load_model(run.path); });
    const RunFolder folder = RunFolder::open(run.path);
    folder.export_from(folder.read_state());
    return said;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(edit("config.json", "\"n_embd\": 4", "\"n_embd\": 8"), "wte.weight: wanted");
  has(edit("config.json", "\"n_layer\": 1", "\"n_layer\": 2"), "missing: h.1.");
  has(edit("config.json", "\"tied_head\": true", "\"tied_head\": false"),
      "missing: lm_head.weight");
  has(edit("config.json", "\"n_head\": 1", "\"n_head\": 3"), "n_head");
  has(edit("config.json", "\"n_embd\": 4", "\"n_embd\": \"4\""), "n_embd");
  has(edit("config.json", "\"n_embd\": 4", "\"width\": 4"), "width");
  has(edit("config.json", "pellucid 1", "pellucid 2"), "wanted \"format\": \"pellucid 1\"");
  has(edit("config.json", "\"bytes\"", "\"size\""), "bytes");
  has(edit("tokenizer.json", ",99", ""), "has 3 tokens, but the model of config.json has 4");
  has(edit("tokenizer.json", "99", "98"), "stands twice");
  CHECK(complaint([&] { load_model(run.path); }) == "");

  // A state without a part of its metadata.
  SafeTensors state{run.example.checkpoint().tensors, {{"config", "{}"}}};
  save_safetensors(run.file("state.safetensors"), state);
  const RunFolder folder = RunFolder::open(run.path);
  has(complaint([&] { folder.read_state(); }), "wanted \"format\"");
  state.metadata.clear();
  save_safetensors(run.file("state.safetensors"), state);
  has(complaint([&] { folder.read_state(); }), "has no \"config\" in its metadata");
}

TEST_CASE("folders: made with their parents, never shared, never overwritten") {
  const TemporaryFolder temporary;
  const std::string path = temporary.file("a/b/run");
  {
    RunFolder folder = RunFolder::create(path);
    CHECK(fs::is_directory(path));
    CHECK(!folder.has_state());
    CHECK(complaint([&] { RunFolder::open(path); }).find("holds no run") != std::string::npos);
    CHECK(complaint([&] { RunFolder::create(path); }) ==
          path + ": another process is training in this folder");
    Example example(0);
    folder.write_config(example.config, example.tokenizer, example.data);
    RunFolder second = RunFolder::open(path);
    CHECK(complaint([&] { second.lock(); }) ==
          path + ": another process is training in this folder");
  }
  RunFolder::open(path).lock();  // the first one has gone
  const auto refusal = [&](const std::string& name) {
    const std::string old = temporary.file(name);
    fs::create_directories(old);
    spit(old + "/" + name, "old");
    const std::string text = complaint([&] { RunFolder::create(old, {"stories.txt"}); });
    CHECK(text.rfind(old + ": ", 0) == 0);
    CHECK(contents(old).size() == 1);
    return text.substr(old.size());
  };
  for (const std::string name : {"config.json", "state.safetensors"})
    CHECK(refusal(name) == ": holds a run already (" + name + "); go on with it by --resume " +
                               temporary.file(name) + ", or give a new folder");
  for (const std::string name : {"tokenizer.json", "tokens.bin", "model.safetensors", "command.txt",
                                 "metrics.jsonl", "samples.jsonl", "stories.txt"})
    CHECK(refusal(name) ==
          ": holds a file " + name + " already, which this run would write; give a new folder");
  fs::create_directory(temporary.file("notes"));
  spit(temporary.file("notes/notes.txt"), "mine");
  CHECK(complaint([&] { RunFolder::create(temporary.file("notes")); }).empty());
  {
    const RunFolder demo = RunFolder::create(temporary.file("demo"));
    demo.write_config(smallest(), CharTokenizer(kText), {.paths = {"x"}}, true);
    CHECK(demo.read_config().demo);
  }
  CHECK(complaint([&] { RunFolder::create(temporary.file("demo")); }) ==
        temporary.file("demo") +
            ": holds a run already (config.json); it is a demo's, whose training does not go on; "
            "give a new folder");

  spit(temporary.file("file"), "x");
  CHECK(complaint([&] {
          RunFolder::create(temporary.file("file"));
        }).ends_with("is a file, not a folder; give another name"));
  CHECK(complaint([&] {
          RunFolder::create(temporary.file("file/run"));
        }).find("this folder cannot be made: ") != std::string::npos);
  CHECK(slurp(temporary.file("file")) == "x");
  CHECK(complaint([&] {
          RunFolder::open(temporary.file("none"));
        }).ends_with("no such folder; give the one that --out named"));
  CHECK(complaint([&] {
          RunFolder::open(temporary.file("file"));
        }).ends_with("is a file, not a run's folder; give the one that --out named"));
}

TEST_CASE("metrics: later steps and cut lines go, the rest stays as it was") {
  SavedRun run;
  const RunFolder folder = RunFolder::open(run.path);
  const std::string path = run.file("metrics.jsonl");
  fs::remove(path);
  folder.cut_lines(5);  // nothing there yet
  CHECK(!fs::exists(path));
  for (int step = 1; step <= 9; ++step) folder.append_metrics({{"step", step}, {"loss", 0.5}});
  const std::string nine = slurp(path);
  CHECK(nine.rfind("{\"loss\":0.5,\"step\":1}\n", 0) == 0);
  folder.cut_lines(9);
  CHECK(slurp(path) == nine);
  for (std::size_t cut = 1; cut < 20; ++cut) {  // a line that was being written
    spit(path, nine + std::string("{\"loss\":0.5,\"step\":10}\n").substr(0, cut));
    folder.cut_lines(9);
    CHECK(slurp(path) == nine);
  }
  // Anything else that is damaged was not left by a killed process: nothing is dropped.
  folder.append_sample({{"step", 9}});
  for (const std::string name : {"metrics.jsonl", "samples.jsonl"}) {
    const std::string whole = slurp(run.file(name.c_str()));
    for (const char* odd : {"{\"step\":null}", "{\"step\":\"3\"}", "{\"loss\":1}", "[3]", "3", "{",
                            "{\"step\":-1}", "{\"step\":3,\"step\":4}"}) {
      CAPTURE(odd);
      spit(run.file(name.c_str()), odd + ("\n" + whole));
      const auto before = contents(run.path);
      const std::string text = complaint([&] { folder.cut_lines(4); });
      CHECK(text.rfind(run.file(name.c_str()) + ":1: ", 0) == 0);
      CHECK(text.ends_with("; mend the line or take it out"));
      CHECK(contents(run.path) == before);
    }
    spit(run.file(name.c_str()), whole);
  }
  folder.cut_lines(4);
  CHECK(slurp(path) == nine.substr(0, nine.size() / 9 * 4));
  folder.append_metrics({{"step", 5}});
  CHECK(slurp(path).ends_with("\"step\":4}\n{\"step\":5}\n"));
  folder.cut_lines(0);
  CHECK(slurp(path).empty());
}

TEST_CASE("a command to paste into a shell") {
  unsetenv("PELLUCID_COMMAND");
  CHECK(shell_command({"train", "--resume", "a/b-c.1"}) == "pellucid train --resume a/b-c.1");
  CHECK(shell_command({"a b", "", "it's", "$x"}) == "pellucid 'a b' '' 'it'\\''s' '$x'");
  setenv("PELLUCID_COMMAND", "my clone/pellucid", 1);
  CHECK(shell_command({"demo"}) == "'my clone/pellucid' demo");
  unsetenv("PELLUCID_COMMAND");
}

TEST_CASE("killed while it saves: the state is one of those that were committed") {
  SavedRun run;
  Example next(4);
  const Checkpoint old_one = run.example.checkpoint(), new_one = next.checkpoint();
  const RunFolder before = RunFolder::open(run.path);
  const auto start = std::chrono::steady_clock::now();
  before.commit(old_one), before.export_from(old_one);
  const auto both = 2 * std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  int olds = 0, news = 0;
  for (int i = 0; i < 60; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const RunFolder folder = RunFolder::open(run.path);
      for (;;) {
        for (const Checkpoint* c : {&old_one, &new_one}) {
          folder.commit(*c);
          folder.export_from(*c);
        }
      }
    }
    usleep(static_cast<useconds_t>(500 + both * (i * 37 % 60) / 20));  // up to three rounds
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const RunFolder folder = RunFolder::open(run.path);
    const Checkpoint found = folder.read_state();
    const bool is_old = same(found.tensors, old_one.tensors) && found.progress == old_one.progress;
    const bool is_new = same(found.tensors, new_one.tensors) && found.progress == new_one.progress;
    CHECK(is_old != is_new);
    CHECK(complaint([&] { load_model(run.path); }) == "");
    (is_old ? olds : news) += 1;
  }
  CHECK(olds > 0);
  CHECK(news > 0);
}
