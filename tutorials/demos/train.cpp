#include "tutorials/demos/train.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "nn/checkpoint.h"
#include "nn/generate.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/presets.h"
#include "tutorials/demos/progress.h"
#include "tutorials/demos/step_memory.h"
#include "tutorials/report/report.h"

namespace pellucid::demos {
namespace {

using nn::Checkpoint;
using nn::RunFolder;
using Clock = std::chrono::steady_clock;

// A sample on the way: so many tokens, after as many of the validation text.
constexpr int64_t kSampleTokens = 160, kPromptTokens = 16;
constexpr double kSampleTemperature = 0.8;

// --minutes: the number of steps is fixed after so many.
constexpr int64_t kMeasuredSteps = 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Nats per token as bits per byte.
double bits(double nats, double bytes_per_token) { return nats / std::log(2.0) / bytes_per_token; }

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

struct Run {
  RunFolder folder;
  nn::Tokenizer tokenizer;
  nn::DataSource data;
  nn::Trainer trainer;
  nn::Loader loader;
  std::vector<nn::Batch> validation;
  std::size_t training_tokens, validation_tokens;
  double training_bytes, validation_bytes;  // of a token
  double seconds_before = 0;                // trained before this process

  Run(RunFolder run_folder, const nn::TrainConfig& config, const nn::Tokenizer& run_tokenizer,
      const nn::DataSource& run_data, const nn::Tokens& tokens)
      : folder(std::move(run_folder)),
        tokenizer(run_tokenizer),
        data(run_data),
        trainer(config),
        loader(tokens.training, config.batch_size, config.model.block_size, config.seed, end()),
        validation(nn::validation_batches(tokens.validation, config.batch_size,
                                          config.model.block_size, end())),
        training_tokens(tokens.training.size()),
        validation_tokens(tokens.validation.size()),
        training_bytes(nn::bytes_per_token(tokens.training, tokenizer)),
        validation_bytes(nn::bytes_per_token(tokens.validation, tokenizer)) {}

