// What a report reads: metrics and samples whole or not at all, the run's text, the parameters.
#include "tutorials/report/run_files.h"

#include <doctest/doctest.h>

#include <cmath>

#include "error_of.h"
#include "tensor/file_helpers.h"

using namespace pellucid;
using namespace pellucid::report;

TEST_CASE("metrics by column; damaged lines are left out whole and counted") {
  const TemporaryFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  CHECK(read_metrics(path).lines == 0);
  spit(path,
       "{\"step\":1,\"loss\":4.5,\"note\":\"a word\"}\n"
       "{\"step\":2,\"loss\":4.25,\"val_loss\":4}\n"
       "{\"step\":3,\"loss\":null,\"lr\":7}\n"  // how NaN is written
       "{\"step\":3,\"loss\":NaN}\n"            // and how other programs write it
       "{\"step\":3,\"loss\":1e999}\n"
       "{\"step\":2,\"loss\":7}\n"  // out of order
       "{\"loss\":7}\n{\"step\":3.5,\"loss\":7}\n{\"step\":-1,\"loss\":7}\n[3]\n\xff\n\n"
       "{\"step\":5,\"loss\":\"\xff\"}\n"
       "{\"step\":4,\"loss\":3}\r\n"
       "{\"step\":5,\"lo");
  const Metrics metrics = read_metrics(path);
  CHECK(metrics.lines == 3);
  CHECK(metrics.damaged == 11);
  CHECK(metrics.column("loss").x == std::vector<double>{1, 2, 4});
  CHECK(metrics.column("loss").y == std::vector<double>{4.5, 4.25, 3});
  CHECK(metrics.column("val_loss").x == std::vector<double>{2});
  CHECK(metrics.column("lr").x.empty());
  CHECK(metrics.columns.size() == 2);
}

TEST_CASE("samples: those that are whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("samples.jsonl");
  CHECK(read_samples(path).list.empty());
  spit(
      path,
      "{\"step\":10,\"prompt\":\"\\n\",\"text\":\"a<b\"}\n{\"step\":20}\n{\"step\":20,\"text\":7}\n"
      "{\"step\":20,\"text\":\"c\"}\n{\"text\":\"d\"");
  const Samples samples = read_samples(path);
  REQUIRE(samples.list.size() == 2);
  CHECK(samples.list[0].prompt == "\n");
  CHECK(samples.list[0].text == "a<b");
  CHECK(samples.list[1].step == 20);
  CHECK(samples.damaged == 3);
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
