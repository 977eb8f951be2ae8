#include "nn/corpus.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "tensor/check.h"
#include "tensor/files.h"

namespace pellucid::nn {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr uint64_t kFnvStart = 0xcbf29ce484222325u;
uint64_t fnv1a(std::string_view bytes, uint64_t hash = kFnvStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The file, or the files in the folder and below it by their names, hidden ones left out.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (auto at = fs::recursive_directory_iterator(path); at != fs::end(at); ++at) {
    const bool hidden = at->path().filename().string().starts_with('.');
    if (hidden && at->is_directory()) at.disable_recursion_pending();
    if (!hidden && !at->is_directory()) files.push_back(at->path().string());
  }
  if (files.empty())
    throw std::runtime_error(path + ": holds no files; give a folder of text files");
  std::sort(files.begin(), files.end());
  return files;
}

// The parts of text between separators.
std::vector<std::string_view> parts(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> found;
  for (std::size_t at = 0, end; at <= text.size(); at = end + separator.size()) {
    end = std::min(text.find(separator, at), text.size());
    found.push_back(text.substr(at, end - at));
  }
  return found;
}

// Without the line ends around it.
std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of("\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of("\r\n") + 1 - begin);
}

std::vector<std::string_view> documents_of(const Corpus& corpus) {
  std::vector<std::string_view> documents;
  for (const std::string& file : corpus.files) {
    if (corpus.source.documents == "files") {
      documents.push_back(file);
      continue;
    }
    const bool lines = corpus.source.documents == "lines";
    for (std::string_view part : parts(file, lines ? "\n" : corpus.source.separator))
      if (part = trimmed(part); !part.empty()) documents.push_back(part);
  }
  return documents;
}

}  // namespace

void to_json(json& j, const DataSource& s) {
  j = {{"paths", s.paths}, {"documents", s.documents}, {"bytes", s.bytes}, {"fnv1a", s.hash}};
  if (!s.separator.empty()) j["separator"] = s.separator;
}

void from_json(const json& j, DataSource& s) {
  DataSource read;
  // Runs begun before there were documents have one path.
  read.paths = j.contains("path") ? std::vector{j.at("path").get<std::string>()}
                                  : j.at("paths").get<std::vector<std::string>>();
  read.documents = j.value("documents", "text");
  read.separator = j.value("separator", "");
  read.bytes = j.at("bytes").get<uint64_t>(), read.hash = j.at("fnv1a").get<uint64_t>();
  const std::vector<std::string> kinds = {"text", "files", "lines", "separator"};
  CHECK_ARG(std::count(kinds.begin(), kinds.end(), read.documents) == 1 &&
                read.separator.empty() == (read.documents != "separator"),
            "data: documents must be text, files, lines or separator; got ", j.dump());
  s = read;
}

Corpus read_corpus(DataSource source) {
  Corpus corpus;
  source.bytes = 0, source.hash = kFnvStart;
  for (const std::string& path : source.paths) {
    for (const std::string& file : files_of(path)) {
      if (!corpus.files.empty()) source.hash = fnv1a(std::string_view("", 1), source.hash);
      corpus.files.push_back(read_text(file));
      source.bytes += corpus.files.back().size();
      source.hash = fnv1a(corpus.files.back(), source.hash);
    }
  }
  corpus.source = source;
  for (std::string& path : corpus.source.paths)
    path = fs::weakly_canonical(path).string();  // the .. behind a link is its target's

  if (!source.has_documents()) {
    std::string& text = corpus.files[0];
    for (std::size_t i = 1; i < corpus.files.size(); ++i) text += corpus.files[i];
    corpus.files.resize(1);
    const std::string_view all = text;
    corpus.training = {all.substr(0, all.size() - all.size() / 10)};
    corpus.validation = {all.substr(all.size() - all.size() / 10)};
    return corpus;
  }
  const std::vector<std::string_view> documents = documents_of(corpus);
  if (documents.size() < 2)
    throw std::runtime_error(source.paths[0] + ": has " + std::to_string(documents.size()) +
                             (documents.empty() ? " documents" : " document") +
                             ", too few: one is for training and one for validation; give "
                             "more, or read it as one text by --documents text");
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const bool held_out = documents.size() < 10 ? i + 1 == documents.size() : i % 10 == 9;
    (held_out ? corpus.validation : corpus.training).push_back(documents[i]);
  }
  return corpus;
}

