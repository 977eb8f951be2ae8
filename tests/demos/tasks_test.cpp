// Tasks by log-likelihood, against a scorer that runs the model once for each token, in double.
#include "tutorials/demos/tasks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "error_of.h"
#include "nn/tiny_gpt.h"
#include "program.h"

using namespace pellucid;
using namespace pellucid::demos;

namespace {

nn::TrainedModel model_with(const nn::Tokenizer& tokenizer, bool documents, int64_t T) {
  nn::TrainConfig config;
  config.model = nn::tiny_configs()["xsa, rms_norm, rope"];
  config.model.vocab_size = tokenizer.vocab_size(), config.model.block_size = T;
  config.model.dropout = 0, config.steps = 1;
  nn::DataSource data{.paths = {"x"}, .documents = documents ? "lines" : "text"};
  return {config, data, tokenizer, nn::tiny_gpt(config.model, 7)};
}

// ln p of the continuation's tokens, one forward pass a token over what is before it.
Score naive(nn::TrainedModel& trained, std::string context, std::string continuation) {
  continuation = " " + continuation;
  while (!context.empty() && std::isspace(static_cast<unsigned char>(context.back()))) {
    continuation = context.back() + continuation;
    context.pop_back();
  }
  std::vector<int64_t> ids;
  if (trained.end_of_text()) ids.push_back(*trained.end_of_text());
  const std::size_t first = ids.size() + trained.tokenizer.encode(context).size();
  for (const int64_t id : trained.tokenizer.encode(context + continuation)) ids.push_back(id);
  Score score{0, true, false};
  NoGradGuard no_grad;
  const auto T = static_cast<std::size_t>(trained.config.model.block_size);
  // The window is that of the whole text: it ends at the last token but one.
  const std::size_t begin = ids.size() > T + 1 ? ids.size() - T - 1 : 0;
  score.cut = begin > 0;
  for (std::size_t i = first; i < ids.size(); ++i) {
    const std::vector<int64_t> before(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                      ids.begin() + static_cast<std::ptrdiff_t>(i));
    const int64_t n = std::ssize(before);
    const std::vector<double> all = trained.model.forward(from_vector(before, {1, n})).to_vector();
    const std::vector<double> logits(all.end() - trained.config.model.vocab_size, all.end());
    double sum = 0;
    for (const double x : logits) sum += std::exp(x);
    score.log_likelihood += logits[static_cast<std::size_t>(ids[i])] - std::log(sum);
    score.greedy &= std::max_element(logits.begin(), logits.end()) - logits.begin() == ids[i];
  }
  return score;
}

const char* kChoices =
    "{\"query\": \"the cat sat on \", \"choices\": [\"a mat\", \"the big red "
    "ball\"], \"gold\": 1}\n"
    "\n"
    "{\"query\": \"Question: caf\xc3\xa9?\\n\", \"choices\": [\"yes\", "
    "\"\xc3\xa9\xc3\xa9\", \"no\"], \"gold\": 0}\n";
const char* kContexts =
    "{\"context_options\": [\"the cat was\", \"the dog "
    "that I saw was\"], \"continuation\": \"here\", \"gold\": 0}\n";
const char* kGreedy = "{\"context\": \"the end of\", \"continuation\": \"it\"}";

}  // namespace

TEST_CASE("scores are those of one pass a token; shares are of items") {
  const TemporaryFolder folder;
  const std::string path = folder.file("task.jsonl");
  const nn::Tokenizer bpe = nn::BpeTokenizer::train({"the cat the cat sat sat on on the mat"}, 264);
  for (const nn::Tokenizer& tokenizer : {nn::Tokenizer::bytes(true), bpe})
    for (const bool documents : {false, true})
      for (const int64_t T : {24, 64})
        for (const char* text : {kChoices, kContexts, kGreedy}) {
          CAPTURE(T);
          CAPTURE(text);
          spit(path, text);
          nn::TrainedModel trained = model_with(tokenizer, documents, T);
          const Task task = read_task(path);
          const std::vector<Score> scores = score(trained, task);
          std::size_t i = 0;
          double acc = 0, acc_norm = 0;
          for (const TaskItem& item : task.items) {
            std::vector<double> sums, means;
            for (std::size_t c = 0; c < item.contexts.size(); ++c, ++i) {
              const Score wanted = naive(trained, item.contexts[c], item.continuations[c]);
              // At most 20 terms near 5, each from float64 sums of fewer than 300 in another order.
              CHECK(std::abs(scores[i].log_likelihood - wanted.log_likelihood) <=
                    100 * 300 * 0x1p-53);
              CHECK(scores[i].greedy == wanted.greedy);
              CHECK(scores[i].cut == wanted.cut);
              sums.push_back(wanted.log_likelihood);
              int64_t n = 0;
              for (const char byte : item.continuations[c]) n += (byte & 0xc0) != 0x80;
              means.push_back(wanted.log_likelihood / static_cast<double>(n));
            }
            const auto best = [](const std::vector<double>& x) {
              return std::max_element(x.begin(), x.end()) - x.begin();
            };
            acc += task.kind == TaskKind::kGreedy ? scores[i - 1].greedy : best(sums) == item.gold;
            acc_norm += best(means) == item.gold;
          }
          REQUIRE(i == scores.size());
          const TaskResult result = judge(task, scores);
          const double n = static_cast<double>(task.items.size());
          CHECK(result.items == std::ssize(task.items));
          CHECK(result.acc == doctest::Approx(acc / n));
          if (task.kind != TaskKind::kGreedy)
            CHECK(result.acc_norm == doctest::Approx(acc_norm / n));
        }
}

