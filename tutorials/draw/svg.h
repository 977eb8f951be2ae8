// A small drawing on a panel of its own, for lessons: legible on light and dark pages alike, since
// the panel, the lines and the letters change together.
#pragma once
#include <string>

namespace pellucid {

class Svg {
 public:
  // `title` is read to those who cannot see the drawing.
  Svg(double width, double height, const std::string& title);

  // Kinds of boxes: "plain", "a", "b", "c" (three colours) and "ghost" (dashed: not in memory).
  void box(double x, double y, double w, double h, const std::string& kind);
  // `anchor`: start, middle or end; `kind`: "" or "small" or "bold".
  void text(double x, double y, const std::string& text, const std::string& anchor = "middle",
            const std::string& kind = "");
  // A box with a text in its middle.
  void cell(double x, double y, double w, double h, const std::string& text,
            const std::string& kind);
  void arrow(double x1, double y1, double x2, double y2, const std::string& kind = "plain");
  // From x1 to x2 at the same height, bent by `rise` (negative: upwards), with a label at its top.
  void hop(double x1, double x2, double y, double rise, const std::string& label,
           const std::string& kind = "plain");

  std::string str() const;

 private:
  std::string body_;
};

}  // namespace pellucid
