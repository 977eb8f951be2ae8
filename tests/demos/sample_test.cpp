// What a trained model writes and how it is judged, what a terminal sees, what the doctor tells.
#include <doctest/doctest.h>
#include <sys/ioctl.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "program.h"
#include "tutorials/demos/progress.h"

using nlohmann::json;

namespace {

// One trained model for all cases of this program.
struct Model {
  TemporaryFolder folder;
  Ended trained;

  Model() {
    spit(folder.file("text.txt"), sentences(9000));
    trained = pellucid({"train", "--data", "text.txt", "--preset", "tiny", "--out", "run"});
  }
  Ended pellucid(const std::vector<std::string>& arguments, RunOptions options = {}) const {
    options.folder = folder.path.string();
    return run(arguments, options);
  }
  Ended sample(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"sample", "--model", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return pellucid(arguments);
  }
  // What it wrote after the prompt.
  std::string text(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--prompt", "the "};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = sample(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(ended.err == "");
    REQUIRE(ended.out.rfind("the ", 0) == 0);
    REQUIRE(ended.out.back() == '\n');
    return ended.out.substr(4, ended.out.size() - 5);
  }
};
const Model& model() {
  static const Model one;
  return one;
}

// Runs the program with stderr on a new terminal; returns what the terminal saw.
std::string on_terminal(const std::vector<std::string>& arguments, uint16_t columns) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal);
  const int window = open(name.c_str(), O_RDWR | O_NOCTTY);
  const winsize size{24, columns, 0, 0};
  REQUIRE(ioctl(window, TIOCSWINSZ, &size) == 0);
  std::string command = "exec \"$0\" \"$@\" 2>" + name;
  std::vector<std::string> all = {"-c", command, PELLUCID_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  RunOptions shell;
  shell.program = "/bin/sh", shell.folder = model().folder.path.string();
  Process process(all, shell);
  std::string seen;
  fcntl(terminal, F_SETFL, O_NONBLOCK);
  char part[4096];
  for (bool running = true; running;) {
    running = process.running();
    for (ssize_t n; (n = read(terminal, part, sizeof part)) > 0;)
      seen.append(part, static_cast<std::size_t>(n));
    usleep(1000);
  }
  close(window);
  close(terminal);
  CHECK(process.wait().code == 0);
  return seen;
}

}  // namespace

TEST_CASE("one seed, one text; temperature 0 and top-k 1 need no seed") {
  REQUIRE(model().trained.code == 0);
  const std::string text = model().text({"--tokens", "200", "--seed", "4"});
  CHECK(text.size() == 200);  // far past the context of 32
  CHECK(model().text({"--tokens", "200", "--seed", "4", "--threads", "1"}) == text);
  CHECK(model().text({"--tokens", "200", "--seed", "4", "--threads", "3"}) == text);
  CHECK(model().text({"--tokens", "200", "--seed", "5"}) != text);
  CHECK(model().text({"--tokens", "80", "--seed", "4"}) == text.substr(0, 80));

  const std::string likeliest = model().text({"--tokens", "90", "--temperature", "0"});
  CHECK(model().text({"--tokens", "90", "--temperature", "0", "--seed", "9"}) == likeliest);
  CHECK(model().text({"--tokens", "90", "--top-k", "1", "--seed", "9"}) == likeliest);
  CHECK(likeliest != text.substr(0, 90));
  CHECK(model().text({"--tokens", "200", "--seed", "4", "--top-k", "1000"}) == text);

  // It has learned words: some of the text's stand in what it writes.
  CHECK(likeliest.find("the") != std::string::npos);
}

TEST_CASE("prompts: none, long, empty, foreign; no tokens at all") {
  CHECK(model().text({"--tokens", "0"}) == "");
  CHECK(model().sample({"--tokens", "5"}).out.size() == 7);  // the prompt is a line end
  const std::string long_prompt = sentences(100, 3);
  const Ended after = model().sample({"--prompt", long_prompt, "--tokens", "40"});
  CHECK(after.out.rfind(long_prompt, 0) == 0);
  CHECK(after.out.size() == long_prompt.size() + 41);

  const auto refused = [&](const std::string& prompt, const char* part) {
    const Ended ended = model().sample({"--prompt", prompt, "--tokens", "5"});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(lines(ended.err) == 1);
    CHECK(ended.err.find(part) != std::string::npos);
  };
  refused("", "the prompt is empty; give at least one character");
  refused("the Zebra", "the prompt: encode: 'Z' at position 4 is not among the ");
  refused("milk\xc3\xa9", "'\xc3\xa9' (U+00E9), byte 0xc3 at position 4");
  refused("a\tb", "byte 0x09 at position 1");
}

