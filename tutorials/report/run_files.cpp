#include "tutorials/report/run_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "tensor/files.h"
#include "tutorials/demos/data_arguments.h"
#include "tutorials/demos/eval.h"
#include "tutorials/demos/json_lines.h"
#include "tutorials/draw/text.h"

namespace pellucid::report {
namespace {

using nlohmann::json;

// What a run that has just begun lacks is no fault.
bool each_line(const std::string& path, const std::function<void(const json&)>& visit) {
  return std::filesystem::exists(path) &&
         demos::each_json_line(path, demos::CutLine::kDrop,
                               [&](const json& entry, int64_t) { visit(entry); });
}

int64_t step_of(const json& entry) {
  const json step = entry.value("step", json());
  CHECK_ARG(step.is_number_integer() && step >= 0, "step must be a whole number; got ",
            step.dump());
  return step;
}

std::string text_of(const json& entry, const char* key) {
  const json text = entry.value(key, json());
  CHECK_ARG(text.is_string(), key, " must be a text; got ", text.dump());
  return text;
}

}  // namespace

Series Metrics::column(const std::string& key) const {
  const auto at = columns.find(key);
  return at == columns.end() ? Series{.name = key} : at->second;
}

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  int64_t last = -1;
  metrics.cut = each_line(path, [&](const json& entry) {
    const int64_t step = step_of(entry);
    CHECK_ARG(step > last, "step ", step, " follows step ", last);
    last = step, ++metrics.lines;
    for (const auto& [key, value] : entry.items()) {
      metrics.not_finite += value.is_null();
      if (!value.is_number() || key == "step") continue;
      Series& column = metrics.columns[key];
      column.name = key;
      column.x.push_back(static_cast<double>(step)), column.y.push_back(value.get<double>());
    }
  });
  return metrics;
}

Samples read_samples(const std::string& path) {
  Samples samples;
  samples.cut = each_line(path, [&](const json& entry) {
    const std::string prompt = entry.contains("prompt") ? text_of(entry, "prompt") : "";
    samples.list.push_back({step_of(entry), prompt, text_of(entry, "text")});
  });
  return samples;
}

// Losses of n-grams, where counting takes seconds and there are not too many different bytes.
static std::vector<Level> ngram_levels(const nn::Corpus& corpus, double bytes_per_token) {
  constexpr uint64_t kMost = 8 << 20;
  std::set<char> seen;
  for (const std::string& file : corpus.files) seen.insert(file.begin(), file.end());
  if (corpus.source.bytes > kMost || seen.size() > 254) return {};
  std::vector<Level> levels;
  for (const int n : {3, 5})
    levels.push_back({std::to_string(n) + "-gram", bytes_per_token * demos::ngram_loss(corpus, n)});
  return levels;
}

static RunText held_out(const nn::TrainedModel& trained, const nn::DataSource& source, bool own) {
  const nn::Corpus corpus = nn::read_corpus(source);
  const bool same = corpus.source.hash == trained.data.hash;
  CHECK_ARG(same || !own, source.paths[0], ": is not what the run began with; give that by --data");
  nn::Corpus rest = corpus;  // its views are of corpus.files
  rest.training.clear();
  const std::size_t more = source.paths.size() - 1;
  RunText text{.name = "the held-out part of " + source.paths[0] +
                       (more ? " and " + std::to_string(more) + " more" : "")};
  text.tokens = nn::encode(rest, trained.tokenizer).validation;
  if (source.has_documents()) text.end = trained.tokenizer.end_of_text();
  CHECK_ARG(text.tokens.size() >= 2, source.paths[0], ": its held-out part has ",
            counted(std::ssize(text.tokens), "token"),
            "; at least 2 are needed, one to look back at the other");
  if (same) text.levels = ngram_levels(corpus, nn::bytes_per_token(text.tokens, trained.tokenizer));
  return text;
}

RunText read_run_text(const nn::TrainedModel& trained, const std::string& data,
                      const std::string& text) {
  const auto naming = [](const std::string& name, const auto& f) {
    try {
      return f();
    } catch (const std::invalid_argument& error) {
      const std::string what = error.what();
      throw std::invalid_argument(what.starts_with(name)
                                      ? what
                                      : name + ": " + what +
                                            "; use characters of the training text only");
    }
  };
  if (!text.empty()) {
    RunText result{.name = "the text"};
    result.tokens = naming(result.name, [&] { return trained.tokenizer.encode(text); });
    CHECK_ARG(result.tokens.size() >= 2, "the text: has ",
              counted(std::ssize(result.tokens), "token"), "; give at least 2");
    return result;
  }
  nn::DataSource source = demos::from_here(trained.data);
  if (!data.empty()) {
    source.paths = {data};
    return naming(data, [&] { return held_out(trained, source, false); });
  }
  try {
    return held_out(trained, source, true);
  } catch (const std::exception& error) {
    return {.missing = error.what()};
  }
}

std::vector<std::vector<int64_t>> first_windows(const RunText& text, int64_t block_size) {
  std::vector<std::vector<int64_t>> windows;
  const std::vector<int64_t>& tokens = text.tokens;
  const int64_t all = std::min(std::ssize(tokens), std::max(kSimilarityTokens, block_size));
  for (int64_t at = 0; at + 2 <= all;) {
    int64_t end = std::min(at + block_size, all);
    if (text.end)
      end = std::find(tokens.begin() + at + 1, tokens.begin() + end, *text.end) - tokens.begin();
    if (end - at >= 2) windows.emplace_back(tokens.begin() + at, tokens.begin() + end);
    at = end;
  }
  return windows;
}

std::vector<ParameterRow> list_parameters(nn::GPT& model) {
  std::vector<ParameterRow> rows;
  for (const auto& [name, x] : model.named_parameters()) {
    std::ostringstream shape;
    shape << x.shape();
    double squares = 0;
    for (const double value : x.to_vector()) squares += value * value;
    rows.push_back({name, shape.str(), x.numel(), std::sqrt(squares),
                    std::sqrt(squares / static_cast<double>(x.numel()))});
  }
  return rows;
}

}  // namespace pellucid::report
