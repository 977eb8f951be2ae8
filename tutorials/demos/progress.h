// A progress line for anything that takes more than two seconds: one line that is written over on a
// terminal, one plain line a report elsewhere. ASCII, no colour, on stderr unless said otherwise.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace pellucid::demos {

bool is_terminal(int fd);  // 1 stdout, 2 stderr

// "12 s", "3 min 05 s", "2 h 10 min".
std::string duration(double seconds);

class Progress {
 public:
  // `title` begins each line. Not on a terminal, a report is printed at most every
  // `seconds_between`.
  explicit Progress(std::string title, double seconds_between = 10, int fd = 2);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done of total; `text` is what else there is to say, its parts two spaces apart: a terminal
  // shows as many as fit.
  void report(int64_t done, int64_t total, const std::string& text = "");
  // A line of its own that stays, above those of the reports.
  void note(const std::string& text);
  // Ends the line, so that what is printed next begins on a new one. The last report always stands.
  void finish();
  double seconds() const;  // since the beginning

 private:
  using Clock = std::chrono::steady_clock;
  void write_over(std::string line, const char* end);
  std::string title_, last_;
  double seconds_between_;
  int fd_;
  bool terminal_, open_ = false;
  std::size_t width_ = 0;
  Clock::time_point start_ = Clock::now(), printed_{};
};

}  // namespace pellucid::demos
