// .npy: the bytes that NumPy writes (2.4), and everything that must be refused.
#include "tensor/npy.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tensor/file_helpers.h"

using namespace pellucid;

using Values = std::vector<double>;

// The file of NumPy for a header and data, padded to a multiple of 64.
static std::string npy(const std::string& header, const std::string& data, int major = 1) {
  const std::size_t width = major == 1 ? 2 : 4;
  std::string text = header;
  while ((6 + 2 + width + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string length(width, '\0');
  length[0] = static_cast<char>(text.size());
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' + length + text + data;
}
template <class T>
static std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
static const std::vector<float> kSix{0, 1, 2, 3, 4, 5};
static const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

static std::string fault_in(const std::string& bytes) {
  static const TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  spit(path, bytes);
  return fault_of(path, [&] { load_npy(path); });
}

TEST_CASE("what is written is what NumPy writes, byte by byte") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  const Tensor x = tensor({{0, 1, 2}, {3, 4, 5}});
  save_npy(path, x);
  CHECK(slurp(path) == npy(kHeader, bytes_of(kSix)));
  CHECK(slurp(path).size() == 152);
  save_npy(path, alias(x, {3, 2}, {1, 3}));  // a view is packed
  CHECK(load_npy(path).to_vector() == Values{0, 3, 1, 4, 2, 5});
  save_npy(path, scalar(7, kInt64));
  CHECK(slurp(path) == npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }",
                           bytes_of(std::vector<int64_t>{7})));
  save_npy(path, tensor({1, 0}, kBool));
  CHECK(slurp(path) ==
        npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", std::string("\1\0", 2)));
  save_npy(path, empty({0, 3}, kFloat64));
  CHECK(slurp(path) == npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", ""));
}

TEST_CASE("every dtype and shape comes back as it went") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  for (DType dtype : {kFloat32, kFloat64, kInt64, kBool})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{2, 1, 3},
                               Shape{1, 1, 1, 2, 1, 1, 1, 3}}) {
      Tensor x = astype(arange(shape.numel()), dtype);
      x = alias(x, shape, row_major(shape));
      save_npy(path, x);
      const Tensor y = load_npy(path);
      CHECK(y.shape() == shape);
      CHECK(y.dtype() == dtype);
      CHECK(y.to_vector() == x.to_vector());
    }
}

TEST_CASE("version 2.0, Fortran's order, keys in another order and no trailing comma") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  spit(path, npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }",
                 bytes_of(std::vector<double>{0, 3, 1, 4, 2, 5}), 2));
  const Tensor x = load_npy(path);
  CHECK(x.to_vector() == Values{0, 1, 2, 3, 4, 5});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.is_contiguous());
  spit(path, npy("{\"shape\":(6,),'fortran_order':False,'descr':'<f4'}", bytes_of(kSix)));
  CHECK(load_npy(path).to_vector() == Values{0, 1, 2, 3, 4, 5});
}

TEST_CASE("what is not supported says so and how to mend it") {
  const auto with = [](const std::string& descr) {
    return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2, 3), }",
               bytes_of(kSix));
  };
  CHECK(fault_in(with(">f4")) ==
        "is big-endian ('>f4'); in Python: np.save(path, a.astype('<f4'))");
  CHECK(fault_in(with("<i4")) ==
        "has dtype '<i4'; supported are <f4, <f8, <i8 and |b1: convert it first");
  CHECK(fault_in(with("|O")).starts_with("has dtype '|O'"));
  CHECK(fault_in(npy(kHeader, bytes_of(kSix), 3)) ==
        "has .npy version 3.0; supported are 1.0 and 2.0");
}

TEST_CASE("bad headers, sizes and values are refused before anything is allocated") {
  const int64_t before = memory_stats().system_allocations;
  const auto header = [](const std::string& text) { return fault_in(npy(text, bytes_of(kSix))); };
  const std::string start = "{'descr': '<f4', 'fortran_order': False, ";
  CHECK(fault_in("") == "is no .npy file: shorter than 10 bytes");
  CHECK(fault_in(std::string(200, 'x')) == "is no .npy file: it does not begin with \\x93NUMPY");
  CHECK(header(start + "}") == "bad .npy header: descr, fortran_order or shape is missing");
  CHECK(header(start + "'descr': '<f4', 'shape': (6,)}") ==
        "bad .npy header: the key 'descr' is unknown or stands there twice");
  CHECK(header(start + "'shape': (6)}") == "bad .npy header: a tuple of one wants a comma");
  CHECK(header(start + "'shape': (-6,)}") == "bad .npy header: wanted a whole number in shape");
  CHECK(header(start + "'shape': (1,1,1,1,1,1,1,1,6)}") ==
        "bad .npy header: more than 8 dimensions");
  CHECK(header(start + "'shape': (99999999999999999999,)}") ==
        "bad .npy header: a size is beyond int64");
  CHECK(header(start + "'shape': (4611686018427387904, 4, 0)}") ==
        "bad .npy header: numel overflow: shape (4611686018427387904, 4, 0)");
  CHECK(header(start + "'shape': (1099511627776,)}") ==
        "holds 24 bytes of data; its shape takes 4398046511104: it was cut short, or something was "
        "added");
  CHECK(header(kHeader + "x") == "bad .npy header: something follows the header's }");
  CHECK(fault_in(npy(kHeader, bytes_of(kSix) + "x")).starts_with("holds 25 bytes of data"));
  CHECK(memory_stats().system_allocations == before);
  CHECK(fault_in(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\2")) ==
        "has a bool that is neither 0 nor 1");
}

TEST_CASE("every truncation is refused; so is every flipped bit, or it changes nothing") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npy"), whole = npy(kHeader, bytes_of(kSix));
  spit(path, whole);
  Tensor x;
  const auto fault = [&] { return fault_of(path, [&] { x = load_npy(path); }); };
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 24); ++bit) {
    flip_bit(path, bit);
    // A space may become an equal one: the header has no checksum; nothing else may pass.
    if (fault().empty()) {
      REQUIRE(x.shape() == Shape{2, 3});
      REQUIRE(x.to_vector() == Values{0, 1, 2, 3, 4, 5});
    }
    flip_bit(path, bit);
  }
  REQUIRE(fault() == "");
  for (std::size_t n = whole.size(); n-- > 0;) {
    std::filesystem::resize_file(path, n);
    REQUIRE(fault() != "");
  }
}
