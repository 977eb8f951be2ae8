// safetensors: the library's own bytes, and everything that must be refused (R64-R69).
#include "tensor/safetensors.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tensor/file_helpers.h"

using namespace pellucid;

using Values = std::vector<double>;

static std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}
static const TemporaryFolder& folder() {
  static const TemporaryFolder kFolder;
  return kFolder;
}
static SafeTensors load_bytes(const std::string& bytes) {
  spit(folder().file("x.safetensors"), bytes);
  return load_safetensors(folder().file("x.safetensors"));
}
static std::string fault_in(const std::string& bytes) {
  return fault_of(folder().file("x.safetensors"), [&] { load_bytes(bytes); });
}
// One float32 tensor "a" of 4 bytes in a header given in parts.
static std::string one(const std::string& shape, const std::string& offsets,
                       const std::string& dtype = "\"F32\"", std::size_t data = 4) {
  return fault_in(file_of(
      "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}",
      std::string(data, '\0')));
}
static SafeTensors sample() {
  return {{{"h.0.weight", tensor({{1, 2, 3}, {4, 5, 6}})},
           {"ids", from_vector(std::vector<int64_t>{INT64_MAX, -1}, {2})},
           {"mask", tensor({1, 0, 1}, kBool)},
           {"d", scalar(0.1, kFloat64)},
           {"empty", empty({0, 2})}},
          {{"step", "120"}, {"note", "a \"quoted\" \xc3\xa4\n"}}};
}
static bool same(const SafeTensors& a, const SafeTensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, x] : a.tensors) {
    const auto at = b.tensors.find(name);
    if (at == b.tensors.end()) return false;
    const Tensor& y = at->second;
    if (x.shape() != y.shape() || x.dtype() != y.dtype()) return false;
    const auto bytes = static_cast<std::size_t>(x.numel()) * item_size(x.dtype());
    if (std::memcmp(x.data(), y.data(), bytes) != 0) return false;
  }
  return true;
}

TEST_CASE("what is saved comes back: every dtype, no dimension, no element, a view, metadata") {
  const std::string path = folder().file("a.safetensors");
  save_safetensors(path, sample());
  CHECK(same(load_safetensors(path), sample()));
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  save_safetensors(path, {{{"view", alias(x, {3, 2}, {1, 3})}}, {}});
  CHECK(load_safetensors(path).tensors["view"].to_vector() == Values{1, 4, 2, 5, 3, 6});
  save_safetensors(path, {});
  CHECK(same(load_safetensors(path), {}));
}

TEST_CASE("the bytes are those of the format: wide elements first, the data aligned to 8") {
  const std::string path = folder().file("a.safetensors");
  save_safetensors(path, {{{"a", tensor({1})}, {"b", arange(2)}}, {{"k", "v"}}});
  const std::string bytes = slurp(path),
                    json =
                        "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"I64\",\"shape\":[2],"
                        "\"data_offsets\":[0,16]}"
                        ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]}}";
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(bytes.size() == 8 + length + 20);
  CHECK(bytes.substr(8, json.size()) == json);
  CHECK(bytes.substr(8 + json.size(), length - json.size()).find_first_not_of(" \t") ==
        std::string::npos);
}

TEST_CASE("a file of the library itself (safetensors 0.6, NumPy)") {
  std::string data;
  const int64_t ids[] = {0, 1, 2};
  const double d = 2.5;
  const float w[] = {0, 1, 2, 3, 4, 5};
  data.append(reinterpret_cast<const char*>(ids), 24).append(reinterpret_cast<const char*>(&d), 8);
  data.append(reinterpret_cast<const char*>(w), 24).append("\1\0\1", 3);
  const SafeTensors file = load_bytes(
      file_of("{\"__metadata__\":{\"step\":\"12\"},\"i\":{\"dtype\":\"I64\",\"shape\":[3],\"data_"
              "offsets\":[0,"
              "24]},\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[24,32]},\"w\":{"
              "\"dtype\":\"F32\","
              "\"shape\":[2,3],\"data_offsets\":[32,56]},\"m\":{\"dtype\":\"BOOL\",\"shape\":[3],"
              "\"data_offsets\":[56,59]}}     ",
              data));
  CHECK(same(file, {{{"i", arange(3)},
                     {"d", scalar(2.5, kFloat64)},
                     {"w", tensor({{0, 1, 2}, {3, 4, 5}})},
                     {"m", tensor({1, 0, 1}, kBool)}},
                    {{"step", "12"}}}));
}

