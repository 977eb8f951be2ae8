#include "tutorials/report/report.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tensor/files.h"
#include "tutorials/draw/text.h"
#include "tutorials/report/page.h"

namespace pellucid::report {
namespace {

constexpr std::size_t kMapTokens = 32, kMaps = 96;  // what keeps the page below 2 MB

// Every head's weights on the first tokens, of as many layers as the page has room for.
Maps map_attention(nn::TrainedModel& trained, const std::vector<int64_t>& tokens,
                   const std::string& source) {
  const nn::GPTConfig& config = trained.config.model;
  const std::size_t T = std::min({tokens.size(), kMapTokens, std::size_t(config.block_size)});
  const std::vector<int64_t> ids(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(T));
  Maps maps{.source = source, .layer_count = config.n_layer, .head_count = config.n_head};
  for (const int64_t id : ids) {
    const std::string token = trained.tokenizer.token(id);
    maps.tokens.push_back(token.empty() ? "<end>" : token);
  }
  const std::vector<AttentionView> views = view_attention(trained.model, ids);
  const std::size_t heads = std::min(std::size_t(config.n_head), kMaps);
  const std::size_t layers = std::clamp<std::size_t>(kMaps / heads, 1, views.size());
  for (std::size_t i = 0; i < layers; ++i) {
    const std::size_t l = layers == 1 ? views.size() - 1 : i * (views.size() - 1) / (layers - 1);
    maps.layers.push_back(static_cast<int64_t>(l));
    const std::vector<double> p = views[l].p.to_vector();
    const auto size = static_cast<std::ptrdiff_t>(T * T);
    maps.weights.emplace_back();
    for (std::size_t h = 0; h < heads; ++h)
      maps.weights.back().emplace_back(p.begin() + static_cast<std::ptrdiff_t>(h) * size,
                                       p.begin() + static_cast<std::ptrdiff_t>(h + 1) * size);
  }
  return maps;
}

std::string file_or_nothing(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path) : "";
}

// What the run itself recorded to compare with, as the demo does, or else n-grams of its text.
std::vector<Level> levels_of(const Metrics& metrics, const RunText& text) {
  std::vector<Level> levels;
  for (const char* key : {"5-gram", "floor"})
    if (const Series column = metrics.column(key); !column.y.empty())
      levels.push_back({key, column.y.back()});
  return levels.empty() ? text.levels : levels;
}

ReportData collect(const ReportArguments& a) {
  nn::TrainedModel trained = nn::load_model(a.model);
  const nn::RunFolder folder = nn::RunFolder::open(a.model);
  const RunText text = read_run_text(trained, a.data, "");

  ReportData data;
  data.name = std::filesystem::absolute(a.model).lexically_normal().string();
  while (data.name.ends_with("/")) data.name.pop_back();
  data.name = std::filesystem::path(data.name).filename().string();
  data.command = file_or_nothing(folder.file("command.txt"));
  while (data.command.ends_with("\n")) data.command.pop_back();
  const std::string kind = trained.tokenizer.kind();
  data.unit = kind == "char" ? "character" : kind == "byte" ? "byte" : "token";
  data.config = nlohmann::json::parse(read_file(folder.file("config.json")));
  data.metrics = read_metrics(folder.file("metrics.jsonl"));
  data.samples = read_samples(folder.file("samples.jsonl"));
  data.parameters = list_parameters(trained.model);
  data.no_text = text.missing;
  if (!a.text.empty()) {
    const RunText sentence = read_run_text(trained, "", a.text);
    data.maps = map_attention(trained, sentence.tokens, sentence.name);
  } else if (!text.tokens.empty()) {
    data.maps = map_attention(trained, text.tokens, text.name);
  }
  data.levels = levels_of(data.metrics, text);
  if (text.tokens.empty()) return data;
  const auto windows = first_windows(text, trained.config.model.block_size);
  int64_t tokens = 0;
  for (const auto& window : windows) tokens += std::ssize(window);
  data.similarity = measure_similarity(trained.model, windows);
  data.similarity_text =
      text.name + ", " + counted(tokens, "token") + " in " + counted(std::ssize(windows), "window");
  for (const nn::Block& block : trained.model.h)
    data.kinds.push_back(block.attn.config.kind == AttentionKind::kXSA ? "xsa" : "sa");
  return data;
}

}  // namespace

int write_report(const ReportArguments& a) {
  const std::string path = nn::RunFolder::open(a.model).file("report.html");
  const std::string html = to_html(collect(a));
  write_file_atomically(path, html);
  std::printf("Wrote %s, %s: open it in a browser\n", path.c_str(),
              counted(std::ssize(html), "byte").c_str());
  return 0;
}

}  // namespace pellucid::report
