// Reads a header in four steps, each refusing what the next would stumble over: its length, its
// JSON, each tensor's line, and how the lines together cover the data. Then come the tensors.
#include "tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/device.h"
#include "tensor/files.h"
#include "tensor/json.h"

namespace pellucid {

static_assert(std::endian::native == std::endian::little, "the file formats are little-endian");

namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadata = "__metadata__";
constexpr std::pair<DType, const char*> kDTypeNames[] = {
    {kFloat32, "F32"}, {kFloat64, "F64"}, {kInt64, "I64"}, {kBool, "BOOL"}};

// The format has no checksum: a flipped bit in a name or in a step's number would load as another
// file. So our headers end in 33 characters of white space, which every reader skips: a tab, then
// the 32 bits of a CRC of all that stands before it, highest first, tab for 1 and space for 0. A
// flipped bit makes neither the other.
constexpr std::size_t kSealLength = 33;

uint32_t crc32(std::string_view text) {
  uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

std::string seal_of(std::string_view text) {
  const uint32_t crc = crc32(text);
  std::string seal = "\t";
  for (int bit = 31; bit >= 0; --bit) seal += (crc >> bit) & 1 ? '\t' : ' ';
  return seal;
}

bool seal_is_broken(std::string_view header) {
  if (header.size() < kSealLength) return false;
  const std::string_view seal = header.substr(header.size() - kSealLength);
  const bool sealed = seal.find('\t') != std::string_view::npos &&
                      seal.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return sealed && seal != seal_of(header.substr(0, header.size() - kSealLength));
}

struct Entry {
  std::string name;
  DType dtype = kFloat32;
  Shape shape{};
  uint64_t begin = 0, end = 0;
};

uint64_t whole_number(const InputFile& file, const std::string& where, const json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
    file.fail("bad header: " + where + " has " + value.dump() + "; wanted a whole number");
  return value.get<uint64_t>();
}

DType dtype_named(const InputFile& file, const std::string& where, const json& value) {
  for (const auto& [dtype, text] : kDTypeNames)
    if (value == text) return dtype;
  file.fail("bad header: " + where + " has dtype " + value.dump() +
            "; supported are F32, F64, I64 and BOOL: convert it first");
}

// One tensor's line of the header; its range must be as long as its shape and dtype say.
Entry read_entry(const InputFile& file, const std::string& name, const json& value) {
  const std::string where = "tensor " + json(name).dump();
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    file.fail("bad header: " + where + " wants exactly dtype, shape and data_offsets");
  Entry entry{.name = name, .dtype = dtype_named(file, where, value["dtype"])};
  const json &shape = value["shape"], &offsets = value["data_offsets"];
  if (!shape.is_array() || shape.size() > kMaxDim)
    file.fail("bad header: " + where + " wants a shape of at most " + std::to_string(kMaxDim) +
              " dimensions");
  for (const json& size : shape)
    entry.shape.push_back(static_cast<int64_t>(whole_number(file, where, size)));
  if (!offsets.is_array() || offsets.size() != 2)
    file.fail("bad header: " + where + " wants two data_offsets");
  entry.begin = whole_number(file, where, offsets[0]);
  entry.end = whole_number(file, where, offsets[1]);

  uint64_t bytes = 0;
  try {
    if (__builtin_mul_overflow(static_cast<uint64_t>(entry.shape.numel()), item_size(entry.dtype),
                               &bytes))
      throw std::invalid_argument("numel overflow");
  } catch (const std::invalid_argument& error) {
    file.fail("bad header: " + where + ": " + error.what());
  }
  if (entry.begin > entry.end || entry.end - entry.begin != bytes)
    file.fail("bad header: " + where + " has data_offsets " + offsets.dump() +
              "; its shape takes " + std::to_string(bytes) + " bytes");
  return entry;
}

// In the order of their bytes, the tensors must tile the data: no overlap, no hole, no tail.
void check_tiling(const InputFile& file, std::vector<Entry>& entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      file.fail("bad header: tensor " + json(entry.name).dump() + " begins at byte " +
                std::to_string(entry.begin) + " of the data; wanted " + std::to_string(at) +
                " (an overlap or a hole)");
    at = entry.end;
  }
  if (at != data_bytes)
    file.fail("holds " + std::to_string(data_bytes) + " bytes of data, but its header describes " +
              std::to_string(at) + ": it was cut short, or something was added");
}

std::string read_header(InputFile& file) {
  uint64_t length = 0;
  if (file.size() < 8) file.fail("is no safetensors file: shorter than 8 bytes");
  file.read(&length, 8);
  if (length > kMaxHeader || length > file.size() - 8)
    file.fail("is no safetensors file, or was cut short: its header would have " +
              std::to_string(length) + " bytes");
  std::string header(length, '\0');
  file.read(header.data(), length);
  if (header.empty() || header[0] != '{') file.fail("bad header: it does not begin with {");
  // The parser takes a zero byte for the end of the text.
  if (header.find('\0') != std::string::npos) file.fail("bad header: it has a zero byte");
  if (seal_is_broken(header)) file.fail("bad header: its checksum is wrong, the file is damaged");
  return header;
}

Tensor read_tensor(InputFile& file, const Entry& entry) {
  Tensor x = empty(entry.shape, entry.dtype);
  file.read(x.data(), entry.end - entry.begin);
  const auto* bytes = static_cast<const unsigned char*>(x.data());
  if (entry.dtype == kBool && std::any_of(bytes, bytes + x.numel(), [](auto b) { return b > 1; }))
    file.fail("tensor " + json(entry.name).dump() + " has a bool that is neither 0 nor 1");
  return x;
}

}  // namespace

