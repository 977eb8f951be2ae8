// `pellucid inspect` and `pellucid report` as their user meets them, on a run that the program
// trained: what they print and write, and one line for everything that can be wrong.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "demos/program.h"
#include "html.h"
#include "tutorials/demos/stories.h"
#include "tutorials/draw/text.h"
#include "tutorials/report/attention_view.h"
#include "tutorials/report/run_files.h"

using namespace pellucid;
using namespace pellucid::report;
namespace fs = std::filesystem;

namespace {

// A run of 40 steps on a text, trained once.
struct Desk {
  TemporaryFolder folder;
  Ended trained;

  Desk() {
    spit(folder.file("text.txt"), sentences(4000));
    trained = pellucid(
        {"train", "--data", "text.txt", "--preset", "tiny", "--out", "a run", "--steps", "40"});
  }
  Ended pellucid(const std::vector<std::string>& arguments) const {
    RunOptions options;
    options.folder = folder.path.string();
    return run(arguments, options);
  }
  std::string file(const std::string& name) const { return folder.file("a run/" + name); }
  void refused(const std::vector<std::string>& arguments, const std::string& part,
               int code = 1) const {
    const auto before = snapshot(folder.path);
    const Ended ended = pellucid(arguments);
    INFO(arguments[0] << " ... " << arguments.back() << "\n" << ended.err);
    CHECK(ended.code == code);
    CHECK(lines(ended.err) == 1);
    CHECK(ended.err.rfind("pellucid: ", 0) == 0);
    CHECK(ended.err.find(part) != std::string::npos);
    CHECK(ended.out == "");
    CHECK(snapshot(folder.path) == before);
  }
};
const Desk& desk() {
  static const Desk the_desk;
  return the_desk;
}

// A copy of the run to damage.
std::string copy_of_run(const char* name) {
  const std::string path = desk().folder.file(name);
  fs::copy(desk().file(""), path, fs::copy_options::recursive);
  return path;
}

}  // namespace

TEST_CASE("training records its command, and what the model writes at each validation") {
  REQUIRE(desk().trained.code == 0);
  const std::string command = slurp(desk().file("command.txt"));
  CHECK(
      command.ends_with("pellucid train --data text.txt --preset tiny --out 'a run' --steps 40\n"));
  const Samples samples = read_samples(desk().file("samples.jsonl"));
  CHECK_FALSE(samples.cut);
  REQUIRE(!samples.list.empty());
  CHECK(samples.list.back().step == 40);
  CHECK(samples.list.back().prompt.size() == 16);
  CHECK(samples.list.back().text.size() == 160);
  const Metrics metrics = read_metrics(desk().file("metrics.jsonl"));
  CHECK(std::ssize(samples.list) == std::ssize(metrics.column("val_loss").x));
  CHECK(has(sentences(4000).substr(3600), samples.list.back().prompt));
}

TEST_CASE("inspect prints the parameters and the similarities") {
  const Ended ended = desk().pellucid({"inspect", "a run"});
  INFO(ended.out, ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ascii(ended.out));
  CHECK(ended.err == "");
  nn::TrainedModel trained = nn::load_model(desk().file(""));
  for (const ParameterRow& row : list_parameters(trained.model)) {
    const std::size_t at = ended.out.find("\n" + row.name + " ");
    REQUIRE(at != std::string::npos);
    const std::string line = ended.out.substr(at + 1, ended.out.find('\n', at + 1) - at - 1);
    for (const std::string& part : {row.shape, " " + grouped(row.elements) + " ",
                                    " " + rounded(row.norm) + " ", " " + rounded(row.rms)})
      CHECK(has(line, part));
  }
  CHECK(std::regex_search(ended.out,
                          std::regex("\ntotal +" + grouped(trained.model.num_parameters()) + " ")));

  const RunText text = read_run_text(trained, "", "");
  CHECK(text.missing == "");
  CHECK(trained.tokenizer.decode(text.tokens) == sentences(4000).substr(3600));
  const auto layers =
      measure_similarity(trained.model, first_windows(text, trained.config.model.block_size));
  CHECK(has(ended.out, "400 tokens in 13 windows"));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Similarity& mean = layers[l].mean;
    char line[100];
    std::snprintf(line, sizeof line, "%5zu   all   xsa  %9.4f  %9.4f  %9.4f\n", l, mean.similarity,
                  mean.baseline, mean.diagonal);
    CHECK(has(ended.out, line));
  }
  const Ended heads =
      desk().pellucid({"inspect", "a run", "--heads", "--text", "the cat sees a dog"});
  CHECK(heads.code == 0);
  CHECK(has(heads.out, "on the text, 18 tokens in 1 window."));
  CHECK(lines(heads.out) ==
        lines(ended.out) + trained.config.model.n_layer * trained.config.model.n_head);
  CHECK(has(desk().pellucid({"inspect", "a run", "--data", "text.txt"}).out,
            "on the held-out part of text.txt, 400 tokens"));
}