TEST_CASE("headers that lie about their length (R64, R69)") {
  CHECK(fault_in("") == "is no safetensors file: shorter than 8 bytes");
  CHECK(fault_in(std::string(8, '\xff')) ==
        "is no safetensors file, or was cut short: its header would have 18446744073709551615 "
        "bytes");
  CHECK(fault_in(std::string("\x01\0\0\0\0\0\0\0", 8)) ==
        "is no safetensors file, or was cut short: its header would have 1 bytes");
  CHECK(fault_in(std::string(8, '\0')) == "bad header: it does not begin with {");
  CHECK(fault_in(file_of(" {}", "")) == "bad header: it does not begin with {");
  CHECK(fault_in(file_of("{}", "")) == "");
  CHECK(fault_in(file_of(std::string("{}\0x", 4), "")) == "bad header: it has a zero byte");
  CHECK(fault_in(file_of("{} x", "")).starts_with("bad header: "));
  CHECK(fault_in(file_of("{\"a\xff\":{}}", "")).starts_with("bad header: "));
}

TEST_CASE("duplicate keys are named (R65)") {
  const std::string a = "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}";
  CHECK(fault_in(file_of("{" + a + "," + a + "}", "1234")) ==
        "bad header: \"a\" stands there twice; wanted once");
  CHECK(fault_in(file_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[],"
                         "\"data_offsets\":[0,4]}}",
                         "1234")) == "bad header: \"dtype\" stands there twice; wanted once");
  CHECK(fault_in(file_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", "")) ==
        "bad header: \"k\" stands there twice; wanted once");
}

