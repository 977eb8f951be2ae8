#include "nn/trainer.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "nn/fields.h"

namespace pellucid::nn {

void TrainConfig::validate() const {
  model.validate();
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    CHECK_ARG(value >= least, "TrainConfig: ", name, " must be at least ", least, "; got ", value);
  };
  at_least("batch_size", batch_size, 1);
  CHECK_ARG(batch_size <= int64_t{1} << 31, "TrainConfig: batch_size must be at most 2147483648; ",
            "got ", batch_size);  // so that no product with block_size overflows
  at_least("accumulation", accumulation, 1);
  at_least("steps", steps, 0);
  at_least("warmup", warmup, 0);
  at_least("eval_interval", eval_interval, 1);
  const auto finite = [](const char* name, double value, bool positive) {
    CHECK_ARG(std::isfinite(value) && (positive ? value > 0 : value >= 0), "TrainConfig: ", name,
              " must be a finite number ", positive ? "above 0" : "of at least 0", "; got ", value);
  };
  finite("minutes", minutes, false);
  finite("lr", lr, true);
  finite("min_lr", min_lr, false);
  finite("weight_decay", weight_decay, false);
  finite("clip", clip, true);
  finite("eps", eps, true);
  CHECK_ARG(steps > 0 || minutes > 0, "TrainConfig: wanted steps or minutes; both are 0");
  finite("muon_lr", muon_lr, true);
  const auto one_of = [](const char* name, const std::string& value, const char* choices) {
    const std::string list = choices;
    CHECK_ARG((" " + list + ",").find(" " + value + ",") != std::string::npos,
              "TrainConfig: ", name, " must be one of ", list, "; got \"", value, "\"");
  };
  one_of("optimizer", optimizer, "adamw, adam, sgd, muon");
  one_of("schedule", schedule, "cosine, constant, wsd");
  CHECK_ARG(decay >= 0 && decay <= 1, "TrainConfig: decay must be in [0, 1]; got ", decay);
  CHECK_ARG(momentum >= 0 && momentum < 1, "TrainConfig: momentum must be in [0, 1); got ",
            momentum);
  CHECK_ARG(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1,
            "TrainConfig: beta1 and beta2 must be in [0, 1); got ", beta1, " and ", beta2);
}

// Calls visit("name", config.name) for each field but the model.
template <class Config, class Visit>
static void each_field(Config& c, Visit visit) {
  visit("batch_size", c.batch_size), visit("accumulation", c.accumulation);
  visit("steps", c.steps), visit("minutes", c.minutes), visit("warmup", c.warmup);
  visit("optimizer", c.optimizer), visit("schedule", c.schedule), visit("decay", c.decay);
  visit("momentum", c.momentum), visit("nesterov", c.nesterov), visit("muon_lr", c.muon_lr);
  visit("lr", c.lr), visit("min_lr", c.min_lr), visit("weight_decay", c.weight_decay);
  visit("beta1", c.beta1), visit("beta2", c.beta2), visit("eps", c.eps), visit("clip", c.clip);
  visit("eval_interval", c.eval_interval), visit("seed", c.seed);
}

void to_json(nlohmann::json& j, const TrainConfig& config) {
  j = {{"model", config.model}};
  each_field(config, [&](const char* name, const auto& value) { j[name] = value; });
}

void from_json(const nlohmann::json& j, TrainConfig& config) {
  CHECK_ARG(j.is_object() && j.contains("model"), "TrainConfig: wanted an object with \"model\"");
  TrainConfig c;
  j.at("model").get_to(c.model);
  read_fields("TrainConfig", j, [&](const auto& field) { each_field(c, field); }, {"model"});
  c.validate();
  config = c;
}

static std::unique_ptr<Optimizer> make_optimizer(GPT& model, const TrainConfig& c) {
  const NamedTensors parameters = model.named_parameters();
  const std::vector<ParameterGroup> groups = decay_matrices(parameters, c.weight_decay);
  const AdamWOptions adam{.beta1 = c.beta1, .beta2 = c.beta2, .eps = c.eps};
  if (c.optimizer == "adam") return std::make_unique<Adam>(groups, adam);
  if (c.optimizer == "sgd")
    return std::make_unique<SGD>(
        groups, SGDOptions{.momentum = c.momentum, .nesterov = c.nesterov && c.momentum > 0});
  if (c.optimizer == "muon")
    return std::make_unique<Muon>(muon_groups(parameters, c.weight_decay, c.muon_lr / c.lr),
                                  c.momentum, adam);
  return std::make_unique<AdamW>(groups, adam);
}

// Dropout and initialisation take streams of their own from the one seed.
Trainer::Trainer(const TrainConfig& train_config)
    : config(train_config),
      model((train_config.validate(), train_config.model), train_config.seed),
      optimizer_(make_optimizer(model, config)) {}

