#include "tutorials/demos/demo.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <unordered_set>

#include "nn/generate.h"
#include "nn/tokenizer.h"
#include "nn/trainer.h"
#include "tutorials/demos/demo_run.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/ngram.h"
#include "tutorials/demos/presets.h"
#include "tutorials/demos/progress.h"
#include "tutorials/demos/stories.h"

namespace pellucid::demos {
namespace {

struct Stopwatch {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

constexpr int kOrder = 5;               // of the n-gram
constexpr int64_t kMeasuredSteps = 20;  // then the number of steps is fixed
constexpr int64_t kLooks = 5;           // times that the table is written during training
constexpr std::size_t kHeldOut = 200, kQuick = 40;  // stories asked at the end, and on the way
constexpr std::size_t kSamples = 50;
constexpr double kTemperature = 0.5;  // of what the model tells

// Streams of random numbers: held-out stories and samples have one each, then one a training row.
constexpr uint64_t kHeldOutStream = uint64_t{1} << 40, kSampleStream = uint64_t{2} << 40,
                   kTrainingStreams = uint64_t{3} << 40;

nn::TrainConfig demo_config(const DemoArguments& a, int64_t vocab_size) {
  nn::TrainConfig config = to_config(find_preset("demo").values, vocab_size);
  config.model.attention = a.attention;
  config.minutes = a.minutes;
  config.seed = a.seed;
  return config;
}

// What the model reads: each row begins at the beginning of a story and goes on with others until
// the window is full. The 5-gram counts the very same characters.
class Lessons {
 public:
  NGram ngram{kOrder, story_alphabet()};
  std::unordered_set<std::string> stories;  // that were read whole

  Lessons(const nn::TrainConfig& config, const nn::CharTokenizer& tokenizer)
      : B_(config.batch_size),
        T_(config.model.block_size),
        seed_(config.seed),
        tokenizer_(tokenizer) {}

  nn::Batch next() {
    nn::Batch batch{empty({B_, T_}, kInt64), empty({B_, T_}, kInt64), B_ * T_};  // (B, T)
    auto* x = static_cast<int64_t*>(batch.inputs.data());
    auto* y = static_cast<int64_t*>(batch.targets.data());
    for (int64_t b = 0; b < B_; ++b) {
      const std::string text = row();
      const std::vector<int64_t> ids = tokenizer_.encode(text);
      std::copy(ids.begin(), ids.end() - 1, x + b * T_);
      std::copy(ids.begin() + 1, ids.end(), y + b * T_);
      ngram.count(text);
      ngram.end_stream();
    }
    return batch;
  }

 private:
  std::string row() {
    Generator rng{seed_, kTrainingStreams + rows_++, 0};
    std::string text = "\n";
    while (static_cast<int64_t>(text.size()) <= T_) {
      const std::string story = sample_story(rng);
      text += story;
      if (static_cast<int64_t>(text.size()) <= T_ + 1) stories.insert(story);
    }
    return text.substr(0, static_cast<std::size_t>(T_ + 1));
  }

  int64_t B_, T_;
  uint64_t seed_, rows_ = 0;
  const nn::CharTokenizer& tokenizer_;
};

// One row a story, from its first character on: its context is the '\n' before it.
nn::Batch story_batch(const std::vector<std::string>& stories, const nn::CharTokenizer& tokenizer) {
  std::size_t longest = 0;
  for (const std::string& story : stories) longest = std::max(longest, story.size());
  const auto B = static_cast<int64_t>(stories.size()), T = static_cast<int64_t>(longest);
  nn::Batch batch{full({B, T}, 0, kInt64), full({B, T}, nn::kIgnore, kInt64)};  // (B, T)
  for (int64_t b = 0; b < B; ++b) {
    const std::string& story = stories[static_cast<std::size_t>(b)];
    const std::vector<int64_t> ids = tokenizer.encode("\n" + story);
    std::copy(ids.begin(), ids.end() - 1, static_cast<int64_t*>(batch.inputs.data()) + b * T);
    std::copy(ids.begin() + 1, ids.end(), static_cast<int64_t*>(batch.targets.data()) + b * T);
    batch.counted += static_cast<int64_t>(story.size());
  }
  return batch;
}

// ln p(continuation | '\n' prefix) by the model.
double model_score(nn::GPT& model, const nn::CharTokenizer& tokenizer, const std::string& prefix,
                   const std::string& continuation) {
  const std::vector<int64_t> ids = tokenizer.encode("\n" + prefix + continuation);
  const auto T = static_cast<int64_t>(ids.size()) - 1;
  const auto from = T - static_cast<int64_t>(continuation.size());
  nn::Batch batch{full({1, T}, 0, kInt64), full({1, T}, nn::kIgnore, kInt64),
                  static_cast<int64_t>(continuation.size())};  // (1, T)
  std::copy(ids.begin(), ids.end() - 1, static_cast<int64_t*>(batch.inputs.data()));
  std::copy(ids.begin() + 1 + from, ids.end(), static_cast<int64_t*>(batch.targets.data()) + from);
  return -nn::evaluate(model, {batch}) * static_cast<double>(continuation.size());
}

// Prints a text in lines of at most 84 characters, indented by four.
void print_wrapped(const std::string& text) {
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; column += word.size() + 1) {
    const bool new_line = column == 0 || column + word.size() > 84;
    if (new_line && column > 0) std::printf("\n");
    if (new_line) column = 0;
    std::printf(new_line ? "    %s" : " %s", word.c_str());
  }
  std::printf("\n");
}

// What is measured on held-out stories, in nats a character and shares.
struct Scores {
  double floor = 0, model = 0, ngram = 0;
  RecallRate model_recall, ngram_recall;
};

class Demo {
 public:
  explicit Demo(const DemoArguments& arguments)
      : budget_(arguments.minutes * 60),
        tokenizer_(story_alphabet()),
        trainer_(demo_config(arguments, tokenizer_.vocab_size())),
        lessons_(trainer_.config, tokenizer_) {
    Generator rng{arguments.seed, kHeldOutStream, 0};
    while (held_out_.size() < kHeldOut) held_out_.push_back(sample_story(rng));
    floor_ = entropy_floor(held_out_);
    if (!arguments.out.empty())
      kept_.emplace(arguments.out, trainer_.config, tokenizer_, held_out_, arguments.command);
  }

