// A training run as one HTML page that needs nothing else: its style, its script and its drawings
// are inside, and a policy in its head forbids whatever would come from the network.
#pragma once
#include "tutorials/report/attention_view.h"
#include "tutorials/report/run_files.h"

namespace pellucid::report {

// Attention on one sentence: weights[layer][head] (T, T), of the layers that are shown.
struct Maps {
  std::string source = {};               // where the sentence comes from, in words
  std::vector<std::string> tokens = {};  // T
  std::vector<int64_t> layers = {};
  std::vector<std::vector<std::vector<double>>> weights = {};
  int64_t layer_count = 0, head_count = 0;  // of the model
};

struct ReportData {
  std::string name;            // of the run
  std::string command;         // that made it; "": not recorded
  std::string unit = "token";  // what the losses count
  nlohmann::json config;       // config.json
  Metrics metrics;
  Samples samples;
  std::vector<Level> levels;  // losses to compare with
  std::vector<ParameterRow> parameters;
  Maps maps;
  std::vector<LayerSimilarity> similarity;
  std::vector<std::string> kinds;  // of each layer: "sa", "xsa"
  std::string similarity_text;     // what it was measured on
  std::string no_text;             // why there are neither maps nor similarities
};

// The same data give the same bytes.
std::string to_html(const ReportData& data);

// The parts, in the order of the page.
std::string summary_section(const ReportData& data);
std::string loss_section(const ReportData& data);
std::string pace_section(const ReportData& data);
std::string samples_section(const ReportData& data);
std::string maps_section(const ReportData& data);
std::string similarity_section(const ReportData& data);
std::string parameters_section(const ReportData& data);
std::string config_section(const ReportData& data);

// <table> with numbers flush right; `text_columns` first columns are text. Scrolls sideways where
// it is too wide.
std::string table(const std::string& label, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows, std::size_t text_columns = 1);

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace pellucid::report
