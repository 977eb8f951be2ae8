// Stopped at any moment, by any means, and resumed: the same bytes as a run that never stopped.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "nn/checkpoint.h"
#include "program.h"

using namespace pellucid;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSteps = 1200;

// A folder for runs, with one that was never stopped: "whole".
struct Lab {
  TemporaryFolder folder;

  Lab() {
    spit(folder.file("text.txt"), sentences(6000));
    REQUIRE(run(train("whole"), here()).code == 0);
  }
  RunOptions here() const { return {.folder = folder.path.string()}; }
  std::vector<std::string> train(const std::string& out, int64_t steps = kSteps) const {
    return {"train", "--data", "text.txt", "--preset",           "tiny",
            "--out", out,      "--steps",  std::to_string(steps)};
  }
  std::string file(const std::string& run, const char* name) const {
    return folder.file(run + "/" + name);
  }
  int64_t steps_in_metrics(const std::string& run) const {
    return lines(slurp(file(run, "metrics.jsonl")));
  }
  // Waits until the process has done `steps` steps or has ended.
  void wait_for(Process& process, const std::string& run, int64_t steps) const {
    while (process.running() && steps_in_metrics(run) < steps) usleep(200);
  }
  nn::Checkpoint state(const std::string& run) const {
    return nn::RunFolder::open(folder.file(run)).read_state();
  }

  // All that must be the same in two runs: everything but times.
  void check_same(const std::string& a, const std::string& b) const {
    for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"})
      CHECK(slurp(file(a, name)) == slurp(file(b, name)));
    const nn::Checkpoint x = state(a), y = state(b);
    CHECK(x.progress == y.progress);
    CHECK(x.loader.epoch == y.loader.epoch);
    CHECK(x.loader.next == y.loader.next);
    CHECK(x.tensors.size() == y.tensors.size());
    for (const auto& [name, tensor] : x.tensors) {
      CAPTURE(name);
      CHECK(std::memcmp(tensor.data(), y.tensors.at(name).data(),
                        static_cast<std::size_t>(tensor.numel()) * item_size(tensor.dtype())) == 0);
    }
    std::ifstream of_a(file(a, "metrics.jsonl")), of_b(file(b, "metrics.jsonl"));
    int64_t step = 0;
    double seconds = 0;  // of training, all processes together
    for (std::string line_a, line_b; std::getline(of_a, line_a);) {
      REQUIRE(std::getline(of_b, line_b));
      json one = json::parse(line_a), two = json::parse(line_b);
      CHECK(two.at("seconds") > seconds);
      seconds = two.at("seconds");
      for (const char* time : {"seconds", "tokens_per_s"}) one.erase(time), two.erase(time);
      if (one != two) FAIL(line_a << "\n" << line_b);
      CHECK(one.at("step") == ++step);
    }
    CHECK(step == x.progress.at("step"));
    std::string rest;
    CHECK(!std::getline(of_b, rest));
    for (const auto& entry : fs::directory_iterator(folder.file(b)))
      CHECK(entry.path().extension() != ".tmp");
  }
};

const Lab& the_lab() {
  static const Lab one;
  return one;
}

}  // namespace

