// The main of every exercise program. Its first line of input is
//   NONCE SEED CHECK...
// and on descriptor 3 it answers, for each of these checks in turn,
//   NONCE begin CHECK
//   NONCE call CODE       before each call of a function that is graded
//   NONCE pass CHECK, or NONCE fail CHECK TEXT, or NONCE unwritten CHECK FUNCTION
// and at last NONCE end; in CODE and TEXT, \n stands for a line's end and \\ for \ . Only who knows
// the nonce can write such lines.
#include "tutorials/course/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <sstream>
#include <stdexcept>

namespace pellucid::course {

namespace {

struct CaseFailed {
  std::string text;
};

constexpr int kResults = 3;

// What was read up to the first blank, masked, so that a plain search of the memory does not find
// it.
struct {
  std::string mask, masked;
} nonce;

std::string call;

std::string one_line(const std::string& text) {
  std::string line;
  for (char c : text) {
    if (c == '\\') line += "\\\\";
    if (c == '\n') line += "\\n";
    if (c != '\\' && c != '\n') line += c;
  }
  return line;
}

// The bytes are overwritten when they are sent: the nonce is among them.
void say(const std::string& line) {
  std::string bytes = nonce.masked + " " + line + "\n";
  for (std::size_t i = 0; i < nonce.mask.size(); ++i)
    bytes[i] = static_cast<char>(bytes[i] ^ nonce.mask[i]);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = write(kResults, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) _exit(1);
    sent += static_cast<std::size_t>(n);
  }
  for (volatile char& c : bytes) c = 0;
}

void read_nonce() {
  std::random_device random;
  for (char c = 0; read(0, &c, 1) == 1 && c != ' ';) {
    nonce.mask += static_cast<char>(random());
    nonce.masked += static_cast<char>(c ^ nonce.mask.back());
  }
}

std::string read_line() {
  std::string line;
  for (char c = 0; read(0, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

uint64_t seed_of(uint64_t seed, const std::string& check) {
  for (char c : check) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

// What a function of the stub throws: "NAME is not written yet".
std::string unwritten(const std::logic_error& error) {
  const std::string text = error.what(), end = " is not written yet";
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : "";
}

// What a check that wants a refusal adds to another exception's text.
const char* wanted_instead(const Check& check, const std::exception& error) {
  const bool refuses = std::string(check.name).ends_with("_refuses");
  return refuses && !dynamic_cast<const std::invalid_argument*>(&error)
             ? "\nwhat does not fit is refused by std::invalid_argument, which CHECK_ARG throws"
             : "";
}

struct Verdict {
  const char* word;
  std::string text = {};  // of a failure, the call and what it gave
};

Verdict verdict(const Check& check, uint64_t seed) {
  Random random(seed_of(seed, check.name));
  call = "";
  try {
    check.run(random);
    return {"pass"};
  } catch (const CaseFailed& failed) {
    return {"fail", call + failed.text};
  } catch (const std::exception& error) {
    const auto* logic = dynamic_cast<const std::logic_error*>(&error);
    if (logic && !unwritten(*logic).empty()) return {"unwritten", unwritten(*logic)};
    return {"fail", call + "throws an exception: " + error.what() + wanted_instead(check, error)};
  } catch (...) {
    return {"fail", call + "throws an exception that is no std::exception"};
  }
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t Random::whole(int64_t least, int64_t most) {
  return least + static_cast<int64_t>(next() % static_cast<uint64_t>(most - least + 1));
}

void calling(const std::string& code) {
  call = code + "\n";
  say("call " + one_line(call));
}

void fail_case(const std::string& what) { throw CaseFailed{what}; }

}  // namespace pellucid::course

int main() {
  using namespace pellucid::course;
  // What the learner's file prints is seen without a flush; std::cout writes through stdout.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  read_nonce();
  std::istringstream line(read_line());
  std::string wanted;
  uint64_t seed = 0;
  line >> seed;
  while (line >> wanted)
    for (const Check& check : kChecks) {
      if (wanted != check.name) continue;
      say("begin " + wanted);
      const auto [word, text] = verdict(check, seed);
      say(std::string(word) + " " + wanted + " " + one_line(text));
    }
  say("end");
  _exit(0);  // what the learner's file would do from here on is of no interest
}