TEST_CASE("report writes one file, the same each time, and touches nothing else") {
  const Desk& d = desk();
  auto before = snapshot(d.folder.path);
  const Ended ended = d.pellucid({"report", "a run"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out.rfind("Wrote a run/report.html, ", 0) == 0);
  CHECK(lines(ended.out) == 1);
  const std::string html = slurp(d.file("report.html"));
  auto after = snapshot(d.folder.path);
  CHECK(after.erase("a run/report.html") == 1);
  CHECK(after == before);
  CHECK(has(html, "<h1>a run</h1>"));
  CHECK(has(html, "train --data text.txt --preset tiny --out &#39;a run&#39; --steps 40"));
  CHECK(has(html, ">Step 40</h3>"));
  CHECK(has(html, ">3-gram "));
  CHECK(has(html, ">5-gram "));
  CHECK(has(html, "data-cells="));
  CHECK(has(html, "tokens are from the held-out part of text.txt."));
  CHECK_FALSE(has(html, "cut short"));
  CHECK(d.pellucid({"report", "a run/", "--threads", "2"}).code == 0);
  CHECK(slurp(d.file("report.html")) == html);
  CHECK(d.pellucid({"report", "a run", "--text", "the red ball & a \xc3\xbc"}).code == 1);
  CHECK(slurp(d.file("report.html")) == html);
  CHECK(d.pellucid({"report", "a run", "--text", "the red ball"}).code == 0);
  CHECK(has(slurp(d.file("report.html")), "tokens are from the text."));
}

TEST_CASE("a report of a run that was killed as it wrote, and without its text") {
  const std::string path = copy_of_run("damaged");
  const std::string metrics = slurp(path + "/metrics.jsonl");
  spit(path + "/metrics.jsonl", metrics.substr(0, metrics.size() - 20));
  spit(path + "/samples.jsonl", "{\"step\":2,\"text\":\"</script>\"}\n{");
  fs::remove(path + "/command.txt");
  std::string config = slurp(path + "/config.json");
  const std::size_t at = config.find("text.txt");
  REQUIRE(at != std::string::npos);
  spit(path + "/config.json", config.replace(at, 8, "gone.txt"));
  REQUIRE(desk().pellucid({"report", "damaged"}).code == 0);
  const std::string html = slurp(path + "/report.html");
  CHECK(has(html, "The last line of metrics.jsonl was cut short"));
  CHECK(has(html, "The last line of samples.jsonl was cut short"));
  CHECK(has(html, "None, for want of a text: gone.txt: no such file"));
  CHECK(has(html, "was not recorded"));
  CHECK(has(html, "&lt;/script&gt;"));
  const Ended inspected = desk().pellucid({"inspect", "damaged"});
  CHECK(inspected.code == 0);
  CHECK(has(inspected.out, "No attention similarity, for want of a text: gone.txt: no such file"));
  // The text has another place now.
  REQUIRE(desk().pellucid({"report", "damaged", "--data", "text.txt"}).code == 0);
  CHECK(has(slurp(path + "/report.html"), "data-cells="));
}

TEST_CASE("the demo keeps a run that sample, eval, inspect and report take, with its floor") {
  const Desk& d = desk();
  const Ended demo = d.pellucid({"demo", "--minutes", "0.05", "--out", "demo run"});
  INFO(demo.err);
  REQUIRE(demo.code == 0);
  CHECK(has(demo.out, "It has read too little on this machine; more time helps: "));
  CHECK(has(demo.out, " demo --minutes 1\n"));
  CHECK(has(demo.out, "Kept in demo run. Look at it with: "));
  const std::string stories = slurp(d.folder.file("demo run/stories.txt"));
  CHECK(lines(stories) == 200);
  CHECK(d.pellucid({"sample", "--model", "demo run", "--tokens", "20"}).code == 0);
  CHECK(d.pellucid({"inspect", "demo run"}).code == 0);

  const Metrics metrics = read_metrics(d.folder.file("demo run/metrics.jsonl"));
  CHECK(std::ssize(metrics.column("loss").x) == metrics.lines);
  CHECK(metrics.column("loss").x.back() == double(metrics.lines));
  CHECK(metrics.column("val_loss").x.back() == double(metrics.lines));
  // The floor is that of the very stories that the losses are of.
  std::vector<std::string> each;
  std::istringstream in(stories);
  for (std::string story; std::getline(in, story);) each.push_back(story + "\n");
  const double floor = demos::entropy_floor(each);
  for (const double y : metrics.column("floor").y) CHECK(y == doctest::Approx(floor).epsilon(1e-9));
  CHECK(metrics.column("floor").x == metrics.column("val_loss").x);
  CHECK(metrics.column("val_loss").y.back() > floor);

  const Samples samples = read_samples(d.folder.file("demo run/samples.jsonl"));
  CHECK(samples.list.back().step == metrics.lines);
  for (std::size_t i = 1; i < samples.list.size(); ++i)
    CHECK(samples.list[i].step > samples.list[i - 1].step);

  REQUIRE(d.pellucid({"report", "demo run"}).code == 0);
  const std::string html = slurp(d.folder.file("demo run/report.html"));
  CHECK(has(html, "; floor: " + fixed(floor, 4)));
  CHECK(has(html, "; 5-gram: " + fixed(metrics.column("5-gram").y.back(), 4)));
  CHECK_FALSE(has(html, "3-gram"));
  CHECK(has(html, "data-cells="));
  CHECK(has(html, "demo --minutes 0.05 --out &#39;demo run&#39;"));
  d.refused({"demo", "--out", "demo run"}, "demo run: holds a run already (config.json)");
}

TEST_CASE("a damaged line within the metrics or samples is told by its number") {
  const std::string path = copy_of_run("torn");
  const std::string metrics = slurp(path + "/metrics.jsonl"),
                    samples = slurp(path + "/samples.jsonl");
  spit(path + "/metrics.jsonl", metrics.substr(0, metrics.size() - 20) + "\n");
  desk().refused({"report", "torn"},
                 "pellucid: torn/metrics.jsonl:40: this is not JSON; mend the line or take it out");
  spit(path + "/metrics.jsonl", metrics);
  spit(path + "/samples.jsonl", samples + "{}\n");
  desk().refused({"report", "torn"},
                 "pellucid: torn/samples.jsonl:" + std::to_string(lines(samples) + 1) +
                     ": step must be a whole number; got null; mend");
}

TEST_CASE("what is wrong is told in one line, and nothing is written") {
  const Desk& d = desk();
  fs::create_directories(d.folder.file("empty"));
  const std::string path = copy_of_run("broken");
  spit(path + "/model.safetensors", "x");
  spit(d.folder.file("one.txt"), "a");
  for (const char* command : {"inspect", "report"}) {
    d.refused({command, "none"}, "none: no such folder");
    d.refused({command, "empty"}, "empty: holds no run");
    d.refused({command, "broken"}, "broken/model.safetensors: ");
    d.refused({command, "broken"}, "write it anew with: ");
    d.refused({command, "a run", "--data", "none.txt"}, "none.txt: no such file");
    d.refused({command, "a run", "--data", "one.txt"},
              "one.txt: its held-out part has 0 tokens; at least 2 are needed");
    d.refused({command, "a run", "--text", "t"}, "the text: has 1 token; give at least 2");
    d.refused({command, "a run", "--text", "the Cat"},
              "the text: encode: 'C' at position 4 is not");
    d.refused({command, "a run", "--text", ""}, "see ", 2);
    d.refused({command}, "see ", 2);
    d.refused({command, ""}, "see ", 2);
    d.refused({command, "a run", "more"}, "not expected: more", 2);
  }
  fs::remove(d.file("report.html"));
  fs::create_directories(d.file("report.html"));
  d.refused({"report", "a run"}, "report.html");
  fs::remove(d.file("report.html"));
}