TEST_CASE("kill -9 at random moments, resume, and so on to the end: the same bytes") {
  const Lab& lab = the_lab();
  std::srand(20);
  int kills = 0;
  bool begun = false;
  for (;;) {
    std::vector<std::string> arguments =
        begun ? std::vector<std::string>{"train", "--resume", "killed"} : lab.train("killed");
    arguments.insert(arguments.end(), {"--threads", std::to_string(1 + kills % 4)});
    Process process(arguments, lab.here());
    // Now and then while it starts, or right after a save; else somewhere in the 130 steps after
    // the last saved one.
    if (kills % 4 == 1) {
      const auto saved = [&] {
        struct stat status {};
        return stat(lab.file("killed", "state.safetensors").c_str(), &status) == 0 ? status.st_ino
                                                                                   : ino_t{0};
      };
      const ino_t before = saved();
      while (process.running() && saved() == before) continue;
    } else if (kills % 4 == 0) {
      usleep(static_cast<useconds_t>(std::rand() % 40000));
    } else {
      const int64_t from = lab.steps_in_metrics("killed") / 100 * 100;
      lab.wait_for(process, "killed", from + std::rand() % 130);
      usleep(static_cast<useconds_t>(std::rand() % 3000));
    }
    process.signal(SIGKILL);
    const Ended ended = process.wait();
    if (ended.code == 0) break;
    INFO(ended.err);
    REQUIRE(ended.code == 128 + SIGKILL);
    ++kills;
    REQUIRE(kills < 400);
    begun = fs::exists(lab.file("killed", "config.json"));
    if (!begun) fs::remove(lab.file("killed", "tokenizer.json"));  // written before, if at all
  }
  std::cout << "FIGURE | kill -9 in a run of " << kSteps
            << " steps, resumed to the same bytes, times | " << kills << "\n";
  CHECK(kills >= 5);
  lab.check_same("whole", "killed");
}

TEST_CASE("Ctrl-C saves, says how to go on, ends with 130; and the end is the same") {
  const Lab& lab = the_lab();
  const auto stopped = [&](Process& process, int signal) {
    lab.wait_for(process, "stopped", lab.steps_in_metrics("stopped") + 30);
    process.signal(signal);
    const Ended ended = process.wait();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 128 + signal);
    const int64_t step = lab.state("stopped").progress.at("step");
    CHECK(step == lab.steps_in_metrics("stopped"));
    CHECK(ended.out.find("Stopped and saved at step " + std::to_string(step) + " of " +
                         std::to_string(kSteps) + ". Go on with: " + PELLUCID_PROGRAM +
                         " train --resume stopped\n") != std::string::npos);
    return step;
  };
  Process first(lab.train("stopped"), lab.here());
  const int64_t step = stopped(first, SIGINT);
  CHECK(step >= 30);
  Process second({"train", "--resume", "stopped", "--threads", "3"}, lab.here());
  CHECK(stopped(second, SIGTERM) >= step + 30);
  const Ended last = run({"train", "--resume", "stopped", "--threads", "1"}, lab.here());
  CHECK(last.code == 0);
  CHECK(last.out.find("Going on from step ") != std::string::npos);
  lab.check_same("whole", "stopped");
}

TEST_CASE("one process at a time trains in a folder") {
  const Lab& lab = the_lab();
  Process first(lab.train("run", int64_t{1} << 40), lab.here());
  lab.wait_for(first, "run", 20);
  REQUIRE(first.running());
  for (const auto& [arguments, part] :
       std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"train", "--resume", "run"}, "run: another process is training in this folder"},
           {lab.train("run"), "run: holds a run already"}}) {
    const Ended second = run(arguments, lab.here());
    INFO(second.err);
    CHECK(second.code == 1);
    CHECK(lines(second.err) == 1);
    CHECK(second.err.find(part) != std::string::npos);
  }
  // Reading a run that goes on is no harm.
  CHECK(run({"sample", "--model", "run", "--prompt", "the", "--tokens", "5"}, lab.here()).code ==
        0);
  first.signal(SIGINT);
  CHECK(first.wait().code == 130);
}

TEST_CASE("a run killed before its first state begins again from its config") {
  const Lab& lab = the_lab();
  fs::create_directory(lab.folder.file("early"));
  for (const char* name : {"config.json", "tokenizer.json"})
    fs::copy_file(lab.file("whole", name), lab.file("early", name));
  spit(lab.file("early", "state.safetensors.tmp"), "cut");
  CHECK(run({"train", "--resume", "early"}, lab.here()).code == 0);
  lab.check_same("whole", "early");

  // Killed earlier still, there is nothing to go on from, and the message says so.
  fs::create_directory(lab.folder.file("earlier"));
  fs::copy_file(lab.file("whole", "tokenizer.json"), lab.file("earlier", "tokenizer.json"));
  const Ended none = run({"train", "--resume", "earlier"}, lab.here());
  CHECK(none.code == 1);
  CHECK(none.err.find("earlier: holds no run") != std::string::npos);
  CHECK(none.err.find("begin one by --out") != std::string::npos);
  fs::remove(lab.file("earlier", "tokenizer.json"));  // which could be anybody's
  CHECK(run(lab.train("earlier"), lab.here()).code == 0);
  lab.check_same("whole", "earlier");
}