  std::optional<int64_t> end() const {
    return data.has_documents() ? tokenizer.end_of_text() : std::nullopt;
  }
  Checkpoint checkpoint(double seconds) {
    return {trainer.config,     tokenizer,      data,   trainer.state_dict(),
            trainer.progress(), loader.state(), seconds};
  }
  void commit(double seconds) {
    const Checkpoint c = checkpoint(seconds);
    folder.commit(c);
    folder.export_from(c);
  }
};

// Refuses a text too short for the context before anything is written.
void check_length(const std::string& path, const nn::Tokens& tokens, const nn::Tokenizer& tokenizer,
                  int64_t T) {
  const auto n = static_cast<int64_t>(tokens.training.size() + tokens.validation.size());
  const char* unit = tokenizer.kind() == "char" ? " characters" : " tokens";
  int64_t enough = 20;
  while (enough - enough / 10 <= T) ++enough;
  CHECK_ARG(n >= enough && std::ssize(tokens.training) > T && tokens.validation.size() >= 2, path,
            ": has ", n, unit, ", too few: 90 % are for training and must be more than the ",
            "context of ", T, ", 10 % for validation; give a text of at least ", enough, unit);
}

nn::Tokenizer make_tokenizer(const TrainArguments& a, const nn::Corpus& corpus) {
  if (a.tokenizer == "bpe") return nn::BpeTokenizer::train(corpus.training, a.vocab_size);
  if (a.tokenizer == "byte") return nn::Tokenizer::bytes(corpus.source.has_documents());
  if (a.tokenizer != "char") {
    CHECK_ARG(std::filesystem::exists(a.tokenizer), "no tokenizer is called \"", a.tokenizer,
              "\"; there are: char, byte, bpe, and files");
    return nn::Tokenizer::load(a.tokenizer);
  }
  std::string all;
  for (const auto& texts : {corpus.training, corpus.validation})
    for (const std::string_view text : texts) all += text;
  return nn::CharTokenizer(all, corpus.source.has_documents());
}

// Characters and bytes are found faster than they are read.
bool worth_keeping(const nn::Tokenizer& tokenizer) {
  return tokenizer.kind() != "char" && tokenizer.kind() != "byte";
}

nn::Tokens encode(const TrainArguments& a, const nn::Corpus& corpus,
                  const nn::Tokenizer& tokenizer) {
  try {
    return nn::encode(corpus, tokenizer);
  } catch (const std::invalid_argument& error) {
    fail(a.data.paths[0], ": ", error.what(), "; give another --tokenizer");
  }
}

Run begin(const TrainArguments& a) {
  nn::TrainConfig config = make_config(a.preset, a.config, a.set);
  const nn::Corpus corpus = nn::read_corpus(a.data.source());
  const nn::Tokenizer tokenizer = make_tokenizer(a, corpus);
  const nn::Tokens tokens = encode(a, corpus, tokenizer);
  const bool documents = corpus.source.has_documents();
  if (!documents) check_length(a.data.paths[0], tokens, tokenizer, config.model.block_size);
  config.model.vocab_size = tokenizer.vocab_size();
  config.validate();
  check_memory(config, most_places(config, tokens.training,
                                   documents ? tokenizer.end_of_text() : std::nullopt));

  RunFolder folder = RunFolder::create(
      a.out, a.report ? std::vector<std::string>{"report.html"} : std::vector<std::string>{});
  folder.write_config(config, tokenizer, corpus.source);
  folder.write_command(a.command);
  if (worth_keeping(tokenizer))
    nn::save_tokens(folder.file("tokens.bin"), corpus.source, tokenizer, tokens);
  Run run(std::move(folder), config, tokenizer, corpus.source, tokens);
  run.commit(0);
  return run;
}

// The tokens of a run's data, from the file beside it where that is whole.
nn::Tokens tokens_of(const RunFolder& folder, const nn::Corpus& corpus,
                     const nn::Tokenizer& tokenizer) {
  const std::string path = folder.file("tokens.bin");
  if (auto kept = nn::load_tokens(path, corpus.source, tokenizer)) return *kept;
  nn::Tokens tokens = nn::encode(corpus, tokenizer);
  if (worth_keeping(tokenizer)) nn::save_tokens(path, corpus.source, tokenizer, tokens);
  return tokens;
}

Run resume(const TrainArguments& a) {
  RunFolder folder = RunFolder::open(a.resume);
  folder.lock();
  const bool has_state = folder.has_state();
  const Checkpoint c = has_state ? folder.read_state() : folder.read_config();
  CHECK_ARG(!c.demo, a.resume, ": is a demo's, whose training does not go on; begin another with: ",
            nn::shell_command({"demo", "--out", "FOLDER"}));
  // The model is written after the first state: without one, the state was lost.
  CHECK_ARG(
      has_state || !std::filesystem::exists(folder.file("model.safetensors")),
      folder.file("state.safetensors"),
      ": is missing, and without it no run goes on; restore it from a copy, or train again in "
      "a new folder");
  const nn::Tokenizer tokenizer = has_state ? c.tokenizer : folder.read_tokenizer();

  nn::DataSource data = from_here(c.data);
  if (!a.data.paths.empty()) data.paths = a.data.paths;
  const nn::Corpus corpus = nn::read_corpus(data);
  const nn::DataSource& now = corpus.source;
  CHECK_ARG(now.hash == data.hash && now.bytes == data.bytes, data.paths[0],
            ": is not the text that the run began with (", data.bytes, " bytes then, ", now.bytes,
            " now, or other contents); give that one by --data");
  CHECK_ARG(tokenizer.vocab_size() == c.config.model.vocab_size, a.resume, ": its config has ",
            c.config.model.vocab_size, " tokens, but its tokenizer ", tokenizer.vocab_size(),
            "; restore it from a copy, or train again in a new folder");
  const nn::Tokens tokens = tokens_of(folder, corpus, tokenizer);
  Run run(std::move(folder), c.config, tokenizer, now, tokens);
  if (has_state) {
    try {
      run.trainer.load(c.tensors, c.progress);
      run.loader.set_state(c.loader);
    } catch (const std::exception& error) {
      throw std::runtime_error(a.resume +
                               "/state.safetensors: does not fit its own config: " + error.what() +
                               "; restore it from a copy, or train again in a new folder");
    }
    run.seconds_before = c.seconds;
  }
  run.folder.cut_lines(run.trainer.steps());  // before all else: it may refuse
  if (has_state)
    run.folder.export_from(c);
  else
    run.commit(0);
  return run;
}

// The number of steps that fill the minutes: steps cost what the last ones did, a validation every
// eval_interval steps and at the end costs what the first did, and 3 % are left to chance.
int64_t steps_for(double seconds, double per_step, double per_validation, int64_t done,
                  int64_t interval) {
  const double each = per_step + per_validation / static_cast<double>(interval);
  const double left = 0.97 * seconds - per_validation;
  return std::max(done + 1, done + static_cast<int64_t>(left / each));
}

class Loop {
 public:
  explicit Loop(Run& run) : run_(run), progress_("step") {}

