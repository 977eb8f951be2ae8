// Prints a tensor as NumPy does: nested brackets, columns aligned, lines of at most 80 characters.
//
// Whole floats print as "1.", others with 4 digits after the point, and in the form 1.2346e-05 when
// the smallest is below 1e-4 or the largest from 1e5. Of more than 1000 elements only the first and
// last 3 of each dimension are shown.
#include <cmath>
#include <cstdio>

#include "tensor/tensor.h"

namespace pellucid {

namespace {

constexpr int64_t kThreshold = 1000, kEdge = 3;
constexpr std::size_t kLineWidth = 80;

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

struct Printer {
  const Tensor& x;
  bool summarize;
  std::vector<double> values{};         // the floats shown
  const char* form = "%.4f";            // of a float
  std::vector<std::string> elements{};  // the elements shown, as text of one width
  std::size_t next = 0;
  std::string out = "tensor(";

  // Calls visit(i) for the indices of dimension d that are shown, and gap() where some are left
  // out.
  template <class Visit, class Gap>
  void walk(int d, Visit visit_index, Gap gap) const {
    const int64_t n = x.size(d);
    const bool shorten = summarize && n > 2 * kEdge;
    for (int64_t i = 0; i < n; ++i) {
      if (shorten && i == kEdge) {
        gap();
        i = n - kEdge;
      }
      visit_index(i);
    }
  }

  template <class T>
  void collect(const T* data, int d) {
    if (d < x.dim()) {
      walk(
          d, [&](int64_t i) { collect(data + i * x.stride(d), d + 1); }, [] {});
    } else if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<double>(*data));
    } else if constexpr (std::is_same_v<T, bool>) {
      elements.push_back(*data ? "True" : "False");
    } else {
      elements.push_back(std::to_string(*data));
    }
  }

  void choose_form() {
    double smallest = INFINITY, largest = 0;
    bool whole = true;
    for (double value : values) {
      const double size = std::abs(value);
      if (!std::isfinite(value)) continue;
      whole = whole && value == std::trunc(value);
      largest = std::max(largest, size);
      if (size > 0) smallest = std::min(smallest, size);
    }
    if (whole && largest < 1e8) {
      form = "%.0f.";
    } else if (smallest < 1e-4 || largest >= 1e5) {
      form = "%.4e";
    }
  }

  void align() {
    for (double value : values)
      elements.push_back(std::isnan(value) ? "nan"  // without its sign
                                           : format(std::isfinite(value) ? form : "%f", value));
    std::size_t width = 0;
    for (const auto& text : elements) width = std::max(width, text.size());
    for (auto& text : elements) text.insert(0, width - text.size(), ' ');
  }

  // One row, broken where the next element would pass the line's end.
  void print_row(std::size_t indent) {
    std::size_t column = indent;
    bool first = true;
    const auto put = [&](const std::string& text) {
      if (!first) {
        const bool full = column + text.size() + 3 > kLineWidth;
        out += full ? ",\n" : ", ";
        if (full) out.append(indent, ' ');
        column = full ? indent : column + 2;
      }
      out += text;
      column += text.size();
      first = false;
    };
    walk(
        x.dim() - 1, [&](int64_t) { put(elements[next++]); }, [&] { put("..."); });
  }

  void print(int d, std::size_t indent) {
    if (d == x.dim()) {
      out += elements[next++];
      return;
    }
    out += '[';
    if (d == x.dim() - 1) {
      print_row(indent + 1);
    } else {
      // Rows end a line; matrices leave one more empty, and so on.
      std::string separator = ",";
      separator.append(static_cast<std::size_t>(x.dim() - 1 - d), '\n').append(indent + 1, ' ');
      bool first = true;
      const auto separate = [&] {
        if (!first) out += separator;
        first = false;
      };
      walk(
          d, [&](int64_t) { separate(), print(d + 1, indent + 1); },
          [&] { separate(), out += "..."; });
    }
    out += ']';
  }
};

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  // Only what is shown is read, so a huge tensor prints at once. Packing is not needed on the CPU.
  const Tensor from = x.device() == kCPU ? x : on_cpu(x);
  Printer printer{from, x.numel() > kThreshold};
  if (x.numel() == 0) {
    printer.out += "[]";
  } else {
    visit(x.dtype(), [&]<class T>() { printer.collect(static_cast<const T*>(from.data()), 0); });
    printer.choose_form();
    printer.align();
    printer.print(0, printer.out.size());
  }
  std::ostringstream tail;
  tail << ", shape " << x.shape() << ", " << name(x.dtype()) << ")";
  return printer.out + tail.str();
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace pellucid