TEST_CASE("lines that are no items: the file, the line, the fault, the repair") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.jsonl");
  const auto fault = [&](const std::string& text) {
    spit(path, text);
    const std::string error = error_of([&] { read_task(path); });
    CHECK(error.rfind(path + ":", 0) == 0);
    return error.substr(path.size());
  };
  const std::string end = "; mend the line or take it out", good = kGreedy;
  CHECK(fault("") == ": holds no items; give a file of JSON lines");
  CHECK(fault(good + "\n{\n") == ":2: this is not JSON" + end);
  CHECK(fault("3") == ":1: wanted a JSON object; got 3" + end);
  CHECK(fault(R"({"choices": 3})") ==
        ":1: wanted {\"query\", \"choices\", \"gold\"}, {\"context_options\", \"continuation\", "
        "\"gold\"} or {\"context\", \"continuation\"}" +
            end);
  CHECK(fault(R"({"query": "a", "choices": ["b", "c"], "gold": 2})") ==
        ":1: gold must be a whole number from 0 to 1; got 2" + end);
  CHECK(fault(R"({"query": "a", "choices": ["b", "c"], "gold": "0"})") ==
        ":1: gold must be a whole number from 0 to 1; got \"0\"" + end);
  CHECK(fault(R"({"query": "a", "choices": ["b"], "gold": 0})") ==
        ":1: wanted at least 2 options; got 1" + end);
  CHECK(fault(R"({"query": "a", "choices": ["b", ""], "gold": 0})") ==
        ":1: wanted a text that is not empty; got \"\"" + end);
  for (const std::string odd : {"3", "[]", R"(["a","z"])"}) {
    const std::string wanted = ":1: wanted a text that is not empty; got " + odd + end;
    CHECK(fault(R"({"choices": ["b", "c"], "gold": 0, "query": )" + odd + "}") == wanted);
    CHECK(fault(R"({"context_options": ["b", "c"], "gold": 0, "continuation": )" + odd + "}") ==
          wanted);
    CHECK(fault(R"({"context": "b", "continuation": )" + odd + "}") == wanted);
    CHECK(fault(R"({"continuation": "b", "context": )" + odd + "}") == wanted);
  }
  CHECK(fault(good + "\n" + kContexts) == ":2: is of another shape than the first" + end);
  CHECK(error_of([&] { read_task(folder.file("none")); }).find("none: ") != std::string::npos);
}

TEST_CASE("what a model cannot score is told by its line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.jsonl");
  spit(path, std::string("\n") + kGreedy);
  nn::TrainedModel chars = model_with(nn::CharTokenizer("the nd"), false, 16);
  CHECK(error_of([&] { score(chars, read_task(path)); }) ==
        path +
            ":2: encode: 'o' at position 8 is not among the 6 characters that the model was "
            "trained on; take the line out, or another model");
  nn::TrainedModel tiny = model_with(nn::Tokenizer::bytes(), false, 2);
  CHECK(error_of([&] { score(tiny, read_task(path)); }) ==
        path +
            ":2: the continuation has 3 tokens, more than the model's context of 2; take the "
            "line out, or another model");
}

TEST_CASE("eval --tasks prints a line a file, and refuses before it measures") {
  const TemporaryFolder folder;
  spit(folder.file("text.txt"), sentences(4000));
  RunOptions here{.folder = folder.path.string()};
  REQUIRE(run({"train", "--data", "text.txt", "--preset", "tiny", "--out", "run", "--steps", "5",
               "--tokenizer", "byte"},
              here)
              .code == 0);
  spit(folder.file("choices.jsonl"), kChoices);
  spit(folder.file("greedy.jsonl"),
       "{\"context\": \"" + std::string(60, 'x') + "\", \"continuation\": \"it\"}");
  const Ended ended =
      run({"eval", "--model", "run", "--tasks", "choices.jsonl", "greedy.jsonl"}, here);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("choices.jsonl: acc ") == 0);
  CHECK(ended.out.find(", acc_norm ") != std::string::npos);
  CHECK(ended.out.find(", 2 items\ngreedy.jsonl: greedy match 0.0000 +- 0.0000, ") !=
        std::string::npos);
  CHECK(
      ended.out.ends_with("1 items; 1 of them longer than the context of 32, cut from the left\n"));
  spit(folder.file("bad.jsonl"), "{}");
  const Ended bad =
      run({"eval", "--model", "run", "--data", "text.txt", "--tasks", "bad.jsonl"}, here);
  CHECK(bad.code == 1);
  CHECK(bad.out == "");
  CHECK(bad.err.find("pellucid: bad.jsonl:1: wanted {") == 0);
}
