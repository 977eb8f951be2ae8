#include "nn/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "autograd/ops.h"
#include "tensor/files.h"
#include "tensor/json.h"
#include "tensor/safetensors.h"

namespace pellucid::nn {
namespace fs = std::filesystem;
using nlohmann::json;

static constexpr const char* kConfig = "config.json";
static constexpr const char* kTokenizer = "tokenizer.json";
static constexpr const char* kState = "state.safetensors";
static constexpr const char* kModel = "model.safetensors";
static constexpr const char* kMetrics = "metrics.jsonl";
static constexpr const char* kSamples = "samples.jsonl";
static constexpr const char* kCommand = "command.txt";
static constexpr const char* kTokens = "tokens.bin";

[[noreturn]] static void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

// ---- what the JSON files hold ----

static json config_json(const TrainConfig& config, const DataSource& data, bool demo) {
  json j = {{"format", "pellucid 1"}, {"train", config}, {"data", data}};
  if (demo) j["demo"] = true;
  return j;
}

// A path need not be UTF-8; what is not is replaced, and resuming then needs --data.
static std::string text_of(const json& j, int indent = -1) {
  return j.dump(indent, ' ', false, json::error_handler_t::replace);
}

static void read_config_json(const json& j, Checkpoint& c) {
  CHECK_ARG(j.is_object() && j.value("format", "") == "pellucid 1",
            "wanted \"format\": \"pellucid 1\"");
  j.at("train").get_to(c.config);
  j.at("data").get_to(c.data);
  c.demo = j.value("demo", false);
}

static json read_json(const std::string& path) {
  const json parsed = parse_json(read_file(path), false);
  CHECK_ARG(!parsed.is_discarded(), "is damaged: this is not JSON");
  return parsed;
}

// Calls f and makes one line of whatever it complains about: the file, the fault, the repair.
template <class F>
static void reading(const std::string& path, const std::string& repair, const F& f) {
  try {
    CHECK_ARG(fs::exists(path), "is missing");
    f();
  } catch (const std::exception& error) {
    const std::string fault = error.what();
    refuse(path, (fault.starts_with(path + ": ") ? fault.substr(path.size() + 2) : fault) + repair);
  }
}

// No run exports NaN or infinity. A state may be looked into with them: training names what it
// finds.
static void check_finite(const StateDict& state) {
  for (const auto& [name, x] : state)
    CHECK_ARG(!is_floating(x.dtype()) || all(isfinite(x)).item() != 0, name,
              " holds a number that is not finite");
}

// ---- the folder ----

RunFolder RunFolder::create(const std::string& path, const std::vector<std::string>& others) {
  RunFolder folder(path);
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    refuse(path, "is a file, not a folder; give another name");
  fs::create_directories(path, error);
  if (error) refuse(path, "this folder cannot be made: " + error.message() + "; give another one");
  if (access(path.c_str(), W_OK | X_OK) != 0)
    refuse(path, std::string("this folder cannot be written: ") + std::strerror(errno) +
                     "; give another one, or change its permissions");
  folder.refuse_old_files(others);
  folder.lock();
  folder.refuse_old_files(others);  // another process may have begun one, and ended, since
  return folder;
}

bool RunFolder::is_demo() const try { return read_config().demo; } catch (const std::exception&) {
  return false;
}

void RunFolder::refuse_old_files(const std::vector<std::string>& others) const {
  for (const char* name : {kState, kConfig})
    if (fs::exists(file(name)))
      refuse(path_, std::string("holds a run already (") + name + "); " +
                        (is_demo() ? "it is a demo's, whose training does not go on; "
                                   : "go on with it by --resume " + path_ + ", or ") +
                        "give a new folder");
  std::vector<std::string> names = {kTokenizer, kTokens, kModel, kCommand, kMetrics, kSamples};
  names.insert(names.end(), others.begin(), others.end());
  for (const std::string& name : names)
    if (fs::exists(fs::symlink_status(path_ + "/" + name)))
      refuse(path_,
             "holds a file " + name + " already, which this run would write; give a new folder");
}

RunFolder RunFolder::open(const std::string& path) {
  const RunFolder folder(path);
  std::error_code error;
  if (fs::is_regular_file(path, error))
    refuse(path, "is a file, not a run's folder; give the one that --out named");
  if (!fs::is_directory(path, error)) refuse(path, "no such folder; give the one that --out named");
  if (!fs::exists(folder.file(kState), error) && !fs::exists(folder.file(kConfig), error))
    refuse(path, "holds no run (neither state.safetensors nor config.json); begin one by --out");
  return folder;
}

// For every file but the state.
std::string RunFolder::repair() const {
  return has_state() ? "; write it anew with: " + shell_command({"train", "--resume", path_})
                     : "; restore it from a copy, or train again in a new folder";
}

struct RunFolder::Lock {
  int fd = -1;
  ~Lock() {
    if (fd >= 0) ::close(fd);
  }
};

void RunFolder::lock() {
  auto lock = std::make_shared<Lock>();
  lock->fd = ::open(file("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock->fd < 0)
    refuse(file("lock"), std::string("cannot be made: ") + std::strerror(errno) +
                             "; change the folder's permissions");
  if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0)
    refuse(path_, errno == EWOULDBLOCK ? std::string("another process is training in this folder")
                                       : std::string("cannot be locked: ") + std::strerror(errno));
  lock_ = lock;
}

void RunFolder::write_config(const TrainConfig& config, const Tokenizer& tokenizer,
                             const DataSource& data, bool demo) const {
  write_file_atomically(file(kTokenizer), tokenizer.to_json().dump() + "\n");
  write_file_atomically(file(kConfig), text_of(config_json(config, data, demo), 2) + "\n");
}

void RunFolder::write_command(const std::string& command) const {
  write_file_atomically(file(kCommand), command + "\n");
}

bool RunFolder::has_state() const { return fs::exists(file(kState)); }

Checkpoint RunFolder::read_config() const {
  Checkpoint checkpoint;
  reading(file(kConfig), repair(), [&] { read_config_json(read_json(file(kConfig)), checkpoint); });
  return checkpoint;
}

Tokenizer RunFolder::read_tokenizer() const {
  Tokenizer tokenizer;
  reading(file(kTokenizer), repair(),
          [&] { tokenizer = Tokenizer::from_json(read_json(file(kTokenizer))); });
  return tokenizer;
}

void RunFolder::commit(const Checkpoint& c) const {
  // After a power cut no state may be ahead of its metrics.
  if (const int fd = ::open(file(kMetrics).c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
    fsync(fd);
    ::close(fd);
  }
  const json rest = {{"progress", c.progress},
                     {"loader", {{"epoch", c.loader.epoch}, {"next", c.loader.next}}},
                     {"seconds", c.seconds}};
  save_safetensors(file(kState), {c.tensors,
                                  {{"config", text_of(config_json(c.config, c.data, c.demo))},
                                   {"tokenizer", c.tokenizer.to_json().dump()},
                                   {"rest", rest.dump()}}});
}

Checkpoint RunFolder::read_state() const {
  Checkpoint c;
  reading(file(kState), "; restore it from a copy, or train again in a new folder", [&] {
    SafeTensors saved = load_safetensors(file(kState));
    const auto part = [&](const char* name) {
      const auto at = saved.metadata.find(name);
      CHECK_ARG(at != saved.metadata.end(), "has no \"", name, "\" in its metadata");
      return parse_json(at->second);
    };
    read_config_json(part("config"), c);
    c.tokenizer = Tokenizer::from_json(part("tokenizer"));
    const json rest = part("rest");
    c.progress = rest.at("progress");
    c.loader = {rest.at("loader").at("epoch").get<int64_t>(),
                rest.at("loader").at("next").get<int64_t>()};
    c.seconds = rest.at("seconds").get<double>();
    c.tensors = std::move(saved.tensors);
  });
  return c;
}

void RunFolder::export_from(const Checkpoint& c) const {
  write_config(c.config, c.tokenizer, c.data, c.demo);
  SafeTensors weights;
  for (const auto& [name, tensor] : c.tensors)
    if (name.rfind("model.", 0) == 0) weights.tensors[name.substr(6)] = tensor;
  save_safetensors(file(kModel), weights);
}

// ---- metrics and samples ----

void RunFolder::append(const char* name, const json& line) const {
  std::ofstream out(file(name), std::ios::app | std::ios::binary);
  out << text_of(line) + "\n" << std::flush;
  if (!out) refuse(file(name), "cannot be written: is the disk full?");
}

void RunFolder::append_metrics(const json& line) const { append(kMetrics, line); }
void RunFolder::append_sample(const json& line) const { append(kSamples, line); }

// The lines of a file up to a step, each whole.
static std::string lines_until(int64_t step, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string kept, line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      const json entry = parse_json(line, false);
      if (entry.is_discarded() && in.eof()) break;  // what a killed process leaves
      CHECK_ARG(entry.is_object(), "wanted a JSON object");
      const json at = entry.value("step", json());
      CHECK_ARG(at.is_number_integer() && at >= 0, "step must be a whole number; got ", at.dump());
      if (at <= step) kept += line + "\n";
    } catch (const std::invalid_argument& error) {
      refuse(path + ":" + std::to_string(number),
             std::string(error.what()) + "; mend the line or take it out");
    }
  }
  return kept;
}

void RunFolder::cut_lines(int64_t step) const {
  std::vector<std::pair<std::string, std::string>> kept;
  for (const char* name : {kMetrics, kSamples})
    if (fs::exists(file(name))) kept.emplace_back(file(name), lines_until(step, file(name)));
  for (const auto& [path, text] : kept) write_file_atomically(path, text);
}

// ---- a trained model ----

TrainedModel load_model(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  const Checkpoint begun = folder.read_config();
  const TrainConfig& config = begun.config;
  const Tokenizer tokenizer = folder.read_tokenizer();
  if (tokenizer.vocab_size() != config.model.vocab_size)
    refuse(folder.file(kTokenizer), "has " + std::to_string(tokenizer.vocab_size()) +
                                        " tokens, but the model of config.json has " +
                                        std::to_string(config.model.vocab_size) + folder.repair());
  TrainedModel trained{config, begun.data, tokenizer, GPT(config.model)};
  reading(folder.file(kModel), folder.repair(), [&] {
    const SafeTensors saved = load_safetensors(folder.file(kModel));
    check_finite(saved.tensors);
    trained.model.load_state_dict(saved.tensors);
  });
  trained.model.eval();
  return trained;
}

}  // namespace pellucid::nn
