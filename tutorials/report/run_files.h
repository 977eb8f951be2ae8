// What a run's folder and its text tell a report. Nothing here writes. A damaged line is an error
// that names file and line; only a last one that was cut short is left out, as a process that is
// killed leaves it.
#pragma once
#include <map>

#include "nn/checkpoint.h"
#include "tutorials/draw/chart.h"

namespace pellucid::report {

// metrics.jsonl by column: x is the step, which grows from line to line. A null, as which a number
// that is not finite is written, is left out. The demo's runs have a "floor" and a "5-gram" too.
struct Metrics {
  std::map<std::string, Series> columns;
  int64_t lines = 0, not_finite = 0;
  bool cut = false;  // the last line

  // Empty where no line has the key.
  Series column(const std::string& key) const;
};
Metrics read_metrics(const std::string& path);  // no file: no lines

// samples.jsonl: what the model wrote on the way.
struct Sample {
  int64_t step = 0;
  std::string prompt, text;
};
struct Samples {
  std::vector<Sample> list;
  bool cut = false;
};
Samples read_samples(const std::string& path);

// A text as tokens: the held-out part of the run's data, or of other data, or a sentence.
struct RunText {
  std::string name = {};             // in words: "the held-out part of FILE"
  std::vector<int64_t> tokens = {};  // documents between end-of-text tokens
  std::optional<int64_t> end = {};   // that token, where there are documents
  std::vector<Level> levels = {};    // of the run's own data: losses of n-grams, nats a token
  std::string missing = {};          // why there are no tokens
};
// `data` is a file or folder to take instead of the run's, `text` a sentence; with both empty a
// fault of the run's data is told in `missing`. A fault of the others is thrown.
RunText read_run_text(const nn::TrainedModel& trained, const std::string& data,
                      const std::string& text);

// Windows of at most block_size tokens from the beginning, at most kSimilarityTokens together; each
// document begins one.
constexpr int64_t kSimilarityTokens = 2048;
std::vector<std::vector<int64_t>> first_windows(const RunText& text, int64_t block_size);

struct ParameterRow {
  std::string name, shape;
  int64_t elements = 0;
  double norm = 0, rms = 0;  // sqrt(sum x^2), sqrt(mean x^2)
};
std::vector<ParameterRow> list_parameters(nn::GPT& model);

}  // namespace pellucid::report
