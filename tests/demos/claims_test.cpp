// What the README and the presets claim of whole runs, at full size: minutes each, so long tests.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

namespace {

const char* data_folder() { return std::getenv("PELLUCID_DATA"); }

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("pellucid-claims-" + std::to_string(getpid()));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

// Starts the program with its output in a file.
pid_t start(const std::vector<std::string>& arguments, const fs::path& output) {
  std::vector<std::string> all = {PELLUCID_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::fflush(stdout);  // or the child would print it again
  const pid_t pid = fork();
  if (pid == 0) {
    if (!std::freopen(output.c_str(), "w", stdout)) _exit(127);
    dup2(1, 2);
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Waits, but kills the process when the time is over.
int wait_or_kill(pid_t pid, int seconds) {
  const auto begun = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(seconds))
      kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The number in the first group of the pattern's first match; NaN if there is none.
double number_after(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? std::stod(match[1]) : std::nan("");
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("long: the demo keeps its promises") {
  const TemporaryFolder folder;
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(wait_for(start({"demo"}, folder.path / "out")) == 0);
  const double minutes = seconds_since(begun) / 60;
  const std::string out = contents(folder.path / "out");
  INFO(out);

  const double excess = number_after(out, "ratio ([0-9.]+)");
  const double recalled = number_after(out, "Facts recalled: +model ([0-9.]+) %");
  const double chance = number_after(out, "chance ([0-9.]+) %, of");
  const double accepted = number_after(out, "Right by grammar: +([0-9]+) of 50");
  const double copied = number_after(out, "copied from training: ([0-9]+)");
  std::cout << "FIGURE | demo, model's excess over the floor / 5-gram's (at most 0.33) | " << excess
            << "\nFIGURE | demo, far-back facts recalled (chance " << chance << " %) | " << recalled
            << " %\nFIGURE | demo, stories right by the grammar, of 50 (at least 45) | " << accepted
            << "\nFIGURE | demo, minutes (at most 5 on two cores) | " << minutes << "\n";
  CHECK(excess <= 1.0 / 3);
  CHECK(recalled > 3 * chance);
  CHECK(accepted >= 45);
  CHECK(copied == 0);  // at most 1 % of 50
}

TEST_CASE("long: real text, killed again and again" * doctest::skip(data_folder() == nullptr)) {
  const TemporaryFolder folder;
  const std::string text = std::string(data_folder()) + "/tinyshakespeare.txt";
  const std::string whole = folder.path / "whole", killed = folder.path / "killed";
  const std::vector<std::string> train = {"train",    "--data",      text,
                                          "--preset", "shakespeare", "--out"};
  auto with = [](std::vector<std::string> arguments, const std::string& last) {
    arguments.push_back(last);
    return arguments;
  };

  // A run that is never stopped reaches the loss that the preset promises.
  REQUIRE(wait_for(start(with(train, whole), folder.path / "out")) == 0);
  const std::string out = contents(folder.path / "out");
  const double val_loss = number_after(out, "Done: val_loss ([0-9.]+)");
  std::cout << "FIGURE | tinyshakespeare, val_loss in nats/char (under 1.55) | " << val_loss
            << "\n";
  CHECK(val_loss < 1.55);

  // Another is killed after 20, 40, 60 ... seconds, whatever it does then, with other threads.
  pid_t pid = start(with(train, killed), folder.path / "out");
  int kills = 0;
  for (int code; (code = wait_or_kill(pid, 20 + 20 * kills)) != 0; ++kills) {
    REQUIRE(code == -SIGKILL);
    REQUIRE(kills < 60);
    pid = start({"train", "--resume", killed, "--threads", std::to_string(1 + kills % 3)},
                folder.path / "out");
  }
  std::cout << "FIGURE | tinyshakespeare, kills survived to the same bytes | " << kills << "\n";
  CHECK(kills >= 3);
  CHECK(contents(whole + "/model.safetensors") == contents(killed + "/model.safetensors"));
}

TEST_CASE("long: the preset names spells better than a 5-gram" *
          doctest::skip(data_folder() == nullptr)) {
  const TemporaryFolder folder;
  const std::string names = std::string(data_folder()) + "/names.txt", run = folder.path / "run";
  REQUIRE(wait_for(start(
              {"train", "--data", names, "--documents", "lines", "--preset", "names", "--out", run},
              folder.path / "out")) == 0);
  REQUIRE(wait_for(start({"eval", "--model", run, "--data", names, "--ngram"},
                         folder.path / "out")) == 0);
  const std::string out = contents(folder.path / "out");
  INFO(out);
  const double model = number_after(out, "held out +loss [0-9.]+ nats/token, ([0-9.]+) bits");
  const double ngram = number_after(out, "n = 5 .*Witten-Bell [0-9.]+ nats/token, ([0-9.]+) bits");
  std::cout << "FIGURE | names, held-out bits/byte (5-gram " << ngram << ") | " << model << "\n";
  CHECK(model < ngram);
}
