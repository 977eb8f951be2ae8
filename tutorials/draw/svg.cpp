#include "tutorials/draw/svg.h"

#include <sstream>

#include "tutorials/draw/text.h"

namespace pellucid {

// Okabe and Ito's colours for all kinds of sight, darker on the light panel and lighter on the
// dark.
static constexpr const char* kStyle = R"(<style>
.panel{fill:#ffffff;stroke:#d0d7de}
text{font:15px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}
.small{font-size:13px}
.bold{font-weight:bold}
rect{stroke:#57606a;stroke-width:1.2}
.plain{fill:#f6f8fa}.a{fill:#cce4f6}.b{fill:#fbe3b5}.c{fill:#c9ecd9}
.ghost{fill:none;stroke-dasharray:4 3}
path{fill:none;stroke:#57606a;stroke-width:1.6}
path.a{stroke:#0072b2;fill:none}path.b{stroke:#b35c00;fill:none}path.c{stroke:#007a53;fill:none}
path.plain{fill:none}
marker path{fill:#57606a;stroke:none}
@media(prefers-color-scheme:dark){
.panel{fill:#161b22;stroke:#3d444d}
text{fill:#e6edf3}
rect,path{stroke:#9198a1}
.plain{fill:#21262d}.a{fill:#0d3a5c}.b{fill:#5a3a06}.c{fill:#0f4a33}.ghost{fill:none}
path.a{stroke:#56b4e9}path.b{stroke:#e69f00}path.c{stroke:#2fc38f}
marker path{fill:#9198a1}
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>
)";

Svg::Svg(double width, double height, const std::string& title) {
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " " << height
      << "\" width=\"" << width << "\" height=\"" << height << "\" role=\"img\">\n<title>"
      << escaped(title) << "</title>\n"
      << kStyle << "<rect class=\"panel\" x=\"0.5\" y=\"0.5\" width=\"" << width - 1
      << "\" height=\"" << height - 1 << "\" rx=\"8\"/>\n";
  body_ = out.str();
}

void Svg::box(double x, double y, double w, double h, const std::string& kind) {
  std::ostringstream out;
  out << "<rect class=\"" << kind << "\" x=\"" << x << "\" y=\"" << y << "\" width=\"" << w
      << "\" height=\"" << h << "\"/>\n";
  body_ += out.str();
}

void Svg::text(double x, double y, const std::string& text, const std::string& anchor,
               const std::string& kind) {
  std::ostringstream out;
  out << "<text class=\"" << kind << "\" x=\"" << x << "\" y=\"" << y << "\" text-anchor=\""
      << anchor << "\">" << escaped(text) << "</text>\n";
  body_ += out.str();
}

void Svg::cell(double x, double y, double w, double h, const std::string& label,
               const std::string& kind) {
  box(x, y, w, h, kind);
  text(x + w / 2, y + h / 2 + 5, label);
}

void Svg::arrow(double x1, double y1, double x2, double y2, const std::string& kind) {
  std::ostringstream out;
  out << "<path class=\"" << kind << "\" marker-end=\"url(#tip)\" d=\"M" << x1 << " " << y1 << "L"
      << x2 << " " << y2 << "\"/>\n";
  body_ += out.str();
}

void Svg::hop(double x1, double x2, double y, double rise, const std::string& label,
              const std::string& kind) {
  std::ostringstream out;
  out << "<path class=\"" << kind << "\" marker-end=\"url(#tip)\" d=\"M" << x1 << " " << y << "Q"
      << (x1 + x2) / 2 << " " << y + 2 * rise << " " << x2 << " " << y << "\"/>\n";
  body_ += out.str();
  text((x1 + x2) / 2, y + rise + (rise < 0 ? -6 : 16), label, "middle", "small");
}

std::string Svg::str() const { return body_ + "</svg>\n"; }

}  // namespace pellucid