  // Steps until the run is complete or somebody wants it to stop.
  int go() {
    InterruptGuard guard;
    while (!run_.trainer.done() && !interrupted()) one_step();
    progress_.finish();
    if (run_.trainer.done()) return 0;
    run_.commit(seconds());
    const int64_t total = run_.trainer.config.steps;  // 0: not known yet
    std::printf("Stopped and saved at step %lld%s. Go on with: %s\n",
                static_cast<long long>(run_.trainer.steps()),
                total > 0 ? (" of " + std::to_string(total)).c_str() : "",
                nn::shell_command({"train", "--resume", run_.folder.path()}).c_str());
    return interrupted_exit_code();
  }

  double val_loss() const { return val_loss_; }

 private:
  double seconds() const { return run_.seconds_before + seconds_since(start_); }

  void one_step() {
    const nn::Loader::State before = run_.loader.state();
    const auto start = Clock::now();
    nn::StepResult result;
    try {
      result = run_.trainer.step([&] { return run_.loader.next(); });
    } catch (const std::exception& error) {
      progress_.finish();
      run_.loader.set_state(before);
      run_.commit(seconds());
      const bool blew_up = dynamic_cast<const nn::NotFinite*>(&error);
      throw std::runtime_error(
          error.what() +
          ("; the run is saved as it was before that step, in " + run_.folder.path()) +
          (blew_up ? "; begin again with a lower learning rate or another --seed" : ""));
    }
    const double took = seconds_since(start);
    // A mean that forgets: the first steps are slower, and the machine's other work comes and goes.
    const auto read = static_cast<double>(result.tokens - tokens_);
    tokens_ = result.tokens;
    step_tokens_ = step_seconds_ == 0 ? read : 0.9 * step_tokens_ + 0.1 * read;
    step_seconds_ = step_seconds_ == 0 ? took : 0.9 * step_seconds_ + 0.1 * took;

    const nn::TrainConfig& config = run_.trainer.config;
    const bool fix_steps = config.steps == 0 && result.step >= kMeasuredSteps;
    const bool save = run_.trainer.done() || result.step % config.eval_interval == 0 || fix_steps;
    if (save) validate();
    if (fix_steps)
      run_.trainer.set_total_steps(steps_for(config.minutes * 60 - seconds(), step_seconds_,
                                             validation_seconds_, result.step,
                                             config.eval_interval));
    nlohmann::json line = {{"step", result.step},           {"tokens", result.tokens},
                           {"loss", result.loss},           {"lr", result.lr},
                           {"grad_norm", result.grad_norm}, {"tokens_per_s", tokens_per_second()},
                           {"seconds", seconds()}};
    line["bits_per_byte"] = bits(result.loss, run_.training_bytes);
    if (save) line["val_loss"] = val_loss_;
    if (save) line["val_bits_per_byte"] = bits(val_loss_, run_.validation_bytes);
    run_.folder.append_metrics(line);  // before the commit, which makes it count
    if (save) write_sample();
    if (save) run_.commit(seconds());
    if (save)
      progress_.note(format("step %lld: loss %.4f, val_loss %.4f, %.4f bits/byte",
                            static_cast<long long>(result.step), result.loss, val_loss_,
                            bits(val_loss_, run_.validation_bytes)));
    report(result);
  }

  // Is not broken off: its step would stay without a val_loss for good.
  void validate() {
    const auto start = Clock::now();
    bool said = false;
    val_loss_ = nn::evaluate(run_.trainer.model, run_.validation, [&](int64_t done, int64_t total) {
      if (interrupted() && !said && done < total) {
        said = true;
        progress_.finish();
        std::printf("Stopping after this validation; Ctrl-C again stops at once\n");
        std::fflush(stdout);
      }
      return true;
    });
    validation_seconds_ = seconds_since(start);
  }

