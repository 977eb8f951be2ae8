#include "tutorials/report/inspect.h"

#include <algorithm>
#include <cstdio>

#include "tutorials/draw/text.h"
#include "tutorials/report/attention_view.h"
#include "tutorials/report/run_files.h"

namespace pellucid::report {
namespace {

void print_parameters(nn::GPT& model) {
  const std::vector<ParameterRow> rows = list_parameters(model);
  int64_t total = 0;
  std::size_t name = 9, shape = 5;
  for (const ParameterRow& row : rows) {
    total += row.elements;
    name = std::max(name, row.name.size()), shape = std::max(shape, row.shape.size());
  }
  const auto print = [&](const std::string& a, const std::string& b, const std::string& c,
                         const std::string& d, const std::string& e) {
    std::printf("%-*s  %-*s  %13s  %10s  %10s\n", static_cast<int>(name), a.c_str(),
                static_cast<int>(shape), b.c_str(), c.c_str(), d.c_str(), e.c_str());
  };
  print("parameter", "shape", "elements", "norm", "rms");
  for (const ParameterRow& row : rows)
    print(row.name, row.shape, grouped(row.elements), rounded(row.norm), rounded(row.rms));
  print("total", "", grouped(total), "", "");
}

void print_similarity(nn::TrainedModel& trained, const RunText& text, bool heads) {
  if (!text.missing.empty()) {
    std::printf(
        "\nNo attention similarity, for want of a text: %s; or give another one by --data\n",
        text.missing.c_str());
    return;
  }
  const auto windows = first_windows(text, trained.config.model.block_size);
  int64_t tokens = 0;
  for (const auto& window : windows) tokens += std::ssize(window);
  const auto layers = measure_similarity(trained.model, windows);

  std::printf(
      "\nAttention similarity on %s, %s in %s.\n"
      "y is what a head gives before XSA, v the token's own value; the baseline has another\n"
      "token's v; weight is how much a token looks at itself.\n\n",
      text.name.c_str(), counted(tokens, "token").c_str(),
      counted(std::ssize(windows), "window").c_str());
  std::printf("%5s  %4s  %4s  %9s  %9s  %9s\n", "layer", "head", "kind", "cos(y, v)", "baseline",
              "weight");
  const auto print = [](const std::string& layer, const std::string& head, const std::string& kind,
                        const Similarity& s) {
    std::printf("%5s  %4s  %4s  %9.4f  %9.4f  %9.4f\n", layer.c_str(), head.c_str(), kind.c_str(),
                s.similarity, s.baseline, s.diagonal);
  };
  Similarity mean;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool xsa = trained.model.h[i].attn.config.kind == AttentionKind::kXSA;
    for (std::size_t h = 0; heads && h < layers[i].heads.size(); ++h)
      print(std::to_string(i), std::to_string(h), xsa ? "xsa" : "sa", layers[i].heads[h]);
    print(std::to_string(i), "all", xsa ? "xsa" : "sa", layers[i].mean);
    const double share = 1 / static_cast<double>(layers.size());
    mean.similarity += share * layers[i].mean.similarity;
    mean.baseline += share * layers[i].mean.baseline;
    mean.diagonal += share * layers[i].mean.diagonal;
  }
  print("all", "all", "", mean);
}

}  // namespace

int inspect(const InspectArguments& a) {
  nn::TrainedModel trained = nn::load_model(a.model);
  const RunText text = read_run_text(trained, a.data, a.text);
  print_parameters(trained.model);
  print_similarity(trained, text, a.heads);
  return 0;
}

}  // namespace pellucid::report
