#include "tutorials/demos/tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "nn/tokenizer_split.h"
#include "tutorials/demos/interrupt.h"
#include "tutorials/demos/json_lines.h"
#include "tutorials/demos/progress.h"

namespace pellucid::demos {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& path, int64_t line, const std::string& why) {
  throw std::runtime_error(path + ":" + std::to_string(line) + ": " + why);
}

std::string text_of(const json& j) {
  CHECK_ARG(j.is_string() && j != "", "wanted a text that is not empty; got ", j.dump());
  return j;
}

std::vector<std::string> texts_of(const json& j) {
  std::vector<std::string> texts;
  for (const json& text : j) texts.push_back(text_of(text));
  return texts;
}

// Whether j is an item of the kind that has these keys, of which `list`, if any, is an array. A key
// that it has beside them would change nothing, and nobody would know: it is refused.
bool is_kind(const json& j, const std::vector<std::string>& keys, const std::string& list = {}) {
  const auto has = [&](const std::string& key) { return j.contains(key); };
  if (!std::all_of(keys.begin(), keys.end(), has)) return false;
  if (!list.empty() && !j[list].is_array()) return false;
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + key;
  for (const auto& [key, value] : j.items())
    CHECK_ARG(std::count(keys.begin(), keys.end(), key) == 1, "unknown key \"", key,
              "\"; an item of this kind has: ", names);
  return true;
}

TaskItem read_item(const json& j, TaskKind& kind) {
  TaskItem item;
  if (is_kind(j, {"query", "choices", "gold"}, "choices")) {
    kind = TaskKind::kChoices;
    item.continuations = texts_of(j["choices"]);
    item.contexts.assign(item.continuations.size(), text_of(j["query"]));
  } else if (is_kind(j, {"context_options", "continuation", "gold"}, "context_options")) {
    kind = TaskKind::kContexts;
    item.contexts = texts_of(j["context_options"]);
    item.continuations.assign(item.contexts.size(), text_of(j["continuation"]));
  } else if (is_kind(j, {"context", "continuation"})) {
    kind = TaskKind::kGreedy;
    item.contexts = {text_of(j["context"])}, item.continuations = {text_of(j["continuation"])};
    return item;
  } else {
    fail("wanted {\"query\", \"choices\", \"gold\"}, {\"context_options\", \"continuation\", ",
         "\"gold\"} or {\"context\", \"continuation\"}");
  }
  const json& gold = j["gold"];
  CHECK_ARG(item.contexts.size() >= 2, "wanted at least 2 options; got ", item.contexts.size());
  CHECK_ARG(gold.is_number_integer() && gold >= 0 && gold < item.contexts.size(),
            "gold must be a whole number from 0 to ", item.contexts.size() - 1, "; got ",
            gold.dump());
  item.gold = gold;
  return item;
}

// Tokens to score: those from `from` on, each by what is before it.
struct Request {
  std::vector<int64_t> ids;
  std::size_t from;
  bool cut;
};

Request make_request(const nn::TrainedModel& trained, std::string context,
                     const std::string& continuation) {
  const std::size_t end = context.find_last_not_of(" \t\n\r\f\v") + 1;  // 0 if there is none
  const std::string rest = context.substr(end) + " " + continuation;
  context.resize(end);
  Request request{{}, 0, false};
  if (const auto first = trained.end_of_text()) request.ids.push_back(*first);
  const std::vector<int64_t> all = trained.tokenizer.encode(context + rest);
  request.from = request.ids.size() + trained.tokenizer.encode(context).size();
  request.ids.insert(request.ids.end(), all.begin(), all.end());
  CHECK_ARG(request.from >= 1, "the context is empty, and the model has no token to begin with");

  // The last token is a target only.
  const auto most = static_cast<std::size_t>(trained.config.model.block_size) + 1;
  if (request.ids.size() > most) {
    const std::size_t extra = request.ids.size() - most;
    CHECK_ARG(request.from > extra, "the continuation has ", request.ids.size() - request.from,
              " tokens, more than the model's context of ", most - 1);
    request.ids.erase(request.ids.begin(),
                      request.ids.begin() + static_cast<std::ptrdiff_t>(extra));
    request.from -= extra, request.cut = true;
  }
  return request;
}

// log p(id) by a row of logits, and whether no other is likelier, of equals a lower one.
std::pair<double, bool> log_prob(const double* logits, int64_t V, int64_t id) {
  const double* best = std::max_element(logits, logits + V);
  double sum = 0;
  for (int64_t v = 0; v < V; ++v) sum += std::exp(logits[v] - *best);
  return {logits[id] - *best - std::log(sum), best - logits == id};
}

