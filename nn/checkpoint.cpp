#include "nn/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tensor/files.h"
#include "tensor/safetensors.h"

namespace pellucid::nn {
namespace fs = std::filesystem;
using nlohmann::json;

static constexpr const char* kConfig = "config.json";
static constexpr const char* kTokenizer = "tokenizer.json";
static constexpr const char* kState = "state.safetensors";
static constexpr const char* kModel = "model.safetensors";
static constexpr const char* kMetrics = "metrics.jsonl";

[[noreturn]] static void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

// ---- what the JSON files hold
// --------------------------------------------------------------------

DataFile describe_data(const std::string& path, const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return {fs::absolute(path).lexically_normal().string(), text.size(), hash};
}

static json config_json(const TrainConfig& config, const DataFile& data) {
  return {{"format", "pellucid 1"},
          {"train", config},
          {"data", {{"path", data.path}, {"bytes", data.bytes}, {"fnv1a", data.hash}}}};
}

static void read_config_json(const json& j, TrainConfig& config, DataFile& data) {
  CHECK_ARG(j.is_object() && j.value("format", "") == "pellucid 1",
            "wanted \"format\": \"pellucid 1\"");
  j.at("train").get_to(config);
  const json& d = j.at("data");
  data = {d.at("path").get<std::string>(), d.at("bytes").get<uint64_t>(),
          d.at("fnv1a").get<uint64_t>()};
}

static json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) refuse(path, "is damaged: this is not JSON");
  return parsed;
}

// Calls f and puts the file's name before whatever it complains about.
template <class F>
static void reading(const std::string& path, const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    refuse(path, error.what());
  }
}

// ---- the folder
// ----------------------------------------------------------------------------------

RunFolder RunFolder::create(const std::string& path) {
  const RunFolder folder(path);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) refuse(path, "this folder cannot be made: " + error.message());
  if (!fs::is_directory(path)) refuse(path, "is not a folder; give another one");
  if (access(path.c_str(), W_OK | X_OK) != 0)
    refuse(path, std::string("this folder cannot be written: ") + std::strerror(errno));
  for (const char* name : {kState, kConfig, kModel})
    if (fs::exists(folder.file(name)))
      refuse(path,
             "holds a run already; go on with it by --resume " + path + ", or give a new folder");
  return folder;
}

RunFolder RunFolder::open(const std::string& path) {
  const RunFolder folder(path);
  if (!fs::is_directory(path)) refuse(path, "no such folder; give the one that --out named");
  if (!fs::exists(folder.file(kState)) && !fs::exists(folder.file(kConfig)))
    refuse(path, "holds no run (neither state.safetensors nor config.json)");
  return folder;
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
  if (lock->fd < 0) refuse(file("lock"), std::string("cannot be made: ") + std::strerror(errno));
  if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0)
    refuse(path_, errno == EWOULDBLOCK ? std::string("another process is training in this folder")
                                       : std::string("cannot be locked: ") + std::strerror(errno));
  lock_ = lock;
}

void RunFolder::write_config(const TrainConfig& config, const CharTokenizer& tokenizer,
                             const DataFile& data) const {
  write_file_atomically(file(kTokenizer), tokenizer.to_json().dump() + "\n");
  write_file_atomically(file(kConfig), config_json(config, data).dump(2) + "\n");
}

bool RunFolder::has_state() const { return fs::exists(file(kState)); }

Checkpoint RunFolder::read_config() const {
  Checkpoint checkpoint;
  const json j = read_json(file(kConfig));
  reading(file(kConfig), [&] { read_config_json(j, checkpoint.config, checkpoint.data); });
  return checkpoint;
}

void RunFolder::commit(const Checkpoint& c) const {
  const json rest = {{"progress", c.progress},
                     {"loader", {{"epoch", c.loader.epoch}, {"next", c.loader.next}}},
                     {"seconds", c.seconds}};
  save_safetensors(file(kState), {c.tensors,
                                  {{"config", config_json(c.config, c.data).dump()},
                                   {"tokenizer", c.tokenizer.to_json().dump()},
                                   {"rest", rest.dump()}}});
}

Checkpoint RunFolder::read_state() const {
  Checkpoint c;
  reading(path_, [&] {
    SafeTensors saved = load_safetensors(file(kState));
    const auto part = [&](const char* name) {
      const auto at = saved.metadata.find(name);
      CHECK_ARG(at != saved.metadata.end(), kState, " has no \"", name, "\" in its metadata");
      return json::parse(at->second);
    };
    read_config_json(part("config"), c.config, c.data);
    c.tokenizer = CharTokenizer::from_json(part("tokenizer"));
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
  write_config(c.config, c.tokenizer, c.data);
  SafeTensors weights;
  for (const auto& [name, tensor] : c.tensors)
    if (name.rfind("model.", 0) == 0) weights.tensors[name.substr(6)] = tensor;
  save_safetensors(file(kModel), weights);
}

// ---- metrics
// -------------------------------------------------------------------------------------

void RunFolder::append_metrics(const json& line) const {
  std::ofstream out(file(kMetrics), std::ios::app | std::ios::binary);
  out << line.dump() + "\n" << std::flush;
  if (!out) refuse(file(kMetrics), "cannot be written: is the disk full?");
}

void RunFolder::cut_metrics(int64_t step) const {
  std::ifstream in(file(kMetrics), std::ios::binary);
  if (!in) return;
  std::string kept, line;
  while (std::getline(in, line)) {
    const json entry = json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || entry["step"] > step) break;
    kept += line + "\n";
  }
  write_file_atomically(file(kMetrics), kept);
}

// ---- a trained model
// -----------------------------------------------------------------------------

TrainedModel load_model(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  const TrainConfig config = folder.read_config().config;
  const std::string tokenizer_file = folder.file(kTokenizer);
  const json tokenizer_json = read_json(tokenizer_file);
  CharTokenizer tokenizer;
  reading(tokenizer_file, [&] { tokenizer = CharTokenizer::from_json(tokenizer_json); });
  if (tokenizer.vocab_size() != config.model.vocab_size)
    refuse(tokenizer_file, "has " + std::to_string(tokenizer.vocab_size()) +
                               " characters, but the model of config.json has " +
                               std::to_string(config.model.vocab_size));

  TrainedModel trained{config, tokenizer, GPT(config.model)};
  try {
    trained.model.load_state_dict(load_safetensors(folder.file(kModel)).tensors);
  } catch (const std::exception& error) {
    refuse(path,
           std::string(error.what()) +
               (folder.has_state() ? "; write it anew with: pellucid train --resume " + path : ""));
  }
  trained.model.eval();
  return trained;
}

}  // namespace pellucid::nn
