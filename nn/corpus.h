// Where training data come from: files, folders of files, the documents in them, and their tokens.
//
//   text       all files one behind the other are one running text; its last
//   tenth is held out files      each file is a document lines      each line
//   that is not empty is one separator  what lies between two separators is
//   one, and where a file begins or ends
//
// Of documents every tenth is held out, of fewer than ten the last.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nn/data.h"
#include "nn/tokenizer.h"

namespace pellucid::nn {

// What a run remembers of its data: enough to read them again, and to tell whether they are the
// same.
struct DataSource {
  std::vector<std::string> paths;  // files, or folders of files
  std::string documents = "text";  // or "files", "lines", "separator"
  std::string separator = {};      // where documents say so
  uint64_t bytes = 0, hash = 0;    // of all files; FNV-1a, a 0 between two files

  bool has_documents() const { return documents != "text"; }
};
void to_json(nlohmann::json& j, const DataSource& source);
void from_json(const nlohmann::json& j, DataSource& source);

struct Corpus {
  DataSource source;               // absolute paths, bytes and hash set
  std::vector<std::string> files;  // their texts
  // Views of files: the documents, or the two parts of the running text.
  std::vector<std::string_view> training, validation;
};

// Reads all files. Throws std::runtime_error, with the repair, for what read_text refuses, for an
// empty folder, and where there are fewer than two documents.
Corpus read_corpus(DataSource source);

// The tokens for training and for validation. Documents stand between end_of_text tokens; without
// documents there are none.
struct Tokens {
  std::vector<int64_t> training, validation;
};
Tokens encode(const Corpus& corpus, const Tokenizer& tokenizer);
// Tokens in a file, and back: none if the file is missing, damaged, or made from other data or by
// another tokenizer.
void save_tokens(const std::string& path, const DataSource& source, const Tokenizer& tokenizer,
                 const Tokens& tokens);
std::optional<Tokens> load_tokens(const std::string& path, const DataSource& source,
                                  const Tokenizer& tokenizer);

// Of all tokens but the first, which is no target: what a loss per token is divided by, and by ln
// 2, to be bits per byte. What ends a text stands for no bytes, nor does the blank that llama2 puts
// before it.
double bytes_per_token(const std::vector<int64_t>& tokens, const Tokenizer& tokenizer);

}  // namespace pellucid::nn
