// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
//   \x93NUMPY, major, minor, the header's length (2 bytes; 4 from version 2 on), then the header,
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, spaces and a line feed; the data.
#include "tensor/npy.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tensor/files.h"

namespace pellucid {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::pair<DType, std::string_view> kDescr[] = {
    {kFloat32, "<f4"}, {kFloat64, "<f8"}, {kInt64, "<i8"}, {kBool, "|b1"}};

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// Reads the header, which is a literal of Python with the three keys in any order.
class HeaderParser {
 public:
  HeaderParser(const InputFile& file, std::string_view text) : file_(file), rest_(text) {}

  Header parse() {
    Header header;
    bool seen[3] = {};
    expect("{");
    while (!accept("}")) {
      const std::string key = quoted();
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3 || seen[which])
        fault("the key '" + key + "' is unknown or stands there twice");
      seen[which] = true;
      expect(":");
      if (which == 0) header.descr = quoted();
      if (which == 1) header.fortran_order = truth();
      if (which == 2) header.shape = tuple();
      if (!accept(",")) {
        expect("}");
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2]) fault("descr, fortran_order or shape is missing");
    skip_space();
    if (!rest_.empty()) fault("something follows the header's }");
    return header;
  }

 private:
  [[noreturn]] void fault(const std::string& what) const { file_.fail("bad .npy header: " + what); }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fault("wanted " + std::string(token));
  }
  std::string quoted() {
    skip_space();
    const char quote = rest_.empty() ? ' ' : rest_[0];
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) fault("wanted a text");
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool truth() {
    if (accept("True")) return true;
    expect("False");
    return false;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, rest_[digits] - '0', &value))
        fault("a size is beyond int64");
    if (digits == 0) fault("wanted a whole number in shape");
    rest_.remove_prefix(digits);
    return value;
  }
  // (), (2,) or (2, 3)
  Shape tuple() {
    Shape shape;
    expect("(");
    while (!accept(")")) {
      if (shape.dim() == kMaxDim) fault("more than " + std::to_string(kMaxDim) + " dimensions");
      shape.push_back(number());
      if (!accept(",")) {
        if (shape.dim() == 1) fault("a tuple of one wants a comma");
        expect(")");
        break;
      }
    }
    return shape;
  }

  const InputFile& file_;
  std::string_view rest_;
};

std::string read_header(InputFile& file) {
  unsigned char start[8], length[4] = {};
  if (file.size() < 10) file.fail("is no .npy file: shorter than 10 bytes");
  file.read(start, 8);
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0)
    file.fail("is no .npy file: it does not begin with \\x93NUMPY");
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 2 || minor != 0)
    file.fail("has .npy version " + std::to_string(major) + "." + std::to_string(minor) +
              "; supported are 1.0 and 2.0");
  const std::size_t width = major == 1 ? 2 : 4;
  if (file.size() < 8 + width) file.fail("was cut short");
  file.read(length, width);
  uint32_t bytes = 0;
  std::memcpy(&bytes, length, 4);
  if (bytes > file.size() - 8 - width)
    file.fail("was cut short: its header would have " + std::to_string(bytes) + " bytes");
  std::string header(bytes, '\0');
  file.read(header.data(), bytes);
  return header;
}

DType dtype_of_descr(const InputFile& file, const std::string& descr) {
  for (const auto& [dtype, text] : kDescr)
    if (descr == text) return dtype;
  if (descr.starts_with('>'))
    file.fail("is big-endian ('" + descr + "'); in Python: np.save(path, a.astype('<" +
              descr.substr(1) + "'))");
  file.fail("has dtype '" + descr + "'; supported are <f4, <f8, <i8 and |b1: convert it first");
}

}  // namespace

Tensor load_npy(const std::string& path) {
  InputFile file(path);
  const std::string text = read_header(file);
  const Header header = HeaderParser(file, text).parse();
  const DType dtype = dtype_of_descr(file, header.descr);

  uint64_t bytes = 0;
  try {
    if (__builtin_mul_overflow(static_cast<uint64_t>(header.shape.numel()), item_size(dtype),
                               &bytes))
      throw std::invalid_argument("numel overflow");
  } catch (const std::invalid_argument& error) {
    file.fail(std::string("bad .npy header: ") + error.what());
  }
  if (bytes != file.left())
    file.fail("holds " + std::to_string(file.left()) + " bytes of data; its shape takes " +
              std::to_string(bytes) + ": it was cut short, or something was added");

  // In Fortran's order the file holds the transpose.
  Shape stored;
  for (int d = 0; d < header.shape.dim(); ++d)
    stored.push_back(header.shape[header.fortran_order ? -1 - d : d]);
  Tensor x = empty(stored, dtype);
  file.read(x.data(), bytes);
  const auto* values = static_cast<const unsigned char*>(x.data());
  if (dtype == kBool && std::any_of(values, values + bytes, [](auto b) { return b > 1; }))
    file.fail("has a bool that is neither 0 nor 1");
  if (!header.fortran_order) return x;
  Shape strides;
  for (int d = 0; d < stored.dim(); ++d) strides.push_back(x.stride(-1 - d));
  return packed(alias(x, header.shape, strides));
}

void save_npy(const std::string& path, const Tensor& x) {
  const Tensor from = on_cpu(x);
  const auto* descr = std::find_if(std::begin(kDescr), std::end(kDescr),
                                   [&](const auto& pair) { return pair.first == x.dtype(); });
  std::ostringstream header;
  header << "{'descr': '" << descr->second << "', 'fortran_order': False, 'shape': (";
  for (int d = 0; d < x.dim(); ++d) header << (d ? ", " : "") << x.size(d);
  header << (x.dim() == 1 ? ",), }" : "), }");

  // Spaces and a line feed make the data begin at a multiple of 64.
  std::string text = header.str();
  text.append(63 - (kMagic.size() + 4 + text.size()) % 64, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  write_file_atomically(path, [&](const Put& put) {
    put(kMagic.data(), kMagic.size());
    put("\x01", 2);  // version 1, 0
    put(&length, 2);
    put(text.data(), text.size());
    put(from.data(), static_cast<std::size_t>(x.numel()) * item_size(x.dtype()));
  });
}

}  // namespace pellucid
