// The program `pellucid`: trains, samples and evaluates small language models, shows the demo, and
// tells what the machine and this build have. Exit codes: 0 done, 1 an error (one line on stderr),
// 2 a wrong command line, 128 + signal when it was stopped.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

#include "kernels/gemm.h"
#include "kernels/thread_pool.h"
#include "nn/checkpoint.h"
#include "tutorials/demos/bench.h"
#include "tutorials/demos/command_line.h"
#include "tutorials/demos/demo.h"
#include "tutorials/demos/doctor.h"
#include "tutorials/demos/presets.h"
#include "tutorials/demos/sample.h"
#include "tutorials/demos/train.h"

using namespace pellucid;
using namespace pellucid::demos;

namespace {

CLI::Option* attention_option(CLI::App* c, std::string& attention) {
  return option(c, "--attention", attention, "KIND",
                "xsa: exclusive self-attention; sa: the ordinary one")
      ->check(one_of({"xsa", "sa"}));
}

void add_train(CLI::App& app, TrainArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("train", "Train a model on a text file, or go on with a run");
  auto* data = path(c, "--data", a.data, "FILE", "Text file; its last 10 % is for validation");
  auto* preset = path(c, "--preset", a.preset, "NAME", "Settings: " + preset_names());
  auto* out = path(c, "--out", a.out, "FOLDER", "Folder for the run; made if need be");
  auto* resume = path(c, "--resume", a.resume, "FOLDER", "Folder of a run to go on with");
  auto* steps = option(c, "--steps", a.steps, "N", "Steps, instead of the preset's number")
                    ->transform(whole(1, kMost));
  auto* minutes = option(c, "--minutes", a.minutes, "M", "As many steps as fit in the time")
                      ->check(number(0.05, 1e6))
                      ->excludes(steps);
  auto* attention = attention_option(c, a.attention);
  auto* seed = seed_option(c, a.seed, "Seed of all random numbers");
  for (CLI::Option* other : {preset, out, steps, minutes, attention, seed}) resume->excludes(other);
  c->callback([&a, &run, data, preset, out, resume] {
    std::string missing;
    for (const CLI::Option* needed : {data, preset, out})
      if (needed->empty()) missing += (missing.empty() ? "" : " and ") + needed->get_name();
    if (resume->empty() && !missing.empty())
      throw CLI::ValidationError("train", "needs " + missing + " (or --resume alone)");
    run = [&a] { return train(a); };
  });
}

void add_sample(CLI::App& app, SampleArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("sample", "Let a trained model write");
  path(c, "--model", a.model, "FOLDER", "Folder of the run (needed)")->required();
  c->add_option("--prompt", a.prompt, "The text to begin with (default: a new line)")
      ->option_text("TEXT");
  option(c, "--tokens", a.tokens, "N", "Characters to write")->transform(whole(0, kMost));
  option(c, "--temperature", a.temperature, "X", "0: always the likeliest character")
      ->check(number(0, 1e6));
  option(c, "--top-k", a.top_k, "K", "Choose among the K likeliest only (default: all)")
      ->transform(whole(0, kMost));
  seed_option(c, a.seed, "Seed of the choices");
  c->callback([&a, &run] { run = [&a] { return sample(a); }; });
}

void add_eval(CLI::App& app, std::string& model, std::string& data, Command& run) {
  CLI::App* c = app.add_subcommand("eval", "Measure a trained model's loss on a text file");
  path(c, "--model", model, "FOLDER", "Folder of the run (needed)")->required();
  path(c, "--data", data, "FILE", "Text file (needed)")->required();
  c->callback([&] { run = [&] { return evaluate_file(model, data); }; });
}

void add_demo(CLI::App& app, DemoArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("demo", "Watch a small model learn to tell stories");
  attention_option(c, a.attention);
  seed_option(c, a.seed, "Seed of all random numbers");
  option(c, "--minutes", a.minutes, "M", "Time for training")->check(number(0.05, 1e4));
  c->callback([&a, &run] { run = [&a] { return demo(a); }; });
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // then a file that may not grow is an error as on a full disk
  setenv("PELLUCID_COMMAND", argv[0], 0);
  CLI::App app("Pellucid: a deep-learning library you can see through", nn::shell_command({}));
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
    option(c, "--threads", threads, "N", "Threads (default: all); results do not depend on it")
        ->transform(whole(1, 1024));

  app.footer("The start script also has: test [--all] [NAME...]    Build and run the tests");

  if (const int code = parse(app, argc, argv); code >= 0) return code;
  try {
    if (threads > 0) set_num_threads(threads);
    num_threads();  // a wrong setting in the environment ends it here
    gemm_backend();
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
