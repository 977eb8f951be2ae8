#include "tutorials/demos/sample.h"

#include <cstdio>
#include <iostream>

#include "nn/generate.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/pretrained.h"
#include "tutorials/demos/progress.h"

namespace pellucid::demos {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

class Writer {
 public:
  explicit Writer(const SampleArguments& arguments)
      : a_(arguments),
        trained_(load_any_model(a_.model, a_.tokenizer)),
        end_(trained_.end_of_text()) {}

  // Prints the prompt and what the model adds.
  void write(const std::optional<std::string>& wanted) {
    const std::string prompt = wanted.value_or(end_ ? "" : "\n");
    std::vector<int64_t> ids;
    if (end_) ids.push_back(*end_);
    const std::vector<int64_t> more = encode(prompt);
    ids.insert(ids.end(), more.begin(), more.end());
    CHECK_ARG(!ids.empty(), "sample: the prompt is empty; give at least one character");

    print(prompt);
    nn::TextStream stream(trained_.tokenizer, prompt.empty());
    nn::generate(trained_.model, ids,
                 {.max_new_tokens = a_.tokens,
                  .temperature = a_.temperature,
                  .top_k = a_.top_k,
                  .top_p = a_.top_p},
                 rng_, [&](int64_t token) {
                   if (token == end_) return false;
                   print(stream.push(token));
                   return !interrupted() && std::ferror(stdout) == 0;
                 });
    print(stream.rest() + "\n");
  }

  // A prompt a line until the input ends; one that cannot be encoded is told, and the next is read.
  int converse() {
    const bool terminal = is_terminal(0);
    int code = 0;
    while (!interrupted() && std::ferror(stdout) == 0) {
      if (terminal) print("> ");
      std::string line;
      if (!std::getline(std::cin, line)) break;
      try {
        write(line.empty() ? std::nullopt : std::optional(line));
      } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "pellucid: %s\n", error.what());
        code = 1;
      }
    }
    if (terminal) print("\n");
    return code;
  }

 private:
  std::vector<int64_t> encode(const std::string& prompt) const {
    try {
      return trained_.tokenizer.encode(prompt);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string("the prompt: ") + error.what() +
                                  "; use characters of that text only");
    }
  }

  const SampleArguments& a_;
  nn::TrainedModel trained_;
  std::optional<int64_t> end_;
  Generator rng_{a_.seed, 0, 0};
};

}  // namespace

int sample(const SampleArguments& a) {
  Writer writer(a);
  InterruptGuard guard;
  int code = 0;
  if (a.interactive) {
    code = writer.converse();
  } else {
    for (int64_t i = 0; i < a.samples && !interrupted() && std::ferror(stdout) == 0; ++i)
      writer.write(a.prompt);
  }
  return interrupted() ? interrupted_exit_code() : code;
}

}  // namespace pellucid::demos
