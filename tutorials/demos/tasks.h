// Tasks of JSON lines, answered by log-likelihood. A line is one of
//
//   {"query", "choices", "gold"}                    which choice follows the
//   query
//   {"context_options", "continuation", "gold"}     which context the
//   continuation follows
//   {"context", "continuation"}                     whether the continuation is
//   the likeliest text
//
// The score of a continuation is sum log p over its tokens, those of encode(context + " " +
// continuation) past the length of encode(context); white space at the context's end belongs to the
// continuation. acc: the gold choice has the best score; acc_norm: the best score divided by the
// characters of its choice; greedy: each token is the likeliest. Of equals the first. The standard
// error of a share p of n is sqrt(p (1 - p) / n). Source: the rules of EleutherAI's
// lm-evaluation-harness.
#pragma once
#include <string>
#include <vector>

#include "nn/checkpoint.h"

namespace pellucid::demos {

struct TaskItem {
  int64_t line;  // in its file
  std::vector<std::string> contexts,
      continuations;  // one pair, or one for each option
  int64_t gold = 0;
};
enum class TaskKind { kChoices, kContexts, kGreedy };
struct Task {
  std::string path;
  TaskKind kind;
  std::vector<TaskItem> items;
};
// Throws std::runtime_error with the file, the line, the fault and the repair.
Task read_task(const std::string& path);

struct Score {
  double log_likelihood;
  bool greedy;  // whether every token was the likeliest, of equals the lowest id
  bool cut;     // whether the context was too long, and lost its beginning
};
// One score for each of an item's pairs, for all items. on_batch(done, total) follows each batch;
// returning false breaks off, and then fewer scores come back.
std::vector<Score> score(nn::TrainedModel& trained, const Task& task,
                         const std::function<bool(int64_t done, int64_t total)>& on_batch = {});

struct TaskResult {
  int64_t items = 0, cut = 0;
  double acc = 0, acc_norm = 0;  // for kGreedy, acc is the share of greedy
                                 // matches, acc_norm none
  double log_likelihood = 0;     // mean over items of the gold continuation's
};
TaskResult judge(const Task& task, const std::vector<Score>& scores);

// Scores the task and prints its result; false if it was interrupted.
bool evaluate_task(nn::TrainedModel& trained, const Task& task);

}  // namespace pellucid::demos