SafeTensors load_safetensors(const std::string& path) {
  InputFile file(path);
  const std::string header = read_header(file);
  json parsed;
  try {
    parsed = parse_json(header, true, 4);
  } catch (const std::exception& error) {
    file.fail(std::string("bad header: ") + error.what());
  }
  SafeTensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : parsed.items()) {
    if (name != kMetadata) {
      entries.push_back(read_entry(file, name, value));
      continue;
    }
    if (!value.is_object()) file.fail("bad header: __metadata__ wants an object of texts");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) file.fail("bad header: __metadata__ wants texts only");
      result.metadata[key] = text.get<std::string>();
    }
  }
  check_tiling(file, entries, file.size() - 8 - header.size());
  for (const Entry& entry : entries) result.tensors[entry.name] = read_tensor(file, entry);
  return result;
}

void save_safetensors(const std::string& path, const SafeTensors& file) {
  // Wider elements first, so that every tensor is aligned to its element; then by name.
  std::vector<std::pair<std::string, Tensor>> order(file.tensors.begin(), file.tensors.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return item_size(a.second.dtype()) > item_size(b.second.dtype());
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[kMetadata] = file.metadata;
  uint64_t at = 0;
  for (const auto& [name, x] : order) {
    CHECK_ARG(name != kMetadata, path, ": no tensor may be called __metadata__");
    const uint64_t bytes = static_cast<uint64_t>(x.numel()) * item_size(x.dtype());
    const auto* text = std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                                    [&](const auto& pair) { return pair.first == x.dtype(); });
    header[name] = {{"dtype", text->second},
                    {"shape", std::vector<int64_t>(x.shape().begin(), x.shape().end())},
                    {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }

  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    throw std::runtime_error(path + ": a name or a text is not valid UTF-8: " + error.what());
  }
  while ((text.size() + kSealLength) % 8 != 0) text += ' ';
  text += seal_of(text);
  const uint64_t length = text.size();
  if (length > kMaxHeader) throw std::runtime_error(path + ": its header would pass 100 MB");

  write_file_atomically(path, [&](const Put& put) {
    put(&length, 8);
    put(text.data(), text.size());
    for (const auto& [name, x] : order)
      put(on_cpu(x).data(), static_cast<std::size_t>(x.numel()) * item_size(x.dtype()));
  });
}

}  // namespace pellucid
