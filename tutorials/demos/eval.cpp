#include "tutorials/demos/eval.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nn/checkpoint.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/ngram.h"
#include "tutorials/demos/pretrained.h"
#include "tutorials/demos/progress.h"
#include "tutorials/demos/tasks.h"

namespace pellucid::demos {
namespace {

// Prints "NAME: loss ... " for one part of the data; false if it was interrupted.
bool evaluate_part(const char* name, nn::TrainedModel& trained, const std::vector<int64_t>& tokens,
                   std::optional<int64_t> end) {
  const std::vector<nn::Batch> batches = nn::validation_batches(
      tokens, trained.config.batch_size, trained.config.model.block_size, end);
  Progress progress(std::string("eval, ") + name + ", batch");
  const double loss = nn::evaluate(trained.model, batches, [&](int64_t done, int64_t total) {
    if (progress.seconds() > 2) progress.report(done, total);
    return !interrupted();
  });
  progress.finish();
  if (std::isnan(loss) && interrupted()) return false;
  std::printf("%-10s loss %.4f nats/token, %.4f bits/byte, %zu tokens\n", name, loss,
              loss / std::log(2.0) / nn::bytes_per_token(tokens, trained.tokenizer), tokens.size());
  std::fflush(stdout);
  return true;
}

// As in training, where that is known and the command says nothing else.
nn::DataSource source_for(const EvalArguments& a, const nn::DataSource& trained) {
  nn::DataSource source = a.data.source();
  if (a.tokenizer.empty() && a.data.documents.empty() && a.data.separator.empty())
    source.documents = trained.documents, source.separator = trained.separator;
  return source;
}

template <class F>
auto naming(const std::string& path, const F& f) {
  try {
    return f();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what() + "; use characters of that text only");
  }
}

// `begin`: what stands before a running text.
bool evaluate_data(nn::TrainedModel& trained, const nn::Corpus& corpus, const std::string& path,
                   std::optional<int64_t> begin) {
  if (corpus.source.has_documents()) {
    CHECK_ARG(trained.tokenizer.end_of_text(), path, ": the model knows no end of a document; ",
              "measure it by --documents text");
    const nn::Tokens tokens = naming(path, [&] { return nn::encode(corpus, trained.tokenizer); });
    std::vector<int64_t> all = tokens.training;
    all.insert(all.end(), tokens.validation.begin() + 1, tokens.validation.end());
    const auto end = trained.tokenizer.end_of_text();
    return evaluate_part("held out", trained, tokens.validation, end) &&
           evaluate_part("all", trained, all, end);
  }
  const auto encode = [&](std::string_view text) {
    std::vector<int64_t> ids = trained.tokenizer.encode(text);
    if (begin) ids.insert(ids.begin(), *begin);
    return ids;
  };
  const std::vector<int64_t> all = naming(path, [&] { return encode(corpus.files[0]); });
  CHECK_ARG(all.size() >= 2, path, ": has ", all.size(),
            " token; at least 2 are needed to predict one from another");
  const std::vector<int64_t> last = encode(corpus.validation[0]);
  return (last.size() < 2 || evaluate_part("last 10 %", trained, last, {})) &&
         evaluate_part("whole text", trained, all, {});
}

// Printed per token of the model's, so that both stand in the same units.
void print_ngrams(const nn::Corpus& corpus, const nn::Tokenizer& tokenizer) {
  const double per_token = nn::bytes_per_token(nn::encode(corpus, tokenizer).validation, tokenizer);
  std::printf("n-grams of bytes that count the rest, on the same held-out text:\n");
  for (int n = 1; n <= 5; ++n) {
    for (const Smoothing smoothing : {Smoothing::kAddTenth, Smoothing::kWittenBell}) {
      const double each = ngram_loss(corpus, n, smoothing);
      if (smoothing == Smoothing::kAddTenth) {
        std::printf("n = %d      add-0.1 %.4f nats/token, %.4f bits/byte", n, each * per_token,
                    each / std::log(2.0));
      } else {
        std::printf("; Witten-Bell %.4f nats/token, %.4f bits/byte\n", each * per_token,
                    each / std::log(2.0));
      }
    }
  }
}

}  // namespace

double ngram_loss(const nn::Corpus& corpus, int n, Smoothing smoothing) {
  const bool documents = corpus.source.has_documents();
  const std::string end(documents ? 1 : 0, '\0');
  bool seen[256] = {documents};
  double bytes = 0, nats = 0;
  for (const auto& texts : {corpus.training, corpus.validation})
    for (const std::string_view text : texts)
      for (const char c : text) seen[static_cast<unsigned char>(c)] = true;
  std::string alphabet;
  for (int b = 0; b < 256; ++b)
    if (seen[b]) alphabet.push_back(static_cast<char>(b));

  NGram ngram(n, alphabet, smoothing);
  for (const std::string_view text : corpus.training) {
    if (documents) ngram.end_stream(end);
    ngram.count(std::string(text) + end);
  }
  for (const std::string_view text : corpus.validation) {
    nats -= ngram.log_prob(end, std::string(text) + end);
    bytes += static_cast<double>(text.size());
  }
  return nats / bytes;
}

int evaluate(const EvalArguments& a) {
  nn::TrainedModel trained = load_any_model(a.model, a.tokenizer);
  std::vector<Task> tasks;
  for (const std::string& path : a.tasks) tasks.push_back(read_task(path));
  InterruptGuard guard;
  if (!a.data.paths.empty()) {
    const nn::Corpus corpus = nn::read_corpus(source_for(a, trained.data));
    // Others' models were trained with the end-of-text token before every text.
    const auto begin = a.tokenizer.empty() ? std::nullopt : trained.end_of_text();
    if (!evaluate_data(trained, corpus, a.data.paths[0], begin)) return interrupted_exit_code();
    if (a.ngram) print_ngrams(corpus, trained.tokenizer);
  }
  for (const Task& task : tasks)
    if (!evaluate_task(trained, task)) return interrupted_exit_code();
  return 0;
}

}  // namespace pellucid::demos
