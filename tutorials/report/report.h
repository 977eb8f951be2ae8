// `pellucid report`: a training run as one HTML file that opens without a network.
#pragma once
#include <string>

namespace pellucid::report {

struct ReportArguments {
  std::string model;      // folder of the run
  std::string data = {};  // what to measure attention on, instead of the run's own text
  std::string text = {};  // the sentence of the attention maps, instead of the text's beginning
};
// Writes report.html into the run's folder and says so. Returns the exit code.
int write_report(const ReportArguments& arguments);

}  // namespace pellucid::report