  int run() {
    InterruptGuard guard;
    introduce();
    clock_ = Stopwatch();
    train();
    conclude();
    keep_scores();  // after all is told: the disk may be full
    if (kept_) {
      kept_->end(trainer_);
      std::printf("Kept in %s. Look at it with: %s\n", kept_->path().c_str(),
                  nn::shell_command({"report", kept_->path()}).c_str());
    }
    return interrupted() ? interrupted_exit_code() : 0;
  }

 private:
  void introduce() {
    const nn::TrainConfig& config = trainer_.config;
    std::printf(
        "A GPT of %lld parameters (%lld layers, width %lld, attention %s) learns to tell\n"
        "stories like this one:\n\n",
        static_cast<long long>(trainer_.model.num_parameters()),
        static_cast<long long>(config.model.n_layer), static_cast<long long>(config.model.n_embd),
        config.model.attention.c_str());
    print_wrapped(held_out_[0]);
    std::printf(
        "\nFacts told early decide words far later: who owns what, where it lies, what somebody\n"
        "likes. The grammar that makes the stories knows every probability, so the least loss\n"
        "that any model can reach is known: the floor. Beside the model stands a %d-gram, which\n"
        "guesses each character from the %d before it and reads the same characters. Losses\n"
        "are in nats per character on new stories. A fact counts as recalled if the right word\n"
        "is likelier than all others that could stand there; chance is one of those at random.\n\n"
        "Before training the model writes:\n",
        kOrder, kOrder - 1);
    print_wrapped(tell_line());
    std::printf("\n%8s %11s | %8s %8s %8s | %s\n", "step", "characters", "model", "5-gram", "floor",
                "facts recalled: model, 5-gram, chance");
    std::fflush(stdout);
  }

  // ---- training ----

  // The time is what was asked for, so the number of steps follows from the speed, and is planned
  // anew as the speed changes.
  void train() {
    Progress progress("training", 15);
    double loss = std::nan("");
    int64_t looks = 0;
    while (!trainer_.done() && !interrupted()) {
      const nn::StepResult r = trainer_.step([&] { return lessons_.next(); });
      loss = std::isnan(loss) ? r.loss : 0.95 * loss + 0.05 * r.loss;
      if (kept_) kept_->step(r, clock_.seconds());
      if (r.step % kMeasuredSteps == 0) plan(r.step);
      if (r.step >= kMeasuredSteps &&
          clock_.seconds() >= budget_ * double(looks) / double(kLooks)) {
        ++looks;
        look(progress, r.step);
      }
      report(progress, r, loss);
    }
    progress.finish();
  }

  // Steps still to do: what fits into the rest of the time at the mean speed so far, looks
  // included.
  void plan(int64_t step) {
    const double each = clock_.seconds() / static_cast<double>(step);
    const auto left = static_cast<int64_t>((budget_ - clock_.seconds()) / each);
    trainer_.set_total_steps(step + std::max<int64_t>(left, 1));
  }

  void report(Progress& progress, const nn::StepResult& r, double loss) {
    const double seconds = clock_.seconds();
    char text[120];
    std::snprintf(text, sizeof text, "left %s  loss %.3f  %.0f tokens/s",
                  duration(std::max(0.0, budget_ - seconds)).c_str(), loss,
                  static_cast<double>(r.tokens) / seconds);
    std::string line = text;
    if (last_.ngram > 0) {
      std::snprintf(text, sizeof text, "  5-gram %.3f  floor %.3f", last_.ngram, last_.floor);
      line += text;
    }
    progress.report(r.step, trainer_.config.steps, line);
  }

  // One row of the table, and what the model writes now.
  void look(Progress& progress, int64_t step) {
    last_ = score(kQuick);
    progress.finish();
    keep_scores();
    print_scores(step);
    if (step > kMeasuredSteps) print_wrapped(tell_line());
    std::fflush(stdout);
  }

