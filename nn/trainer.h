// The training loop's step, its validation, and everything that a checkpoint must hold.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "nn/data.h"
#include "nn/gpt.h"
#include "nn/optim.h"

namespace pellucid::nn {

struct TrainConfig {
  GPTConfig model;
  int64_t batch_size = 16;   // B: windows of block_size tokens in one pass
  int64_t accumulation = 1;  // passes in one step
  int64_t steps = 0;         // of the whole run; 0: not known yet, see minutes
  double minutes = 0;        // 0: steps counts; else steps follows from the first steps' time
  std::string optimizer = "adamw";  // or "adam", "sgd", "muon"
  std::string schedule = "cosine";  // or "constant", "wsd": nn/optim.h
  int64_t warmup = 100;             // steps until the learning rate is at its peak
  double lr = 1e-3;                 // the peak
  double min_lr = 1e-4;             // at the last step
  double decay = 0.2;               // wsd: the share of the steps in which the rate falls
  double weight_decay = 0.1;        // of matrices
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;  // of adam and adamw, also inside muon
  double momentum = 0.95;                        // of sgd and muon
  bool nesterov = true;                          // sgd; muon always looks ahead
  double muon_lr = 0.02;  // muon: the peak for the blocks' matrices, lr being that of the rest
  double clip = 1;        // largest norm of all gradients together
  int64_t eval_interval = 250;  // steps between validations, which also save the run
  uint64_t seed = 1;

  void validate() const;  // throws with the field's name, its value and what is allowed
  int64_t tokens_per_step() const { return batch_size * accumulation * model.block_size; }
};
void to_json(nlohmann::json& j, const TrainConfig& config);
void from_json(const nlohmann::json& j, TrainConfig& config);  // refuses unknown keys; validates

struct StepResult {
  int64_t step = 0;    // steps done, this one included
  int64_t tokens = 0;  // tokens read, all steps
  double loss = 0;     // mean over the step's targets, nats a token, before the update
  double lr = 0, grad_norm = 0;
};

class Trainer {
 public:
  explicit Trainer(const TrainConfig& train_config);

  // One update from config.accumulation batches. The loss is the mean over all their targets,
  // however many each batch counts. A loss or gradient that is not finite throws NotFinite, naming
  // the step and the first bad parameter, and leaves parameters, optimizer and random numbers as
  // they were before the step; so does any other error, as a std::runtime_error.
  StepResult step(const std::function<Batch()>& next_batch);

  // Fixes the number of steps, once: the learning rate's cosine needs it. Until then it warms up,
  // then stays at its peak.
  void set_total_steps(int64_t steps) { config.steps = steps; }
  bool done() const { return config.steps > 0 && steps_ >= config.steps; }
  int64_t steps() const { return steps_; }

  // Parameters "model.NAME", optimizer "optimizer.NAME.exp_avg" ...: the tensors themselves.
  StateDict state_dict();
  nlohmann::json progress() const;  // step, tokens, total steps, dropout's generator
  // Both of another trainer of the same config; throws where they do not fit, and then this trainer
  // is of no more use.
  void load(const StateDict& state, const nlohmann::json& progress);

  TrainConfig config;
  GPT model;

 private:
  double lr() const;

  std::unique_ptr<Optimizer> optimizer_;
  int64_t steps_ = 0, tokens_ = 0;
};

// Mean loss over all counted targets, dropout off, no gradient; in nats a token. on_batch(done,
// total) follows each batch; returning false breaks off, and then the result is NaN.
double evaluate(GPT& model, const std::vector<Batch>& batches,
                const std::function<bool(int64_t done, int64_t total)>& on_batch = {});

}  // namespace pellucid::nn