double Trainer::lr() const {
  const int64_t total = config.steps > 0 ? config.steps : std::numeric_limits<int64_t>::max() / 2;
  using Kind = Schedule::Kind;
  const Kind kind = config.schedule == "constant" ? Kind::kConstant
                    : config.schedule == "wsd"    ? Kind::kWSD
                                                  : Kind::kCosine;
  return learning_rate({config.lr, config.min_lr, config.warmup, total, kind, config.decay},
                       steps_);
}

// Where a loss that is not finite comes from: values are the cause, gradients follow from it.
static std::string first_bad_parameter(GPT& model) {
  const auto finite = [](const Tensor& x) { return !x.defined() || std::isfinite(grad_norm({x})); };
  for (const auto& [name, x] : model.named_parameters())
    if (!finite(x)) return "; the parameter " + name + " is not finite";
  for (const auto& [name, x] : model.named_parameters())
    if (!finite(x.grad())) return "; the gradient of " + name + " is not finite";
  return "; all parameters and gradients are finite";
}

StepResult Trainer::step(const std::function<Batch()>& next_batch) {
  const Generator rng = model.rng;
  std::vector<Batch> batches;
  int64_t counted = 0;
  for (int64_t i = 0; i < config.accumulation; ++i)
    counted += batches.emplace_back(next_batch()).counted;

  try {
    // Each batch weighs as many targets as it counts.
    double loss = 0;
    model.train();
    for (const Batch& batch : batches) {
      const double weight =
          static_cast<double>(batch.counted) / static_cast<double>(std::max<int64_t>(counted, 1));
      const Tensor mean = model.loss(batch.inputs, batch.targets);  // ()
      loss += weight * mean.item();
      (batches.size() == 1 ? mean : mean * weight).backward();
    }
    if (!std::isfinite(loss))
      throw NotFinite("the loss is " + std::to_string(loss) + first_bad_parameter(model));
    const double norm = optimizer_->clip_grad_norm(config.clip);
    const double rate = lr();
    optimizer_->step(rate);
    optimizer_->zero_grad();
    for (const Batch& batch : batches) tokens_ += batch.inputs.numel();
    ++steps_;
    return {steps_, tokens_, loss, rate, norm};
  } catch (const std::exception& error) {
    model.rng = rng;
    optimizer_->zero_grad();
    const std::string text = "step " + std::to_string(steps_ + 1) + ": " + error.what();
    if (dynamic_cast<const NotFinite*>(&error)) throw NotFinite(text);
    throw std::runtime_error(text);
  }
}

StateDict Trainer::state_dict() {
  StateDict state;
  for (const auto& [name, tensor] : model.state_dict()) state["model." + name] = tensor;
  for (const auto& [name, tensor] : optimizer_->state_dict()) state["optimizer." + name] = tensor;
  return state;
}

nlohmann::json Trainer::progress() const {
  return {{"step", steps_},
          {"tokens", tokens_},
          {"steps", config.steps},
          {"rng", {model.rng.seed, model.rng.stream, model.rng.offset}}};
}

void Trainer::load(const StateDict& state, const nlohmann::json& progress) {
  const auto step = progress.at("step").get<int64_t>(),
             tokens = progress.at("tokens").get<int64_t>(),
             total = progress.at("steps").get<int64_t>();
  const auto rng = progress.at("rng").get<std::array<uint64_t, 3>>();
  CHECK_ARG(step >= 0 && tokens >= 0 && total >= 0, "checkpoint: step ", step, ", tokens ", tokens,
            " and steps ", total, " must not be negative");

  StateDict parameters, moments;
  for (const auto& [name, tensor] : state) {
    const bool of_model = name.rfind("model.", 0) == 0,
               of_optimizer = name.rfind("optimizer.", 0) == 0;
    CHECK_ARG(of_model || of_optimizer, "checkpoint: unexpected tensor ", name);
    (of_model ? parameters : moments)[name.substr(of_model ? 6 : 10)] = tensor;
  }
  model.load_state_dict(parameters);
  optimizer_->load_state_dict(moments);
  steps_ = step, tokens_ = tokens, config.steps = total;
  model.rng = {rng[0], rng[1], rng[2]};
}

double evaluate(GPT& model, const std::vector<Batch>& batches,
                const std::function<bool(int64_t done, int64_t total)>& on_batch) {
  NoGradGuard no_grad;
  const bool training = model.training();
  model.eval();
  double sum = 0;
  int64_t counted = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double loss = model.loss(batches[i].inputs, batches[i].targets).item();
    sum += loss * static_cast<double>(batches[i].counted);
    counted += batches[i].counted;
    if (on_batch && !on_batch(static_cast<int64_t>(i + 1), static_cast<int64_t>(batches.size()))) {
      model.train(training);
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  model.train(training);
  return sum / static_cast<double>(counted);
}

}  // namespace pellucid::nn