TEST_CASE("eval measures what training printed") {
  const std::string& said = model().trained.out;
  const std::size_t at = said.find("val_loss ") + 9;
  const std::string val_loss = said.substr(at, said.find(' ', at) - at);
  REQUIRE(val_loss.size() == 6);
  const Ended ended = model().pellucid({"eval", "--model", "run", "--data", "text.txt"});
  INFO(ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("last 10 %  loss " + val_loss + " nats/token, ") == 0);
  CHECK(ended.out.find(" bits/byte, 900 tokens\nwhole text loss ") != std::string::npos);
  CHECK(lines(ended.out) == 2);
  CHECK(ascii(ended.out));

  std::ifstream metrics(model().folder.file("run/metrics.jsonl"));
  double last = 0;
  for (std::string line; std::getline(metrics, line);)
    last = json::parse(line).value("val_loss", last);
  char text[16];
  std::snprintf(text, sizeof text, "%.4f", last);
  CHECK(text == val_loss);

  // Short files, and characters that the model has never seen.
  spit(model().folder.file("two"), "th");
  CHECK(model().pellucid({"eval", "--model", "run", "--data", "two"}).out.find("whole text loss") ==
        0);
  spit(model().folder.file("one"), "t");
  spit(model().folder.file("foreign"), "the cat %");
  for (const auto& [file, part] : std::map<std::string, std::string>{
           {"one", "one: has 1 token;"}, {"foreign", "foreign: encode: '%' at position 8"}}) {
    const Ended bad = model().pellucid({"eval", "--model", "run", "--data", file});
    CHECK(bad.code == 1);
    CHECK(lines(bad.err) == 1);
    CHECK(bad.err.find(part) != std::string::npos);
  }
}

TEST_CASE("eval reads data as training did, or as it is told") {
  spit(model().folder.file("more"), sentences(500, 8));
  const auto eval = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval", "--model", "run", "--data", "text.txt", "more"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return model().pellucid(arguments);
  };
  CHECK(eval({}).out.find("\nwhole text loss ") != std::string::npos);
  CHECK(eval({}).out.find(", 9500 tokens\n") != std::string::npos);
  const Ended lines_of = eval({"--documents", "lines"});
  CHECK(lines_of.code == 1);
  CHECK(lines_of.err ==
        "pellucid: text.txt: the model knows no end of a document; measure it by --documents "
        "text\n");
}

TEST_CASE("eval --ngram: the n-grams' losses on the same split") {
  const Ended ended = model().pellucid({"eval", "--model", "run", "--data", "text.txt", "--ngram"});
  INFO(ended.out);
  CHECK(ended.code == 0);
  // The same by hand: add-0.1 of n = 1.
  const std::string text = sentences(9000), train = text.substr(0, 8100), held = text.substr(8100);
  std::map<char, double> counts;
  for (const char c : text) counts[c] = 0.1;
  double total = 0.1 * static_cast<double>(counts.size()), nats = 0;
  for (const char c : train) ++counts[c], ++total;
  for (const char c : held) nats -= std::log(counts[c] / total);
  char row[96];
  std::snprintf(row, sizeof row, "\nn = 1      add-0.1 %.4f nats/token, %.4f bits/byte; Witten",
                nats / 900, nats / 900 / std::log(2.0));
  CHECK(ended.out.find(row) != std::string::npos);
  CHECK(ended.out.find("\nn = 5      add-0.1 ") != std::string::npos);
  CHECK(lines(ended.out) == 8);
  CHECK(ascii(ended.out));
}

TEST_CASE("--top-p keeps the likeliest that have the share") {
  const std::string likeliest = model().text({"--tokens", "60", "--temperature", "0"});
  CHECK(model().text({"--tokens", "60", "--top-p", "0.000001", "--seed", "9"}) == likeliest);
  const std::string all = model().text({"--tokens", "60", "--seed", "4"});
  CHECK(model().text({"--tokens", "60", "--seed", "4", "--top-p", "1"}) == all);
  CHECK(model().text({"--tokens", "60", "--seed", "4", "--top-p", "0.5"}) != all);
}

