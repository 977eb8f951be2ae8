#include "tutorials/demos/demo_run.h"

namespace pellucid::demos {

static constexpr const char* kStories = "stories.txt";

DemoRun::DemoRun(const std::string& folder, const nn::TrainConfig& config,
                 const nn::Tokenizer& tokenizer, const std::vector<std::string>& stories,
                 const std::string& command)
    : folder_(nn::RunFolder::create(folder, {kStories})), tokenizer_(tokenizer) {
  std::string text;
  for (const std::string& story : stories) text += story;
  const std::string path = folder_.file(kStories);
  write_file_atomically(path, text);
  data_ = nn::read_corpus({.paths = {path}}).source;
  folder_.write_config(config, tokenizer_, data_, true);
  folder_.write_command(command);
}

void DemoRun::write_line() {
  if (!line_.is_null()) folder_.append_metrics(line_);
  line_ = nullptr;
}

void DemoRun::step(const nn::StepResult& r, double seconds) {
  write_line();
  line_ = {{"step", r.step}, {"tokens", r.tokens},       {"loss", r.loss},
           {"lr", r.lr},     {"grad_norm", r.grad_norm}, {"seconds", seconds}};
  line_["tokens_per_s"] = static_cast<double>(r.tokens) / seconds;
}

void DemoRun::losses(double model, double ngram, double floor) {
  if (line_.is_null()) return;  // stopped before the first step
  line_["val_loss"] = model, line_["5-gram"] = ngram, line_["floor"] = floor;
}

void DemoRun::sample(int64_t step, const std::string& text) {
  if (step == sampled_) return;
  sampled_ = step;
  folder_.append_sample({{"step", step}, {"prompt", "\n"}, {"text", text}});
}

void DemoRun::end(nn::Trainer& trainer) {
  write_line();
  folder_.export_from({.config = trainer.config,
                       .tokenizer = tokenizer_,
                       .data = data_,
                       .tensors = trainer.state_dict(),
                       .progress = {},
                       .loader = {},
                       .demo = true});
}

}  // namespace pellucid::demos