  void print_scores(int64_t step) const {
    std::printf("%8lld %11lld | %8.4f %8.4f %8.4f | %.0f %%, %.0f %%, %.0f %%\n",
                static_cast<long long>(step), static_cast<long long>(lessons_.ngram.counted()),
                last_.model, last_.ngram, last_.floor, 100 * last_.model_recall.right,
                100 * last_.ngram_recall.right, 100 * last_.model_recall.chance);
  }

  // ---- measuring ----

  // Losses on all stories; of so many of them the facts.
  Scores score(std::size_t asked_stories) {
    Scores s;
    s.floor = floor_;
    std::vector<nn::Batch> batches;
    for (auto at = held_out_.begin(); at != held_out_.end(); at += 20)
      batches.push_back(story_batch({at, at + 20}, tokenizer_));
    s.model = nn::evaluate(trainer_.model, batches);
    double sum = 0, characters = 0;
    for (const std::string& story : held_out_) {
      sum -= lessons_.ngram.log_prob("\n", std::string_view(story));
      characters += static_cast<double>(story.size());
    }
    std::vector<Recall> asked;
    for (std::size_t i = 0; i < asked_stories; ++i) {
      // One question a story on the way, all of them at the end.
      std::vector<Recall> here = recalls(held_out_[i]);
      if (asked_stories < kHeldOut && here.size() > 1) here.resize(1);
      asked.insert(asked.end(), here.begin(), here.end());
    }
    s.ngram = sum / characters;
    s.model_recall = recall_rate(asked, [&](const std::string& prefix, const std::string& next) {
      return model_score(trainer_.model, tokenizer_, prefix, next);
    });
    s.ngram_recall = recall_rate(asked, [&](const std::string& prefix, const std::string& next) {
      return lessons_.ngram.log_prob("\n" + prefix, std::string_view(next));
    });
    return s;
  }

  // Into the folder, with a story of random numbers of its own, the same each time.
  void keep_scores() {
    if (!kept_) return;
    kept_->losses(last_.model, last_.ngram, last_.floor);
    Generator rng{trainer_.config.seed, nn::stream_of("samples"), 0};
    kept_->sample(trainer_.steps(), tell(250, rng));
  }

  // A story as the model tells it now: up to its end mark, or `most` characters.
  std::string tell(int64_t most, Generator& rng) {
    std::string story;
    nn::generate(trainer_.model, tokenizer_.encode("\n"),
                 {.max_new_tokens = most, .temperature = kTemperature}, rng, [&](int64_t token) {
                   story += tokenizer_.decode(token);
                   return story.back() != '\n';
                 });
    return story;
  }

  // The same on one line of at least 40 characters: an untrained model ends where it pleases.
  std::string tell_line() {
    std::string line;
    while (line.size() < 40) line += tell(250, sample_rng_);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line;
  }

  void conclude() {
    std::printf("\nMeasuring on %zu stories that it has not read ...\n", kHeldOut);
    std::fflush(stdout);
    last_ = score(kHeldOut);
    print_scores(trainer_.steps());

    std::size_t accepted = 0, copies = 0;
    std::printf("\nThree stories of %zu that it writes now (temperature %.1f):\n", kSamples,
                kTemperature);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::string story = tell(trainer_.config.model.block_size, sample_rng_);
      accepted += accepts(story);
      copies += lessons_.stories.count(story);
      if (i < 3) print_wrapped(story);
    }
    const double excess = last_.model - last_.floor, other = last_.ngram - last_.floor;
    std::printf("\nLoss above the floor: model %.4f, 5-gram %.4f nats; ratio %.3f\n", excess, other,
                excess / other);
    std::printf("Facts recalled:       model %.0f %%, 5-gram %.0f %%, chance %.0f %%, of %lld\n",
                100 * last_.model_recall.right, 100 * last_.ngram_recall.right,
                100 * last_.model_recall.chance, static_cast<long long>(last_.model_recall.asked));
    std::printf(
        "Right by grammar:     %zu of %zu stories, to the last character; copied from training: "
        "%zu\n",
        accepted, kSamples, copies);
    const std::string more = std::to_string(std::lround(std::ceil(3 * budget_ / 60)));
    if (interrupted())
      std::printf("Training was stopped early, at step %lld.\n",
                  static_cast<long long>(trainer_.steps()));
    else if (2 * accepted < kSamples)
      std::printf("It has read too little on this machine; more time helps: %s\n",
                  nn::shell_command({"demo", "--minutes", more}).c_str());
  }

  double budget_;  // seconds of training
  Stopwatch clock_;
  nn::CharTokenizer tokenizer_;
  nn::Trainer trainer_;
  Lessons lessons_;
  std::vector<std::string> held_out_;
  Generator sample_rng_{trainer_.config.seed, kSampleStream, 0};
  double floor_ = 0;
  Scores last_;
  std::optional<DemoRun> kept_;
};

}  // namespace

int demo(const DemoArguments& arguments) { return Demo(arguments).run(); }

}  // namespace pellucid::demos