TEST_CASE("--interactive: a prompt a line until the input ends; Ctrl-C ends it with 130") {
  RunOptions options;
  options.input = "the cat\n\nthe Zebra\na dog\n";
  const Ended ended = model().pellucid(
      {"sample", "--model", "run", "--interactive", "--tokens", "20", "--seed", "3"}, options);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 1);  // one prompt was refused, and the others answered
  CHECK(ended.err.find("pellucid: the prompt: encode: 'Z' at position 4") == 0);
  CHECK(lines(ended.err) == 1);
  CHECK(ended.out.rfind("the cat", 0) == 0);
  CHECK(ended.out.find("\na dog") != std::string::npos);
  options.input = "the cat\na dog";
  const Ended two = model().pellucid(
      {"sample", "--model", "run", "--interactive", "--tokens", "20", "--seed", "3"}, options);
  CHECK(two.code == 0);
  CHECK(two.out.substr(0, 27) == ended.out.substr(0, 27));
  CHECK(two.out.size() == 27 + 1 + 25 + 1);

#if !defined(__SANITIZE_THREAD__)  // it holds a signal back while the C library waits for a line
  // stdin that stays open: the process waits for a line.
  RunOptions shell;
  shell.program = "/bin/sh", shell.folder = model().folder.path.string();
  Process waiting(
      {"-c", "mkfifo pipe; exec \"$0\" sample --model run --interactive <> pipe", PELLUCID_PROGRAM},
      shell);
  usleep(400'000);
  REQUIRE(waiting.running());
  waiting.signal(SIGINT);
  CHECK(waiting.wait().code == 130);
#endif
}

TEST_CASE("a model of documents begins one by itself and stops where it ends") {
  const TemporaryFolder folder;
  std::string names;
  for (int i = 0; i < 400; ++i) names += i % 2 ? "anna\n" : "bo\xc3\xa9\n";
  spit(folder.file("names.txt"), names);
  const RunOptions here{.folder = folder.path.string()};
  for (const std::string tokenizer : {"char", "byte", "bpe"}) {
    CAPTURE(tokenizer);
    std::vector<std::string> arguments = {
        "train", "--data",  "names.txt", "--documents", "lines",       "--preset", "tiny",
        "--out", tokenizer, "--steps",   "150",         "--tokenizer", tokenizer};
    if (tokenizer == "bpe") arguments.insert(arguments.end(), {"--vocab-size", "260"});
    const Ended trained = run(arguments, here);
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    int whole = 0;
    for (int seed = 1; seed <= 10; ++seed) {
      const Ended one = run(
          {"sample", "--model", tokenizer, "--temperature", "0.5", "--seed", std::to_string(seed)},
          here);
      CHECK(one.code == 0);
      whole += one.out == "anna\n" || one.out == "bo\xc3\xa9\n";
    }
    CHECK(whole >= 8);  // a coin decides the first letter, nothing the rest
    const Ended many =
        run({"sample", "--model", tokenizer, "--samples", "10", "--seed", "1"}, here);
    CHECK(lines(many.out) == 10);  // one generator draws them all: both names come
    CHECK(many.out.find("anna\n") != std::string::npos);
    CHECK(many.out.find("bo\xc3\xa9\n") != std::string::npos);
    std::ifstream samples(folder.file(tokenizer + "/samples.jsonl"));
    std::string last;
    for (std::string line; std::getline(samples, line);) last = json::parse(line).at("text");
    CHECK(lines(last) >= 20);  // documents one after another
    CHECK(run({"sample", "--model", tokenizer, "--prompt", "an", "--temperature", "0"}, here).out ==
          "anna\n");
    // Half of one bit a name, of 4 bytes: ln 2 / 5 nats a token of names.
    const Ended measured =
        run({"eval", "--model", tokenizer, "--data", "names.txt", "--ngram"}, here);
    INFO(measured.out);
    CHECK(measured.out.find("held out   loss ") == 0);
    CHECK(measured.out.find("\nall        loss ") != std::string::npos);
    CHECK(measured.out.find("\nn = 5      add-0.1 ") != std::string::npos);
  }
}

TEST_CASE("a terminal sees a bar that moves, in ASCII and without colour; others see lines") {
  const std::string seen = on_terminal(
      {"train", "--data", "text.txt", "--preset", "tiny", "--out", "shown", "--steps", "600"}, 80);
  INFO(seen);
  CHECK(seen.find("\rstep [") != std::string::npos);
  CHECK(seen.find("\rstep [....................] 1/600") != std::string::npos);
  CHECK(seen.find("\rstep [####################] 600/600") != std::string::npos);
  CHECK(seen.find('\x1b') == std::string::npos);
  // No line is wider than the terminal or cut within a part, and the time left is there.
  std::stringstream reports(seen);
  for (std::string line; std::getline(reports, line, '\r');) {
    CHECK(std::min(line.find('\n'), line.size()) < 80);
    if (line.find("/600") == std::string::npos) continue;
    CHECK(line.find("  left ") < line.find("  loss "));
    CHECK(line.find("  loss ") != std::string::npos);
    CHECK(line.find("  lr ") == std::string::npos);  // nor is it wide enough for this
  }
  // The validations stay.
  for (const char* step : {"\rstep 200: loss ", "\rstep 400: loss ", "\rstep 600: loss "}) {
    const std::size_t at = seen.find(step);
    REQUIRE(at != std::string::npos);
    const std::string line = seen.substr(at, seen.find('\r', at + 1) - at);
    CHECK(line.find(", val_loss ") != std::string::npos);
  }
  std::string rest = seen;
  std::erase(rest, '\r');
  CHECK(ascii(rest));
  CHECK(model().trained.err.find('\r') == std::string::npos);
  CHECK(model().trained.err.find('[') == std::string::npos);
  CHECK(ascii(model().trained.err));
  CHECK(ascii(model().trained.out));
}

