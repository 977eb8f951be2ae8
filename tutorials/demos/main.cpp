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
#include "tensor/allocator.h"
#include "tutorials/course/options.h"
#include "tutorials/demos/bench.h"
#include "tutorials/demos/command_line.h"
#include "tutorials/demos/demo.h"
#include "tutorials/demos/doctor.h"
#include "tutorials/demos/eval.h"
#include "tutorials/demos/presets.h"
#include "tutorials/demos/sample.h"
#include "tutorials/demos/train.h"
#include "tutorials/report/inspect.h"
#include "tutorials/report/report.h"

using namespace pellucid;
using namespace pellucid::demos;

namespace {

constexpr char kAttention[] = "xsa: exclusive self-attention; sa: the ordinary one";

// --data, --documents, --separator; returns the last two.
std::vector<CLI::Option*> data_options(CLI::App* c, DataArguments& a, const std::string& data) {
  paths(c, "--data", a.paths, "FILE...", data);
  auto* documents = option(c, "--documents", a.documents, "KIND",
                           "files or lines: each is a document; text: one running text (default: "
                           "text for one file, files for more)")
                        ->check(one_of({"text", "files", "lines"}));
  auto* separator = option(c, "--separator", a.separator, "TEXT", "Stands between two documents")
                        ->check(not_empty())
                        ->excludes(documents);
  return {documents, separator};
}

// --preset, --config, --set, and what is short for --set.
std::vector<CLI::Option*> setting_options(CLI::App* c, TrainArguments& a) {
  auto* preset = path(c, "--preset", a.preset, "NAME", "Settings: " + preset_names());
  auto* config = path(c, "--config", a.config, "FILE",
                      "Settings of your own: JSON in the form of tutorials/demos/presets")
                     ->excludes(preset);
  auto* set = c->add_option("--set", a.set, "One value of them, such as n_layer=4; may be repeated")
                  ->option_text("KEY=VALUE")
                  ->type_name("value")
                  ->allow_extra_args(false);
  const auto setting = [&a, c](const char* key, const char* shape, const char* text) {
    const auto set_it = [&a, key](const std::string& value) {
      a.set.push_back(std::string(key) + "=" + value);
    };
    return c->add_option_function<std::string>(std::string("--") + key, set_it, text)
        ->option_text(shape)
        ->type_name("value");
  };
  auto* steps = setting("steps", "N", "Steps")->transform(whole(1, kMost));
  auto* minutes = setting("minutes", "M", "As many steps as fit in the time")
                      ->check(number(0.05, 1e6))
                      ->excludes(steps);
  auto* attention = setting("attention", "KIND", kAttention)->check(one_of({"xsa", "sa"}));
  auto* seed = setting("seed", "N", "Seed of all random numbers")
                   ->transform(whole(0, std::numeric_limits<uint64_t>::max()));
  return {preset, config, set, steps, minutes, attention, seed};
}

void add_train(CLI::App& app, TrainArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("train", "Train a model on text, or go on with a run");
  std::vector<CLI::Option*> fixed =
      data_options(c, a.data, "Text files or folders; a tenth is held out for validation");
  auto* data = c->get_option("--data");
  const std::vector<CLI::Option*> settings = setting_options(c, a);
  auto* out = path(c, "--out", a.out, "FOLDER", "Folder for the run; made if need be");
  auto* resume = path(c, "--resume", a.resume, "FOLDER", "Folder of a run to go on with");
  auto* tokenizer = path(c, "--tokenizer", a.tokenizer, "KIND",
                         "char, byte, bpe (trained on the data), or the file of one");
  auto* vocabulary = option(c, "--vocab-size", a.vocab_size, "N", "Tokens that bpe shall have")
                         ->transform(whole(257, 1 << 24));
  c->add_flag("--report", a.report, "At the end, write report.html into the run's folder");
  fixed.insert(fixed.end(), settings.begin(), settings.end());
  fixed.insert(fixed.end(), {out, tokenizer, vocabulary});
  for (CLI::Option* other : fixed) resume->excludes(other);
  c->footer(
      "Examples:\n"
      "  train --data plays.txt --preset shakespeare --out runs/plays\n"
      "  train --data names.txt --documents lines --preset names --out runs/names\n"
      "  train --data stories.txt --separator '<|endoftext|>' --tokenizer bpe --vocab-size 2048 "
      "\\\n"
      "        --preset stories --set n_layer=6 --set attention=sa --out runs/stories\n"
      "  train --resume runs/plays");
  c->callback([&a, &run, data, resume, vocabulary] {
    std::string missing;
    for (const auto& [name, absent] : {std::pair{"--data", data->empty()},
                                       {"--preset", a.preset.empty() && a.config.empty()},
                                       {"--out", a.out.empty()}})
      if (absent) missing += (missing.empty() ? "" : " and ") + std::string(name);
    if (resume->empty() && !missing.empty())
      throw CLI::ValidationError("train", "needs " + missing + " (or --resume alone)");
    if (!vocabulary->empty() && a.tokenizer != "bpe")
      throw CLI::ValidationError("--vocab-size", "needs --tokenizer bpe");
    run = [&a] { return train(a); };
  });
}

void model_options(CLI::App* c, std::string& model, std::string& tokenizer) {
  path(c, "--model", model, "FOLDER",
       "Folder of the run; or llama2.c's .bin or GPT-2's .safetensors (needed)")
      ->required();
  path(c, "--tokenizer", tokenizer, "FILE", "Tokenizer of such a file");
}

void add_sample(CLI::App& app, SampleArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("sample", "Let a trained model write");
  model_options(c, a.model, a.tokenizer);
  auto* prompt = c->add_option_function<std::string>(
                      "--prompt", [&a](const std::string& text) { a.prompt = text; },
                      "The text to begin with (default: a new document, or a new line)")
                     ->option_text("TEXT");
  auto* samples = option(c, "--samples", a.samples, "N", "Texts to write, one after another")
                      ->transform(whole(1, kMost));
  c->add_flag("--interactive", a.interactive, "Each line of the input is a prompt")
      ->excludes(prompt)
      ->excludes(samples);
  option(c, "--tokens", a.tokens, "N", "Tokens to write at most")->transform(whole(0, kMost));
  option(c, "--temperature", a.temperature, "X", "0: always the likeliest token")
      ->check(number(0, 1e6));
  option(c, "--top-k", a.top_k, "K", "Choose among the K likeliest only (default: all)")
      ->transform(whole(0, kMost));
  option(c, "--top-p", a.top_p, "P", "Choose among the likeliest that have this share together")
      ->check(number(1e-6, 1));
  seed_option(c, a.seed, "Seed of the choices");
  c->footer(
      "Examples:\n"
      "  sample --model runs/plays --prompt 'ROMEO:' --tokens 500\n"
      "  sample --model runs/names --samples 20\n"
      "  sample --model runs/names --interactive\n"
      "  sample --model stories260K.bin --tokenizer tok512.bin --temperature 0");
  c->callback([&a, &run] { run = [&a] { return sample(a); }; });
}

void add_eval(CLI::App& app, EvalArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("eval", "Measure a trained model's loss on text, or on tasks");
  model_options(c, a.model, a.tokenizer);
  data_options(c, a.data, "Text files or folders");
  auto* data = c->get_option("--data");
  c->add_flag("--ngram", a.ngram, "Beside it the losses of n-grams")->needs(data);
  auto* tasks = paths(c, "--tasks", a.tasks, "FILE...", "JSON lines of questions and answers");
  c->footer(
      "Examples:\n"
      "  eval --model runs/plays --data plays.txt --ngram\n"
      "  eval --model runs/stories --tasks copa.jsonl piqa.jsonl\n"
      "  eval --model stories260K.bin --tokenizer tok512.bin --data stories.txt");
  c->callback([&a, &run, data, tasks] {
    if (data->empty() && tasks->empty())
      throw CLI::ValidationError("eval", "needs --data or --tasks");
    run = [&a] { return evaluate(a); };
  });
}

void add_demo(CLI::App& app, DemoArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("demo", "Watch a small model learn to tell stories");
  option(c, "--attention", a.attention, "KIND", kAttention)->check(one_of({"xsa", "sa"}));
  seed_option(c, a.seed, "Seed of all random numbers");
  option(c, "--minutes", a.minutes, "M", "Time for training")->check(number(0.05, 1e4));
  path(c, "--out", a.out, "FOLDER", "Keep the run in a folder, for sample, report and inspect");
  c->callback([&a, &run] { run = [&a] { return demo(a); }; });
}

void add_inspect(CLI::App& app, report::InspectArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("inspect", "Show a model's parameters and its attention");
  path(c, "folder", a.model, "FOLDER", "Folder of the run (needed)")->required();
  auto* data = path(c, "--data", a.data, "FILE", "Text to look at (default: the run's last 10 %)");
  c->add_option("--text", a.text, "Text to look at, instead of a file's")
      ->option_text("TEXT")
      ->check(not_empty())
      ->excludes(data);
  c->add_flag("--heads", a.heads, "A line a head too");
  c->callback([&a, &run] { run = [&a] { return report::inspect(a); }; });
}

void add_report(CLI::App& app, report::ReportArguments& a, Command& run) {
  CLI::App* c = app.add_subcommand("report", "Write a run's report.html: curves, samples, maps");
  path(c, "folder", a.model, "FOLDER", "Folder of the run (needed)")->required();
  path(c, "--data", a.data, "FILE", "Text to look at (default: the run's last 10 %)");
  c->add_option("--text", a.text, "Sentence of the attention maps (default: that text's beginning)")
      ->option_text("TEXT")
      ->check(not_empty());
  c->callback([&a, &run] { run = [&a] { return report::write_report(a); }; });
}

int failed(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');  // it may quote a name that has line ends
  std::fflush(stdout);
  std::fprintf(stderr, "pellucid: %s\n", text.c_str());
  return 1;
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
  EvalArguments eval_arguments;
  course::GradeArguments grade_arguments;
  report::InspectArguments inspect_arguments;
  report::ReportArguments report_arguments;
  bool quick = false;
  Command run;
  add_train(app, train_arguments, run);
  add_sample(app, sample_arguments, run);
  add_eval(app, eval_arguments, run);
  add_demo(app, demo_arguments, run);
  add_inspect(app, inspect_arguments, run);
  add_report(app, report_arguments, run);
  app.add_subcommand("doctor", "Tell what this build and this machine have, and what is missing")
      ->callback([&] { run = [] { return doctor(); }; });
  CLI::App* bench = app.add_subcommand("bench", "Measure speed as shares of this machine's limits");
  bench->add_flag("--quick", quick, "Fewer repetitions");
  bench->callback([&] { run = [&] { return run_bench(quick); }; });
  course::add_grade(app, grade_arguments, run);
  for (CLI::App* c : app.get_subcommands({}))
    option(c, "--threads", threads, "N", "Threads (default: all); results do not depend on it")
        ->transform(whole(1, 1024));

  app.footer("The start script also has: test [--all] [NAME...]    Build and run the tests");

  if (const int code = parse(app, argc, argv); code >= 0) return code;
  train_arguments.command = demo_arguments.command = nn::shell_command({argv + 1, argv + argc});
  try {
    if (threads > 0) set_num_threads(threads);
    num_threads();  // a wrong setting in the environment ends it here
    gemm_backend();
    return finished(run());
  } catch (const UsageError& error) {
    return wrong(error.what(), {argv[1], "--help"});
  } catch (const OutOfMemory& error) {
    return failed(error.what());
  } catch (const std::bad_alloc&) {
    return failed("out of memory; give a smaller text, batch or model, or end other programs");
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}
