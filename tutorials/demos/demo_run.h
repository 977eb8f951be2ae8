// What `demo --out FOLDER` keeps: a run's folder (nn/checkpoint.h) that sample, report, inspect and
// eval take. Its text is stories.txt, stories that the model does not learn from, and on them its
// metrics.jsonl has, beside each val_loss, the "floor" and what the "5-gram" loses. There is no
// state: demo's training does not go on.
#pragma once
#include "nn/checkpoint.h"

namespace pellucid::demos {

class DemoRun {
 public:
  // Makes the folder; throws if it holds a file already that the run would write.
  DemoRun(const std::string& folder, const nn::TrainConfig& config, const nn::Tokenizer& tokenizer,
          const std::vector<std::string>& stories, const std::string& command);

  void step(const nn::StepResult& result, double seconds);
  void losses(double model, double ngram, double floor);  // after the last step
  void sample(int64_t step, const std::string& text);     // once a step
  void end(nn::Trainer& trainer);                         // writes the model

  const std::string& path() const { return folder_.path(); }

 private:
  void write_line();

  nn::RunFolder folder_;
  nn::Tokenizer tokenizer_;
  nn::DataSource data_;
  nlohmann::json line_;   // of the last step: its losses may follow
  int64_t sampled_ = -1;  // the step of the last sample
};

}  // namespace pellucid::demos
