// A run's folder and what it holds:
//
//   config.json        the TrainConfig and where the data lies
//   tokenizer.json     the tokenizer
//   tokens.bin         the data as tokens, where finding them takes time; made anew if need be
//   state.safetensors  everything that resuming needs, config, tokenizer and weights included; its
//                      rename is the one and only commit
//   model.safetensors  the weights alone, names as in nn/gpt.h: an export of the state
//   command.txt        the command line that began the run, quoted for a shell
//   metrics.jsonl      one line a step
//   samples.jsonl      one line a validation: what the model wrote
//   lock               locked by the process that trains
//
// All files but metrics.jsonl, samples.jsonl and lock are replaced whole (tensor/files.h), so that
// a process killed at any moment leaves the old one or the new one.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "nn/corpus.h"
#include "nn/trainer.h"
#include "tensor/files.h"

namespace pellucid::nn {

using pellucid::shell_command;

// What state.safetensors holds.
struct Checkpoint {
  TrainConfig config;
  Tokenizer tokenizer;
  DataSource data;
  StateDict tensors;        // Trainer::state_dict()
  nlohmann::json progress;  // Trainer::progress()
  Loader::State loader;
  double seconds = 0;  // of training so far
  bool demo = false;   // of `demo --out`, whose training does not go on
};

class RunFolder {
 public:
  // Makes the folder if need be, and locks it. Throws if it cannot be written, or holds a run
  // already, or any file of a run's; `others` are names that this run will write besides.
  static RunFolder create(const std::string& path, const std::vector<std::string>& others = {});
  // Throws if there is no run in it.
  static RunFolder open(const std::string& path);

  // For resuming. Held until the RunFolder goes, or its process dies however. Throws if another
  // process has it.
  void lock();

  // config.json and tokenizer.json, before the first commit: a run that is killed before it begins
  // again from these.
  void write_config(const TrainConfig& config, const Tokenizer& tokenizer, const DataSource& data,
                    bool demo = false) const;
  void write_command(const std::string& command) const;
  bool has_state() const;
  // What config.json holds, for a run that has no state yet: config, data and demo are set.
  Checkpoint read_config() const;
  Tokenizer read_tokenizer() const;  // tokenizer.json

  void commit(const Checkpoint& checkpoint) const;
  Checkpoint read_state() const;  // throws, naming the file and the fault, if it is damaged
  // Rewrites config.json, tokenizer.json and model.safetensors from the state.
  void export_from(const Checkpoint& checkpoint) const;

  std::string repair() const;  // what to do about a damaged file other than the state

  void append_metrics(const nlohmann::json& line) const;
  void append_sample(const nlohmann::json& line) const;
  // Drops the lines of later steps, and a last one cut short, of metrics.jsonl and samples.jsonl.
  // Throws for any other line that is damaged, and changes nothing.
  void cut_lines(int64_t step) const;

  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  bool is_demo() const;
  void refuse_old_files(const std::vector<std::string>& others) const;
  void append(const char* name, const nlohmann::json& line) const;
  struct Lock;
  std::string path_;
  std::shared_ptr<Lock> lock_;
};

// A trained model and its tokenizer, from config.json, tokenizer.json and model.safetensors of a
// run's folder. Throws, naming the file, the fault and the repair: where a state is there, resuming
// writes the other files anew.
struct TrainedModel {
  TrainConfig config;
  DataSource data;
  Tokenizer tokenizer;
  GPT model;
  // The token that each text begins after and ends in, if the model learned from documents.
  std::optional<int64_t> end_of_text() const {
    return data.has_documents() ? tokenizer.end_of_text() : std::nullopt;
  }
};
TrainedModel load_model(const std::string& folder);

}  // namespace pellucid::nn
