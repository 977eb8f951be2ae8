// What a report reads: metrics and samples whole or not at all, the run's text, the parameters.
#include "tutorials/report/run_files.h"

#include <doctest/doctest.h>

#include <cmath>

#include "error_of.h"
#include "tensor/file_helpers.h"

using namespace pellucid;
using namespace pellucid::report;

TEST_CASE("metrics by column; a line that was cut at the end is left out") {
  const TemporaryFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  CHECK(read_metrics(path).lines == 0);
  spit(path,
       "{\"step\":1,\"loss\":4.5,\"note\":\"a word\"}\n"
       "{\"step\":2,\"loss\":4.25,\"val_loss\":4}\n\n"
       "{\"step\":4,\"loss\":3,\"val_loss\":null}\r\n"  // how NaN is written
       "{\"step\":5,\"lo");
  const Metrics metrics = read_metrics(path);
  CHECK(metrics.lines == 3);
  CHECK(metrics.cut);
  CHECK(metrics.not_finite == 1);
  CHECK(metrics.column("loss").x == std::vector<double>{1, 2, 4});
  CHECK(metrics.column("loss").y == std::vector<double>{4.5, 4.25, 3});
  CHECK(metrics.column("val_loss").x == std::vector<double>{2});
  CHECK(metrics.column("lr").x.empty());
  CHECK(metrics.columns.size() == 2);
  spit(path, "{\"step\":1,\"loss\":4.5}");  // whole, but for its line end
  CHECK(read_metrics(path).lines == 1);
  CHECK_FALSE(read_metrics(path).cut);
}

TEST_CASE("samples; a line that was cut at the end is left out") {
  const TemporaryFolder folder;
  const std::string path = folder.file("samples.jsonl");
  CHECK(read_samples(path).list.empty());
  spit(path,
       "{\"step\":10,\"prompt\":\"\\n\",\"text\":\"a<b\"}\n"
       "{\"step\":20,\"text\":\"c\"}\n{\"text\":\"d\"");
  const Samples samples = read_samples(path);
  REQUIRE(samples.list.size() == 2);
  CHECK(samples.list[0].prompt == "\n");
  CHECK(samples.list[0].text == "a<b");
  CHECK(samples.list[1].step == 20);
  CHECK(samples.cut);
}

TEST_CASE("any other damaged line is refused by its number") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.jsonl"), mend = "; mend the line or take it out";
  const auto refused = [&](const std::string& line, const std::string& fault, const auto& read) {
    spit(path, "{\"step\":1,\"text\":\"a\"}\n\n" + line + "\n{\"step\":9,\"text\":\"a\"}\n");
    CHECK(error_of([&] { read(path); }) == path + ":3: " + fault + mend);
  };
  for (const char* line :
       {"{\"step\":3,\"lo", "{\"step\":3,\"loss\":NaN}", "\xff", "{\"step\":1e999}"}) {
    refused(line, "this is not JSON", read_metrics);
    refused(line, "this is not JSON", read_samples);
  }
  refused("{\"step\":3,\"step\":4}", "\"step\" stands there twice; wanted once", read_metrics);
  refused("[3]", "wanted a JSON object; got [3]", read_metrics);
  refused("{\"loss\":7}", "step must be a whole number; got null", read_metrics);
  refused("{\"step\":3.5}", "step must be a whole number; got 3.5", read_metrics);
  refused("{\"step\":-1}", "step must be a whole number; got -1", read_metrics);
  refused("{\"step\":1}", "step 1 follows step 1", read_metrics);
  refused("{\"step\":20}", "text must be a text; got null", read_samples);
  refused("{\"step\":20,\"text\":7}", "text must be a text; got 7", read_samples);
  refused("{\"step\":20,\"text\":\"b\",\"prompt\":7}", "prompt must be a text; got 7",
          read_samples);
  refused("{\"text\":\"b\"}", "step must be a whole number; got null", read_samples);
}

TEST_CASE("windows: as many as fit, none of a single token, each document's own") {
  const auto windows = [](std::size_t n, int64_t block_size) {
    return first_windows({.tokens = std::vector<int64_t>(n)}, block_size);
  };
  CHECK(windows(5000, 256).size() == 8);
  CHECK(windows(5000, 256).back().size() == 256);
  CHECK(windows(5000, 4096).size() == 1);
  CHECK(windows(5000, 4096).front().size() == 4096);
  CHECK(windows(33, 32).size() == 1);  // the last token alone has nothing to look at
  CHECK(windows(34, 32).back().size() == 2);
  CHECK(windows(2, 32).size() == 1);
  const RunText documents{.tokens = {9, 1, 2, 9, 9, 3, 4, 5, 9}, .end = 9};
  CHECK(first_windows(documents, 3) == std::vector<std::vector<int64_t>>{{9, 1, 2}, {9, 3, 4}});
}

TEST_CASE("parameters: shapes, numbers, norms; a tied head once") {
  nn::GPTConfig config;
  config.vocab_size = 5, config.block_size = 7, config.n_layer = 1, config.n_head = 2;
  config.n_embd = 4;
  nn::GPT model(config, 1);
  copy_(model.wte.weight.detach(), full({5, 4}, -3));
  const std::vector<ParameterRow> rows = list_parameters(model);
  REQUIRE(!rows.empty());
  CHECK(rows[0].name == "wte.weight");
  CHECK(rows[0].shape == "(5, 4)");
  CHECK(rows[0].elements == 20);
  CHECK(rows[0].norm == doctest::Approx(std::sqrt(180.0)));
  CHECK(rows[0].rms == doctest::Approx(3.0));
  int64_t total = 0;
  for (const ParameterRow& row : rows) {
    total += row.elements;
    CHECK(row.name != "lm_head.weight");
  }
  CHECK(total == model.num_parameters());
}