TEST_CASE("an output that cannot be written is an error" *
          doctest::skip(access("/dev/full", W_OK) != 0) *
          doctest::description("there is no /dev/full here")) {
  RunOptions full;
  full.out_to = "/dev/full";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"sample", "--model", "run", "--prompt", "the"},
                                             {"eval", "--model", "run", "--data", "text.txt"},
                                             {"doctor"}}) {
    const Ended ended = model().pellucid(arguments, full);
    CHECK(ended.code == 1);
    CHECK(ended.err == "pellucid: the output could not be written: is the disk full?\n");
  }
}

TEST_CASE("durations as people say them") {
  using pellucid::demos::duration;
  CHECK(duration(0) == "0 s");
  CHECK(duration(0.4) == "0 s");
  CHECK(duration(59.4) == "59 s");
  CHECK(duration(59.6) == "1 min 00 s");
  CHECK(duration(185) == "3 min 05 s");
  CHECK(duration(3599.4) == "59 min 59 s");
  CHECK(duration(3599.6) == "1 h 00 min");
  CHECK(duration(7800) == "2 h 10 min");
  CHECK(duration(360000) == "100 h 00 min");
}

TEST_CASE("progress in a file: the first report, then few, and the last one always") {
  using pellucid::demos::Progress;
  const TemporaryFolder folder;
  const std::string path = folder.file("log");
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(file >= 0);
  {
    Progress often("count", 0, file);
    for (int i = 1; i <= 3; ++i) often.report(i, 3, "so far");
    often.finish();
    CHECK(slurp(path) == "count 1/3  so far\ncount 2/3  so far\ncount 3/3  so far\n");
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(lseek(file, 0, SEEK_SET) == 0);
    Progress rarely("step", 1000, file);
    for (int i = 1; i <= 50; ++i) rarely.report(i, i < 20 ? 0 : 50);  // the total comes later
    rarely.finish();
    rarely.finish();
  }
  CHECK(slurp(path) == "step 1\nstep 50/50\n");
  close(file);
}

TEST_CASE("the doctor names compiler, instructions, threads, BLAS and CUDA") {
  const Ended ended = model().pellucid({"doctor", "--threads", "2"});
  INFO(ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
  CHECK(ascii(ended.out));
  std::stringstream rows(ended.out);
  for (std::string row; std::getline(rows, row);) CHECK(row.size() <= 80);
  for (const char* line : {"Pellucid ", "\ncompiler ", "\nbuilt as ", "\ninstructions ",
                           "\nvector width ", "\nCPU ", "\nthreads          2 of ",
                           "\nmatrix product ", "\n  native         a 150 x 150 product is right",
                           "\nOpenBLAS ", "\nCUDA ", "\nGoogle Benchmark ", " 0 faults\n"})
    CHECK(ended.out.find(line) != std::string::npos);

  // A choice of the user's is no shortcoming.
  RunOptions core;
  core.environment = {{"OPENBLAS_CORETYPE", "Haswell"}};
  const auto last = [](const std::string& text) {
    return text.substr(text.rfind('\n', text.size() - 2));
  };
  CHECK(last(model().pellucid({"doctor", "--threads", "2"}, core).out) == last(ended.out));

  // Each shortcoming comes with the command that mends it.
  RunOptions few;
  few.environment = {{"PELLUCID_NUM_THREADS", "1"}};
  const Ended one = model().pellucid({"doctor"}, few);
  CHECK(one.code == 0);
  int shortcomings = 0, repairs = 0;
  for (std::size_t at = 0; (at = one.out.find("  ! ", at)) != std::string::npos; ++at)
    ++shortcomings;
  for (std::size_t at = 0; (at = one.out.find("  mend: ", at)) != std::string::npos; ++at)
    ++repairs;
  CHECK(shortcomings == repairs);
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
    CHECK(one.out.find("mend: unset PELLUCID_NUM_THREADS") != std::string::npos);
}
