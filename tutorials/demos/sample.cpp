#include "tutorials/demos/sample.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nn/checkpoint.h"
#include "nn/generate.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/progress.h"

namespace pellucid::demos {

static std::vector<int64_t> encode(const std::string& what, const nn::Tokenizer& tokenizer,
                                   const std::string& text) {
  try {
    return tokenizer.encode(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + ": " + error.what() + "; use characters of that text only");
  }
}

int sample(const SampleArguments& a) {
  CHECK_ARG(!a.prompt.empty(), "sample: the prompt is empty; give at least one character");
  nn::TrainedModel trained = nn::load_model(a.model);
  const std::vector<int64_t> prompt = encode("the prompt", trained.tokenizer, a.prompt);

  std::fwrite(a.prompt.data(), 1, a.prompt.size(), stdout);
  InterruptGuard guard;
  Generator rng{a.seed, 0, 0};
  nn::generate(trained.model, prompt,
               {.max_new_tokens = a.tokens, .temperature = a.temperature, .top_k = a.top_k}, rng,
               [&](int64_t token) {
                 const std::string text = trained.tokenizer.token(token);
                 std::fwrite(text.data(), 1, text.size(), stdout);
                 std::fflush(stdout);
                 return !interrupted() && std::ferror(stdout) == 0;
               });
  std::printf("\n");
  return interrupted() ? interrupted_exit_code() : 0;
}

// Prints "NAME: loss ... " for one part of the text; false if it was interrupted.
static bool evaluate_part(const char* name, nn::TrainedModel& trained,
                          const std::vector<int64_t>& tokens) {
  const int64_t B = trained.config.batch_size, T = trained.config.model.block_size;
  const int64_t windows = (static_cast<int64_t>(tokens.size()) - 2) / T + 1;
  Progress progress(std::string("eval, ") + name + ", window");
  const double loss =
      nn::evaluate(trained.model, nn::validation_batches(tokens, B, T), [&](int64_t done, int64_t) {
        if (progress.seconds() > 2) progress.report(std::min(done * B, windows), windows);
        return !interrupted();
      });
  progress.finish();
  if (std::isnan(loss) && interrupted()) return false;
  std::printf("%-10s loss %.4f nats/char, %.4f bits/char, %lld characters\n", name, loss,
              loss / std::log(2.0), static_cast<long long>(tokens.size()));
  return true;
}

int evaluate_file(const std::string& model, const std::string& data) {
  nn::TrainedModel trained = nn::load_model(model);
  const std::string text = nn::read_text(data);
  CHECK_ARG(text.size() >= 2, data, ": has ", text.size(),
            " character; at least 2 are needed to predict one from another");
  const std::vector<int64_t> tokens = encode(data, trained.tokenizer, text);

  InterruptGuard guard;
  const auto tenth = static_cast<std::ptrdiff_t>(tokens.size() / 10);
  if (tenth >= 2 && !evaluate_part("last 10 %", trained, {tokens.end() - tenth, tokens.end()}))
    return interrupted_exit_code();
  return evaluate_part("whole file", trained, tokens) ? 0 : interrupted_exit_code();
}

}  // namespace pellucid::demos