TEST_CASE("shapes, offsets and dtypes that do not fit (R64, R66)") {
  const int64_t before = memory_stats().system_allocations;
  CHECK(one("[1]", "[0,4]") == "");
  CHECK(one("[]", "[0,4]") == "");
  CHECK(one("[2]", "[0,4]") ==
        "bad header: tensor \"a\" has data_offsets [0,4]; its shape takes 8 bytes");
  CHECK(
      one("[1]", "[1099511627776,1099511627780]") ==
      "bad header: tensor \"a\" begins at byte 1099511627776 of the data; wanted 0 (an overlap or "
      "a hole)");
  CHECK(one("[1]", "[-4,0]") == "bad header: tensor \"a\" has -4; wanted a whole number");
  CHECK(one("[1]", "[4,0]").ends_with("[4,0]; its shape takes 4 bytes"));
  CHECK(one("[1]", "[0,4,8]") == "bad header: tensor \"a\" wants two data_offsets");
  CHECK(one("[1.0]", "[0,4]") == "bad header: tensor \"a\" has 1.0; wanted a whole number");
  CHECK(one("[-1]", "[0,4]") == "bad header: tensor \"a\" has -1; wanted a whole number");
  CHECK(one("[[1]]", "[0,4]") == "bad header: tensor \"a\" has [1]; wanted a whole number");
  CHECK(one("[18446744073709551615]", "[0,4]").ends_with("wanted a whole number"));
  CHECK(one("[4611686018427387904,4]", "[0,4]") ==
        "bad header: tensor \"a\": numel overflow: shape (4611686018427387904, 4)");
  CHECK(one("[4611686018427387904]", "[0,4]").ends_with("numel overflow"));
  CHECK(one("[0,4611686018427387904,4]", "[0,0]", "\"F32\"", 0)
            .ends_with("numel overflow: shape (0, 4611686018427387904, 4)"));
  CHECK(one("[1,1,1,1,1,1,1,1,1]", "[0,4]") ==
        "bad header: tensor \"a\" wants a shape of at most 8 dimensions");
  CHECK(one("[2]", "[0,4]", "\"F16\"") ==
        "bad header: tensor \"a\" has dtype \"F16\"; supported are F32, F64, I64 and BOOL: convert "
        "it first");
  CHECK(one("[2]", "[0,4]", "\"BF16\"").starts_with("bad header: tensor \"a\" has dtype \"BF16\""));
  CHECK(one("[1]", "[0,4]", "\"I32\"").starts_with("bad header: tensor \"a\" has dtype \"I32\""));
  CHECK(one("[1]", "[0,4]", "7").starts_with("bad header: tensor \"a\" has dtype 7"));
  CHECK(fault_in(file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", "")) ==
        "bad header: tensor \"a\" wants exactly dtype, shape and data_offsets");
  CHECK(
      fault_in(file_of("{\"a\":3}", "")).ends_with("wants exactly dtype, shape and data_offsets"));
  CHECK(fault_in(file_of("{\"__metadata__\":{\"k\":1}}", "")) ==
        "bad header: __metadata__ wants texts only");
  CHECK(fault_in(file_of("{\"__metadata__\":[]}", "")) ==
        "bad header: __metadata__ wants an object of texts");
  CHECK(fault_in(file_of("{\"a\":" + std::string(100'000, '['), "")) == "bad header: lists and objects lie more than 4 deep");
  CHECK(memory_stats().system_allocations <= before + 1);  // that of the two good ones
}

TEST_CASE("the tensors tile the data: no overlap, no hole, no tail (R67)") {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    const std::string rest = "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":";
    return fault_in(
        file_of("{\"a\":" + rest + a + "},\"b\":" + rest + b + "}}", std::string(data, '\0')));
  };
  CHECK(two("[0,4]", "[4,8]", 8) == "");
  CHECK(two("[4,8]", "[0,4]", 8) == "");
  CHECK(two("[0,4]", "[0,4]", 4) ==
        "bad header: tensor \"b\" begins at byte 0 of the data; wanted 4 (an overlap or a hole)");
  CHECK(two("[0,4]", "[8,12]", 12).ends_with("wanted 4 (an overlap or a hole)"));
  CHECK(two("[0,4]", "[2,6]", 6).ends_with("wanted 4 (an overlap or a hole)"));
  CHECK(two("[0,4]", "[4,8]", 9) ==
        "holds 9 bytes of data, but its header describes 8: it was cut short, or something was "
        "added");
  CHECK(one("[0]", "[2,2]").ends_with("wanted 0 (an overlap or a hole)"));
  CHECK(one("[2]", "[0,2]", "\"BOOL\"", 2) == "");
  CHECK(fault_in(file_of("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                         "\2")) == "tensor \"a\" has a bool that is neither 0 nor 1");
}

// Flips each bit of the length and of the header in turn; how many are refused.
static std::size_t refused_flips(const std::string& path, std::size_t bits) {
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    flip_bit(path, bit);
    refused += fault_of(path, [&] { load_safetensors(path); }) != "";
    flip_bit(path, bit);
  }
  return refused;
}

TEST_CASE("every flipped bit of the header and every truncation is refused (R69)") {
  const std::string path = folder().file("a.safetensors");
  save_safetensors(path, sample());
  const std::string whole = slurp(path);
  uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  CHECK(refused_flips(path, 8 * (8 + length)) == 8 * (8 + length));
  CHECK(same(load_safetensors(path), sample()));
  for (std::size_t n = whole.size(); n-- > 0;) {
    std::filesystem::resize_file(path, n);
    REQUIRE(fault_of(path, [&] { load_safetensors(path); }) != "");
  }
}

TEST_CASE("without our checksum a flipped bit of a name passes, and none asks for much memory") {
  const std::string header =
      "{\"ab\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"c\":{\"dtype\":"
      "\"I64\","
      "\"shape\":[],\"data_offsets\":[24,32]}}   ";
  const std::string path = folder().file("b.safetensors");
  spit(path, file_of(header, std::string(32, '\0')));
  reset_peak();
  const int64_t before = memory_stats().peak_bytes_in_use;
  const std::size_t bits = 8 * (8 + header.size());
  CHECK(refused_flips(path, bits) >= bits - 24);  // three letters
  CHECK(memory_stats().peak_bytes_in_use <= before + 256);
}

TEST_CASE("what cannot be saved is refused, and the old file stays") {
  const std::string path = folder().file("keep.safetensors");
  save_safetensors(path, sample());
  CHECK_THROWS_AS(save_safetensors(path, {{{"__metadata__", scalar(1)}}, {}}),
                  std::invalid_argument);
  CHECK(fault_of(path, [&] {
          save_safetensors(path, {{{"\xff", scalar(1)}}, {}});
        }).starts_with("a name or a text is not valid UTF-8"));
  CHECK(same(load_safetensors(path), sample()));
  const std::string nowhere = folder().file("no/such.safetensors");
  CHECK(fault_of(nowhere, [&] {
          save_safetensors(nowhere, {});
        }).ends_with("No such file or directory; check the path, and make its folder first"));
}

TEST_CASE("killed while saving: the file is always one of those that were saved") {
  const std::string path = folder().file("killed.safetensors");
  std::vector<SafeTensors> versions;
  for (int v = 0; v < 4; ++v)
    versions.push_back(
        {{{"w", from_vector(Values(50'000, v), {50'000})}}, {{"version", std::to_string(v)}}});
  save_safetensors(path, versions[0]);
  const auto start = std::chrono::steady_clock::now();
  save_safetensors(path, versions[0]);
  const std::chrono::duration<double, std::micro> one_save =
      std::chrono::steady_clock::now() - start;
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (std::size_t v = 0;; ++v) save_safetensors(path, versions[v % 4]);
    ::usleep(static_cast<useconds_t>(one_save.count() * (0.3 + 0.17 * round)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const SafeTensors found = load_safetensors(path);
    REQUIRE(same(found, versions[std::stoul(found.metadata.at("version"))]));
  }
}
