// What the charts share: the frame of a drawing, axes with round ticks, legends.
#pragma once
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tutorials/draw/chart.h"

namespace pellucid::parts {

constexpr double kLetter = 6.9, kLineHeight = 18, kEdge = 10;  // of 12 px text

// Opens <svg> with title and description; in a file also the style, the paper and the title as
// text. Returns how far down the title reaches.
double open(std::ostream& out, const std::string& title, const std::string& description,
            double width, double height, SvgUse use, const std::string& attributes = "");
void close(std::ostream& out);

// Whether a value has a place: it is finite, and no sum or square of such overflows.
inline bool drawable(double x) { return std::abs(x) < 1e100; }

// The least and greatest of what is added, and round steps between them.
struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void add(double x);
  bool empty() const { return low > high; }
};
// Multiples of 1, 2 or 5 times a power of ten, about `count` of them; the range grows to the first
// and last, or, where it stays, those outside are left out. `whole`: steps of 1 at least.
std::vector<double> ticks(Range& range, int count, bool grow, bool whole = false);

// Where values lie in the drawing: y grows upwards.
struct Frame {
  double left, right, top, bottom;
  Range x, y;
  double at_x(double value) const;
  double at_y(double value) const;
};
void draw_y_axis(std::ostream& out, const Frame& frame, const std::vector<double>& at,
                 const std::string& label);
void draw_text(std::ostream& out, double x, double y, const std::string& text,
               const std::string& kind = "", const std::string& anchor = "");

// Names with their marks, in as many lines as the width needs.
struct Key {
  std::string name, kind;  // its CSS classes
  bool line = true;        // else a square
};
double legend_height(const std::vector<Key>& keys, double width);
void draw_legend(std::ostream& out, const std::vector<Key>& keys, double top, double width);

}  // namespace pellucid::parts