  // By a generator of its own, the same each time, so that only the model differs. A text is gone
  // on with; documents are begun, one after another.
  void write_sample() {
    const std::optional<int64_t> end = run_.end();
    const Tensor text = select(run_.validation.front().inputs, 0, 0);  // (T)
    const int64_t length = end ? 1 : std::min(kPromptTokens, text.size(0));
    const std::vector<int64_t> prompt = slice(text, 0, 0, length).to_vector<int64_t>();
    Generator rng{run_.trainer.config.seed, nn::stream_of("samples"), 0};
    std::string written;
    for (int64_t left = kSampleTokens; left > 0;) {
      const std::vector<int64_t> ids = nn::generate(
          run_.trainer.model, prompt, {.max_new_tokens = left, .temperature = kSampleTemperature},
          rng, [&](int64_t id) { return id != end; });
      written += (written.empty() ? "" : "\n") + run_.tokenizer.decode(ids);
      if (!end || interrupted()) break;
      left -= static_cast<int64_t>(ids.size());
    }
    run_.folder.append_sample({{"step", run_.trainer.steps()},
                               {"prompt", run_.tokenizer.decode(prompt)},
                               {"text", written}});
  }

  double tokens_per_second() const { return step_tokens_ / step_seconds_; }

  void report(const nn::StepResult& r) {
    const nn::TrainConfig& config = run_.trainer.config;
    std::string text;
    if (config.steps > 0) {
      const auto steps = static_cast<double>(config.steps - r.step);
      const double left = steps * step_seconds_ +
                          steps / static_cast<double>(config.eval_interval) * validation_seconds_;
      text = "left " + duration(left) + "  ";
    }
    text += format("loss %.4f  %.3f bits/byte  %.0f tokens/s  lr %.2e  norm %.2f", r.loss,
                   bits(r.loss, run_.training_bytes), tokens_per_second(), r.lr, r.grad_norm);
    progress_.report(r.step, config.steps, text);
  }

  Run& run_;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  int64_t tokens_ = run_.trainer.progress().at("tokens");
  double step_seconds_ = 0, step_tokens_ = 0, validation_seconds_ = 0, val_loss_ = std::nan("");
};

}  // namespace

int train(const TrainArguments& arguments) {
  Run run = arguments.resume.empty() ? begin(arguments) : resume(arguments);
  const nn::TrainConfig& config = run.trainer.config;
  const std::string& folder = run.folder.path();
  std::printf("%s: %lld parameters, %lld layers, width %lld, context %lld, attention %s\n",
              folder.c_str(), static_cast<long long>(run.trainer.model.num_parameters()),
              static_cast<long long>(config.model.n_layer),
              static_cast<long long>(config.model.n_embd),
              static_cast<long long>(config.model.block_size), config.model.attention.c_str());
  std::printf(
      "Data: %zu tokens for training, %zu for validation; tokenizer %s of %lld, %.2f bytes/token\n",
      run.training_tokens, run.validation_tokens, run.tokenizer.kind().c_str(),
      static_cast<long long>(run.tokenizer.vocab_size()), run.training_bytes);
  if (run.trainer.steps() > 0)
    std::printf("Going on from step %lld\n", static_cast<long long>(run.trainer.steps()));
  std::fflush(stdout);

  Loop loop(run);
  const int code = loop.go();
  if (code == 0 && !std::isnan(loop.val_loss()))
    std::printf(
        "Done: val_loss %.4f nats/token, %.4f bits/byte, after %lld steps. Let it write with:\n",
        loop.val_loss(), bits(loop.val_loss(), run.validation_bytes),
        static_cast<long long>(run.trainer.steps()));
  else if (code == 0)
    std::printf("This run is complete. Let it write with:\n");
  if (code == 0)
    std::printf("  %s\n",
                nn::shell_command({"sample", "--model", folder, "--tokens", "300"}).c_str());
  if (code == 0 && arguments.report) return report::write_report({.model = folder});
  return code;
}

}  // namespace pellucid::demos