// Scores the requests of one batch. What fills up shorter rows stands behind them, where a causal
// model does not look.
void score_batch(nn::GPT& model, const std::vector<Request>& requests,
                 const std::vector<std::size_t>& batch, std::vector<Score>& scores) {
  std::size_t T = 0;
  for (const std::size_t r : batch) T = std::max(T, requests[r].ids.size() - 1);
  std::vector<int64_t> ids(batch.size() * T, 0);
  for (std::size_t b = 0; b < batch.size(); ++b) {
    const Request& r = requests[batch[b]];
    std::copy(r.ids.begin(), r.ids.end() - 1, ids.begin() + static_cast<std::ptrdiff_t>(b * T));
  }
  const std::vector<double> logits =
      model.forward(from_vector(ids, {std::ssize(batch), static_cast<int64_t>(T)}))
          .to_vector();  // (B, T, V)
  const auto V = static_cast<std::size_t>(model.config.vocab_size);
  for (std::size_t b = 0; b < batch.size(); ++b) {
    const Request& r = requests[batch[b]];
    Score& s = scores[batch[b]] = {0, true, r.cut};
    for (std::size_t i = r.from; i < r.ids.size(); ++i) {
      const double* row = logits.data() + (b * T + i - 1) * V;
      const auto [log_p, likeliest] = log_prob(row, static_cast<int64_t>(V), r.ids[i]);
      s.log_likelihood += log_p;
      s.greedy &= likeliest;
    }
  }
}

int64_t characters(const std::string& text) {
  int64_t n = 0;
  for (std::size_t at = 0; at < text.size(); at += nn::character_at(text, at).length) ++n;
  return n;
}

}  // namespace

Task read_task(const std::string& path) {
  Task task{path, TaskKind::kChoices, {}};
  each_json_line(path, CutLine::kRefuse, [&](const json& j, int64_t line) {
    TaskKind kind;
    task.items.push_back(read_item(j, kind));
    task.items.back().line = line;
    CHECK_ARG(task.items.size() == 1 || kind == task.kind, "is of another shape than the first");
    task.kind = kind;
  });
  if (task.items.empty())
    throw std::runtime_error(path + ": holds no items; give a file of JSON lines");
  return task;
}

std::vector<Score> score(nn::TrainedModel& trained, const Task& task,
                         const std::function<bool(int64_t done, int64_t total)>& on_batch) {
  std::vector<Request> requests;
  for (const TaskItem& item : task.items)
    for (std::size_t i = 0; i < item.contexts.size(); ++i) try {
        requests.push_back(make_request(trained, item.contexts[i], item.continuations[i]));
      } catch (const std::invalid_argument& error) {
        refuse(task.path, item.line,
               std::string(error.what()) + "; take the line out, or another model");
      }
  // Long ones first, so that a batch's rows are of like length; as many as keep its logits small.
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return requests[a].ids.size() > requests[b].ids.size();
  });
  constexpr std::size_t kMostLogits = std::size_t{1} << 23;
  NoGradGuard no_grad;
  trained.model.eval();
  std::vector<Score> scores(requests.size());
  for (std::size_t at = 0, rows; at < order.size(); at += rows) {
    const std::size_t each =
        requests[order[at]].ids.size() * static_cast<std::size_t>(trained.config.model.vocab_size);
    rows = std::min(
        {order.size() - at, std::max<std::size_t>(1, kMostLogits / each), std::size_t{64}});
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(at);
    score_batch(trained.model, requests, {from, from + static_cast<std::ptrdiff_t>(rows)}, scores);
    if (on_batch && !on_batch(static_cast<int64_t>(at + rows), std::ssize(order))) return {};
  }
  return scores;
}

TaskResult judge(const Task& task, const std::vector<Score>& scores) {
  TaskResult result{.items = std::ssize(task.items)};
  const Score* of_item = scores.data();
  for (const TaskItem& item : task.items) {
    int64_t best = 0, best_norm = 0;
    const auto norm = [&](int64_t i) {
      return of_item[i].log_likelihood /
             static_cast<double>(characters(item.continuations[static_cast<std::size_t>(i)]));
    };
    bool cut = false;
    for (int64_t i = 0; i < std::ssize(item.contexts); ++i) {
      if (of_item[i].log_likelihood > of_item[best].log_likelihood) best = i;
      if (norm(i) > norm(best_norm)) best_norm = i;
      cut |= of_item[i].cut;
    }
    const bool right = task.kind == TaskKind::kGreedy ? of_item[0].greedy : best == item.gold;
    const auto share = 1 / static_cast<double>(result.items);
    result.acc += right * share;
    result.acc_norm += (best_norm == item.gold) * share;
    result.log_likelihood += of_item[item.gold].log_likelihood * share;
    result.cut += cut;
    of_item += item.contexts.size();
  }
  return result;
}

bool evaluate_task(nn::TrainedModel& trained, const Task& task) {
  Progress progress(task.path);
  const std::vector<Score> scores = score(trained, task, [&](int64_t done, int64_t total) {
    if (progress.seconds() > 2) progress.report(done, total);
    return !interrupted();
  });
  progress.finish();
  if (scores.empty()) return false;
  const TaskResult r = judge(task, scores);
  const auto print = [&](const char* name, double p) {
    std::printf("%s %.4f +- %.4f, ", name, p,
                std::sqrt(p * (1 - p) / static_cast<double>(r.items)));
  };
  std::printf("%s: ", task.path.c_str());
  print(task.kind == TaskKind::kGreedy ? "greedy match" : "acc", r.acc);
  if (task.kind == TaskKind::kChoices) print("acc_norm", r.acc_norm);
  std::printf("log-likelihood %.3f, %lld items", r.log_likelihood, static_cast<long long>(r.items));
  if (r.cut > 0)
    std::printf("; %lld of them longer than the context of %lld, cut from the left",
                static_cast<long long>(r.cut),
                static_cast<long long>(trained.config.model.block_size));
  std::printf("\n");
  std::fflush(stdout);
  return true;
}

}  // namespace pellucid::demos