// ---- tokens ----

static std::vector<int64_t> encode_texts(const std::vector<std::string_view>& texts,
                                         const Tokenizer& tokenizer, bool documents) {
  std::vector<int64_t> ids;
  if (documents) ids.push_back(tokenizer.end_of_text().value());
  for (const std::string_view text : texts) {
    const std::vector<int64_t> more = tokenizer.encode(text);
    ids.insert(ids.end(), more.begin(), more.end());
    if (documents) ids.push_back(ids[0]);
  }
  return ids;
}

Tokens encode(const Corpus& corpus, const Tokenizer& tokenizer) {
  const bool documents = corpus.source.has_documents();
  CHECK_ARG(!documents || tokenizer.end_of_text(),
            "the tokenizer has no token that ends a document");
  return {encode_texts(corpus.training, tokenizer, documents),
          encode_texts(corpus.validation, tokenizer, documents)};
}

static json tokens_key(const DataSource& source, const Tokenizer& tokenizer) {
  return {{"format", "pellucid tokens 1"},
          {"data", {source.bytes, source.hash, source.documents, fnv1a(source.separator)}},
          {"tokenizer", fnv1a(tokenizer.to_json().dump())}};
}

// The file: one line of JSON, then the ids as uint32.
void save_tokens(const std::string& path, const DataSource& source, const Tokenizer& tokenizer,
                 const Tokens& tokens) {
  std::vector<uint32_t> ids(tokens.training.begin(), tokens.training.end());
  ids.insert(ids.end(), tokens.validation.begin(), tokens.validation.end());
  const std::string_view payload(reinterpret_cast<const char*>(ids.data()),
                                 ids.size() * sizeof(uint32_t));
  const json header = {{"key", tokens_key(source, tokenizer)},
                       {"training", tokens.training.size()},
                       {"validation", tokens.validation.size()},
                       {"fnv1a", fnv1a(payload)}};
  write_file_atomically(path, header.dump() + "\n" + std::string(payload));
}

std::optional<Tokens> load_tokens(const std::string& path, const DataSource& source,
                                  const Tokenizer& tokenizer) try {
  const std::string file = read_file(path);
  const std::size_t line = file.find('\n');
  const json header = json::parse(file.substr(0, line));
  const std::string_view payload = std::string_view(file).substr(line + 1);
  const auto training = header.at("training").get<std::size_t>(),
             validation = header.at("validation").get<std::size_t>();
  if (header.at("key") != tokens_key(source, tokenizer) || header.at("fnv1a") != fnv1a(payload) ||
      payload.size() != (training + validation) * sizeof(uint32_t))
    return std::nullopt;
  std::vector<uint32_t> ids(training + validation);
  std::memcpy(ids.data(), payload.data(), payload.size());
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(training);
  return Tokens{{ids.begin(), middle}, {middle, ids.end()}};
} catch (const std::exception&) {
  return std::nullopt;
}

double bytes_per_token(const std::vector<int64_t>& tokens, const Tokenizer& tokenizer) {
  std::vector<std::size_t> sizes;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id)
    sizes.push_back(tokenizer.token(id).size());
  std::size_t bytes = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    bytes += tokens[i - 1] == tokenizer.end_of_text()
                 ? tokenizer.decode({tokens[i]}).size()  // as a text begins
                 : sizes[static_cast<std::size_t>(tokens[i])];
  return static_cast<double>(bytes) / static_cast<double>(tokens.size() - 1);
}

}  // namespace pellucid::nn
