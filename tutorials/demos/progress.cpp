#include "tutorials/demos/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace pellucid::demos {

bool is_terminal(int fd) { return isatty(fd) == 1; }

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  char text[48];
  if (s < 60) {
    std::snprintf(text, sizeof text, "%d s", static_cast<int>(s));
  } else if (s < 3600) {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(s / 60),
                  static_cast<int>(s % 60));
  } else {
    std::snprintf(text, sizeof text, "%d h %02d min", static_cast<int>(s / 3600),
                  static_cast<int>(s / 60 % 60));
  }
  return text;
}

Progress::Progress(std::string title, double seconds_between, int fd)
    : title_(std::move(title)),
      seconds_between_(seconds_between),
      fd_(fd),
      terminal_(is_terminal(fd)) {}

Progress::~Progress() { finish(); }

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

// A full line would wrap, and then writing over it no longer works.
static std::size_t columns(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col - 1U;
  return 99;
}

// What fits, and no part by half.
static std::string fitting(const std::string& line, std::size_t columns) {
  if (line.size() <= columns) return line;
  return line.substr(0, std::min(line.rfind("  ", columns), columns));
}

// Writes over the line that the cursor is on.
void Progress::write_over(std::string line, const char* end) {
  const std::size_t width = line.size();
  line.resize(std::max(width, width_), ' ');
  width_ = width;
  dprintf(fd_, "\r%s%s", line.c_str(), end);
}

void Progress::report(int64_t done, int64_t total, const std::string& text) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - printed_).count();
  const bool first = printed_ == Clock::time_point{};

  std::string bar(20, '.');
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  std::fill_n(bar.begin(), static_cast<int>(std::clamp(share, 0.0, 1.0) * 20), '#');
  // The total may not be known yet.
  std::string numbers = " " + std::to_string(done);
  if (total > 0) numbers += "/" + std::to_string(total);
  last_ =
      title_ + (terminal_ ? " [" + bar + "]" : "") + numbers + (text.empty() ? "" : "  " + text);

  if (terminal_ ? (!first && since < 0.1) : (!first && since < seconds_between_)) return;
  printed_ = now;
  if (terminal_) {
    write_over(fitting(last_, columns(fd_)), "");
    open_ = true;
  } else {
    dprintf(fd_, "%s\n", last_.c_str());
    last_.clear();
  }
}

void Progress::note(const std::string& text) {
  if (terminal_) {
    write_over(text, "\n");
    width_ = 0, open_ = false, printed_ = {};
  } else {
    dprintf(fd_, "%s\n", text.c_str());
  }
}

void Progress::finish() {
  if (terminal_ && open_) {
    write_over(fitting(last_, columns(fd_)), "\n");
  } else if (!terminal_ && !last_.empty()) {
    dprintf(fd_, "%s\n", last_.c_str());
  }
  open_ = false;
  width_ = 0;
  last_.clear();
  printed_ = {};
}

}  // namespace pellucid::demos
