// `pellucid train`: trains a GPT on text, or goes on with a run that was stopped.
#pragma once
#include <string>
#include <vector>

#include "tutorials/demos/data_arguments.h"

namespace pellucid::demos {

struct TrainArguments {
  DataArguments data;  // of a new run, or where an old one's files are now
  std::string out;
  std::string preset, config;      // the settings: one of them
  std::vector<std::string> set;    // and what differs from them: "n_layer=4"
  std::string tokenizer = "char";  // or "byte", "bpe", or a tokenizer's file
  int64_t vocab_size = 1024;       // of bpe
  std::string resume;              // or the folder of an old run
  std::string command;             // the line that begins it, quoted for a shell
  bool report = false;             // at the end, write report.html
};

// Returns the exit code: 0 when the run is complete, 128 + signal when it was stopped and saved.
int train(const TrainArguments& arguments);

}  // namespace pellucid::demos