TEST_CASE("a full disk: one line, the old state stays, and the run goes on when there is room") {
  const Lab& lab = the_lab();
  Process first(lab.train("full"), lab.here());
  lab.wait_for(first, "full", 40);
  first.signal(SIGINT);
  REQUIRE(first.wait().code == 130);

  const auto before = snapshot(lab.folder.file("full"));
  RunOptions options = lab.here();
  options.file_limit = 4096;
  const Ended ended = run({"train", "--resume", "full"}, options);
  CHECK(ended.code == 1);
  INFO(ended.err);
  CHECK(lines(ended.err) == 1);
  CHECK(ended.err.find("free some space or choose another disk") != std::string::npos);
  CHECK(snapshot(lab.folder.file("full")) == before);
  CHECK(run({"train", "--resume", "full"}, lab.here()).code == 0);
  lab.check_same("whole", "full");
}

TEST_CASE("--minutes fixes the number of steps and stores it") {
  const Lab& lab = the_lab();
  std::vector<std::string> arguments = {"train", "--data", "text.txt",  "--preset", "tiny",
                                        "--out", "timed",  "--minutes", "0.05"};
  Process process(arguments, lab.here());
  lab.wait_for(process, "timed", 25);
  process.signal(SIGKILL);
  process.wait();
  const int64_t fixed = lab.state("timed").progress.at("steps");
  CHECK(fixed > 20);
  CHECK(lab.state("timed").progress.at("step") >= 20);  // the step at which it was stored

  const Ended ended = run({"train", "--resume", "timed"}, lab.here());
  CHECK(ended.code == 0);
  CHECK(lab.steps_in_metrics("timed") == fixed);
  CHECK(lab.state("timed").config.steps == fixed);
  CHECK(json::parse(slurp(lab.file("timed", "config.json"))).at("train").at("steps") == fixed);
}

TEST_CASE("documents by BPE: stopped, the tokens lost or damaged, and resumed to the same bytes") {
  const Lab& lab = the_lab();
  std::string names;
  for (int i = 0; i < 500; ++i)
    names += sentences(3 + static_cast<std::size_t>(i) % 37, 7 + i) + "\n";
  spit(lab.folder.file("names.txt"), names);
  const auto train = [](const std::string& out) {
    return std::vector<std::string>{"train", "--data",      "names.txt", "--documents",
                                    "lines", "--tokenizer", "bpe",       "--vocab-size",
                                    "300",   "--preset",    "tiny",      "--out",
                                    out,     "--steps",     "300"};
  };
  REQUIRE(run(train("documents"), lab.here()).code == 0);
  const std::string tokens = slurp(lab.file("documents", "tokens.bin"));
  CHECK(tokens.size() > 1000);
  {
    Process first(train("parts"), lab.here());
    lab.wait_for(first, "parts", 60);
    first.signal(SIGINT);
    CHECK(first.wait().code == 130);
  }
  spit(lab.file("parts", "tokens.bin"), tokens.substr(0, 900));
  CHECK(run({"train", "--resume", "parts", "--threads", "1"}, lab.here()).code == 0);
  CHECK(slurp(lab.file("parts", "tokens.bin")) == tokens);
  fs::remove(lab.file("parts", "tokens.bin"));
  CHECK(run({"train", "--resume", "parts"}, lab.here()).code == 0);
  CHECK(slurp(lab.file("parts", "tokens.bin")) == tokens);
  lab.check_same("documents", "parts");
}
