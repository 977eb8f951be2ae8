// The program `pellucid`: trains, samples and evaluates small language models, shows the demo, and
// tells what the machine and this build have. Exit codes: 0 done, 1 an error (one line on stderr),
// 2 a wrong command line, 128 + signal when it was stopped.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>

#include "kernels/thread_pool.h"
#include "tutorials/demos/bench.h"
#include "tutorials/demos/demo.h"
#include "tutorials/demos/doctor.h"
#include "tutorials/demos/presets.h"
#include "tutorials/demos/sample.h"
#include "tutorials/demos/train.h"

using namespace pellucid;
using namespace pellucid::demos;

namespace {

const CLI::IsMember kAttentions({"sa", "xsa"});

// CLI::Range takes NaN for every range's.
CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = NAN;
        const bool in = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        return in ? std::string()
                  : text + " is no number from " + CLI::detail::to_string(least) + " to " +
                        CLI::detail::to_string(most);
      },
      "NUMBER");
}

// Each command's function is called after the whole line has been parsed.
using Command = std::function<int()>;

void add_train(CLI::App& app, TrainArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("train", "Train a model on a text file, or go on with a run");
  auto* data = c->add_option("--data", a.data, "Text file; its last 10 % is for validation");
  auto* preset = c->add_option("--preset", a.preset, "Settings: " + preset_names());
  auto* out = c->add_option("--out", a.out, "Folder for the run; made if need be");
  auto* resume = c->add_option("--resume", a.resume, "Folder of a run to go on with");
  auto* steps = c->add_option("--steps", a.steps, "Steps, instead of the preset's number")
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  auto* minutes = c->add_option("--minutes", a.minutes, "As many steps as fit in the time")
                      ->check(number(0.05, 1e6))
                      ->excludes(steps);
  auto* attention = c->add_option("--attention", a.attention, "sa or xsa")
                        ->check(kAttentions)
                        ->capture_default_str();
  auto* seed = c->add_option("--seed", a.seed, "Of all random numbers")
                   ->check(CLI::NonNegativeNumber)
                   ->capture_default_str();
  for (CLI::Option* option : {preset, out, steps, minutes, attention, seed})
    resume->excludes(option);
  c->callback([&a, &run, data, preset, out, resume] {
    if (resume->empty() && (data->empty() || preset->empty() || out->empty()))
      throw CLI::ValidationError("train", "needs --data, --preset and --out, or --resume");
    if (!resume->empty() && a.resume.empty())
      throw CLI::ValidationError("--resume", "names no folder");
    run = [&a] { return train(a); };
  });
}

void add_sample(CLI::App& app, SampleArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("sample", "Let a trained model write");
  c->add_option("--model", a.model, "Folder of the run")->required();
  c->add_option("--prompt", a.prompt, "The text to begin with (default: a new line)");
  c->add_option("--tokens", a.tokens, "Characters to write")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  c->add_option("--temperature", a.temperature, "0: always the likeliest character")
      ->check(number(0, 1e6))
      ->capture_default_str();
  c->add_option("--top-k", a.top_k, "Choose among the k likeliest only; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  c->add_option("--seed", a.seed, "Of the choices")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  c->callback([&a, &run] { run = [&a] { return sample(a); }; });
}

void add_eval(CLI::App& app, std::string& model, std::string& data, Command& run) {
  CLI::App* c = app.add_subcommand("eval", "Measure a trained model's loss on a text file");
  c->add_option("--model", model, "Folder of the run")->required();
  c->add_option("--data", data, "Text file")->required();
  c->callback([&] { run = [&] { return evaluate_file(model, data); }; });
}

void add_demo(CLI::App& app, DemoArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("demo", "Watch a small model learn to tell stories");
  c->add_option("--attention", a.attention, "sa or xsa")->check(kAttentions)->capture_default_str();
  c->add_option("--seed", a.seed, "Of all random numbers")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  c->add_option("--minutes", a.minutes, "Time for training")
      ->check(number(0.05, 1e4))
      ->capture_default_str();
  c->callback([&a, &run] { run = [&a] { return demo(a); }; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Pellucid: a deep-learning library you can see through");
  app.require_subcommand(1);
  app.set_version_flag("--version", "pellucid 0.1.0");
  int threads = 0;
  TrainArguments train_arguments;
  SampleArguments sample_arguments;
  DemoArguments demo_arguments;
  std::string eval_model, eval_data;
  bool quick = false;
  Command run;
  add_train(app, train_arguments, run);
  add_sample(app, sample_arguments, run);
  add_eval(app, eval_model, eval_data, run);
  add_demo(app, demo_arguments, run);
  app.add_subcommand("doctor", "Tell what this build and this machine have, and what is missing")
      ->callback([&] { run = [] { return doctor(); }; });
  CLI::App* bench = app.add_subcommand("bench", "Measure speed as shares of this machine's limits");
  bench->add_flag("--quick", quick, "Fewer repetitions");
  bench->callback([&] { run = [&] { return run_bench(quick); }; });
  for (CLI::App* c : app.get_subcommands({}))
    c->add_option("--threads", threads, "Threads (default: all cores); results do not depend on it")
        ->check(CLI::Range(1, 1024));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (threads > 0) set_num_threads(threads);
    const int code = run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw std::runtime_error("the output could not be written: is the disk full?");
    return code;
  } catch (const std::exception& error) {
    std::string text = error.what();  // may quote a name that has line ends
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::fflush(stdout);
    std::fprintf(stderr, "pellucid: %s\n", text.c_str());
    return 1;
  }
}
