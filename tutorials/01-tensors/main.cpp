// Lesson 01: storage, shape, stride, views, broadcasting, and why a reshape sometimes copies.
// Prints what README.md quotes, and writes its three figures into the folder that is its argument
// (default: beside the program).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "tensor/files.h"
#include "tutorials/draw/svg.h"

using namespace pellucid;

namespace {

// ---- the problem ----

// A shape alone: a matrix that knows its numbers and its sizes, and nothing else.
struct Matrix {
  std::vector<double> numbers;  // row after row
  int64_t rows, columns;

  double at(int64_t i, int64_t j) const {
    return numbers[static_cast<std::size_t>(i * columns + j)];
  }
};

void print(const char* name, const Matrix& m) {
  std::cout << name << "\n";
  for (int64_t i = 0; i < m.rows; ++i) {
    std::cout << "  ";
    for (int64_t j = 0; j < m.columns; ++j)
      std::cout << m.at(i, j) << (j + 1 < m.columns ? " " : "\n");
  }
}

// Number by number into another matrix.
Matrix transposed_copy(const Matrix& m) {
  Matrix t{{}, m.columns, m.rows};
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.columns; ++j) t.numbers.push_back(m.at(j, i));
  return t;
}

void the_problem() {
  std::cout << "==== the problem\n";
  const Matrix m{{0, 1, 2, 3, 4, 5}, 2, 3};
  print("a 2 x 3 matrix", m);

  // Exchange the sizes, leave the numbers.
  Matrix wrong = m;
  std::swap(wrong.rows, wrong.columns);
  print("its sizes exchanged", wrong);

  const Matrix right = transposed_copy(m);
  print("its transpose, copied", right);
  int misplaced = 0;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j) misplaced += wrong.at(i, j) != right.at(i, j);
  std::cout << "in the wrong place: " << misplaced << " of 6\n";

  // A batch of 32 colour pictures of 224 x 224 points, each number a float of 4 bytes.
  const int64_t numbers = 32 * 3 * 224 * 224;
  std::cout << "a batch of pictures: " << numbers << " numbers, " << numbers * 4 / 1000000
            << " MB to copy for each transpose\n";
}

// ---- the idea ----

void the_idea() {
  std::cout << "\n==== the idea\n";
  // One storage, two layouts.
  const Shape sizes = {2, 3}, strides = {3, 1};
  const Shape flipped_sizes = {3, 2}, flipped_strides = {1, 3};
  std::cout << "element (1, 2) of " << sizes << " with strides " << strides << ": place "
            << offset_of({1, 2}, strides) << "\n";
  std::cout << "element (2, 1) of " << flipped_sizes << " with strides " << flipped_strides
            << ": place " << offset_of({2, 1}, flipped_strides) << "\n";
}

// ---- in plain ops ----

bool same_storage(const Tensor& a, const Tensor& b) { return &a.storage() == &b.storage(); }

void show(const char* name, const Tensor& x, const Tensor& of) {
  std::cout << name << ": shape " << x.shape() << ", strides " << x.strides()
            << (same_storage(x, of) ? ", a view" : ", a copy") << "\n";
}

void views() {
  std::cout << "\n==== views\n";
  const Tensor x = reshape(arange(6), {2, 3});  // (2, 3)
  std::cout << x << "\n";
  show("transpose", transpose(x, 0, 1), x);      // (3, 2)
  show("second row", select(x, 0, 1), x);        // (3)
  show("last column", select(x, 1, 2), x);       // (2)
  show("every other", slice(x, 1, 0, 3, 2), x);  // (2, 2)

  // A view is no copy: who writes through one is seen through all.
  const Tensor column = select(x, 1, 2);  // (2)
  fill_(column, 9);
  std::cout << x << "\n";
}

void broadcasting() {
  std::cout << "\n==== broadcasting\n";
  const Tensor scores = tensor({{10, 20, 30}, {40, 50, 60}});  // (2, 3)
  const Tensor bonus = tensor({1, 2, 3});                      // (3)
  std::cout << scores + bonus << "\n";                         // (2, 3)

  // A column and a row make a table.
  const Tensor column = reshape(arange(3, kFloat32), {3, 1});  // (3, 1)
  const Tensor row = arange(4, kFloat32);                      // (4)
  std::cout << column * 10 + row << "\n";                      // (3, 4)
  show("the column, expanded", expand(column, {3, 4}), column);
  show("the row, expanded", expand(row, {3, 4}), row);

  // What does not fit is refused.
  try {
    scores + tensor({1, 2});
  } catch (const std::invalid_argument& error) {
    std::cout << error.what() << "\n";
  }
}

void reshaping() {
  std::cout << "\n==== reshaping\n";
  const Tensor x = reshape(arange(6), {2, 3});  // (2, 3)
  show("x as (3, 2)", reshape(x, {3, 2}), x);
  show("x as (6)", reshape(x, {6}), x);
  const Tensor t = transpose(x, 0, 1);  // (3, 2)
  show("its transpose as (6)", reshape(t, {6}), x);
  show("its transpose as (3, 1, 2)", reshape(t, {3, 1, 2}), x);
}

// ---- check it ----

// The places of all elements of a layout, in the order of its indices.
std::vector<int64_t> places(const Shape& sizes, const Shape& strides) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < sizes.numel(); ++i) all.push_back(offset_of(index_of(i, sizes), strides));
  return all;
}

// Every reshape of `to` from every order of the dimensions of a (2, 3, 4) tensor.
struct Tally {
  int views = 0, copies = 0, wrong = 0, too_careful = 0;
};
template <class ViewStrides>
Tally try_reshapes(ViewStrides view_strides_of) {
  const std::vector<Shape> shapes = {{24},      {4, 6},    {6, 4},      {2, 12},
                                     {12, 2},   {3, 8},    {2, 3, 4},   {4, 3, 2},
                                     {2, 2, 6}, {3, 2, 4}, {2, 3, 2, 2}};
  std::vector<int> order = {0, 1, 2};
  const Shape sizes = {2, 3, 4}, strides = row_major(sizes);
  Tally tally;
  do {
    Shape from, steps;  // the dimensions in this order
    for (int d : order) from.push_back(sizes[d]), steps.push_back(strides[d]);
    for (const Shape& to : shapes) {
      const auto found = view_strides_of(from, steps, to);
      // A view is right if it meets the same places in the same order.
      if (found && places(to, *found) == places(from, steps))
        ++tally.views;
      else if (found)
        ++tally.wrong;
      else
        ++tally.copies;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return tally;
}

// What the classic mistakes give: row-major strides whatever lies in memory, and a copy of all that
// is not row-major.
std::optional<Shape> never_copies(const Shape&, const Shape&, const Shape& to) {
  return row_major(to);
}
std::optional<Shape> copies_too_often(const Shape& sizes, const Shape& strides, const Shape& to) {
  if (strides == row_major(sizes)) return row_major(to);
  return std::nullopt;
}

void check_it() {
  std::cout << "\n==== check it\n";
  const auto report = [](const char* name, const Tally& t) {
    std::cout << name << ": " << t.views << " right views, " << t.copies << " copies, " << t.wrong
              << " wrong views\n";
  };
  report("the library", try_reshapes(view_strides));
  report("never copies", try_reshapes(never_copies));
  report("copies all but row-major", try_reshapes(copies_too_often));
}

// ---- make it fast ----

// The best of three runs, in seconds.
template <class F>
double time_of(const F& f) {
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

constexpr int64_t kSide = 4096;  // 64 MB of floats: more than a cache holds
float total = 0;                 // so that no compiler leaves a sum out

// The offset worked out anew for every element.
void sum_by_formula(const float* x, const Shape& sizes, const Shape& strides) {
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j) total += x[offset_of({i, j}, strides)];
}

// Loops that carry the offset along, the last dimension inside.
void sum_by_steps(const float* x, const Shape& sizes, const Shape& strides) {
  const int64_t rows = sizes[0], columns = sizes[1], down = strides[0], right = strides[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) total += x[i * down + j * right];
}

void make_it_fast() {
  std::cout << "\n==== make it fast\n";
  const Tensor x = full({kSide, kSide}, 1);  // (4096, 4096)
  const Tensor t = transpose(x, 0, 1);       // (4096, 4096), strides (1, 4096)
  const float* numbers = x.data<float>();
  const double bytes = 4.0 * kSide * kSide;

  // The limit: how fast one core copies as many bytes, half of them read and half written.
  std::vector<float> half(static_cast<std::size_t>(kSide * kSide / 2));
  const double limit = bytes / time_of([&] { std::memcpy(half.data(), numbers, half.size() * 4); });

  const auto rung = [&](const char* name, double seconds) {
    std::printf("%-38s %7.2f GB/s %6.1f %% of the limit\n", name, bytes / seconds / 1e9,
                100 * bytes / seconds / limit);
  };
  std::printf("%-38s %7.2f GB/s\n", "the limit: reading and writing", limit / 1e9);
  rung("1. transposed, across the rows",
       time_of([&] { sum_by_steps(numbers, t.shape(), t.strides()); }));
  rung("2. in order, by the formula",
       time_of([&] { sum_by_formula(numbers, x.shape(), x.strides()); }));
  rung("3. in order, carrying the offset",
       time_of([&] { sum_by_steps(numbers, x.shape(), x.strides()); }));
  rung("4. the library's sum(x)", time_of([&] { sum(x); }));
  rung("5. the library's sum of the transpose", time_of([&] { sum(t); }));
  std::printf("a transpose that copies: %.1f ms; as a view: %.4f ms\n",
              1e3 * time_of([&] { contiguous(t); }), 1e3 * time_of([&] { transpose(x, 0, 1); }));
}

// ---- the figures ----

constexpr double kCell = 46;

void storage_figure(const std::string& folder) {
  Svg svg(660, 300,
          "One storage of six numbers, seen as a 2 by 3 matrix with strides 3 and 1, and as its 3 "
          "by 2 transpose with strides 1 and 3");
  const char* row_colours[] = {"a", "b"};
  svg.text(330, 32, "storage", "middle", "bold");
  for (int i = 0; i < 6; ++i) {
    svg.cell(192 + i * kCell, 44, kCell, kCell, std::to_string(i), row_colours[i / 3]);
    svg.text(192 + (i + 0.5) * kCell, 108, std::to_string(i), "middle", "small");
  }
  svg.text(484, 108, "place", "start", "small");
  svg.text(140, 150, "shape (2, 3)", "middle", "bold");
  svg.text(140, 170, "strides (3, 1)");
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      svg.cell(71 + j * kCell, 182 + i * kCell, kCell, kCell, std::to_string(3 * i + j),
               row_colours[i]);
  svg.text(500, 150, "shape (3, 2)", "middle", "bold");
  svg.text(500, 170, "strides (1, 3)");
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j)
      svg.cell(454 + j * kCell, 182 + i * 34, kCell, 34, std::to_string(i + 3 * j), row_colours[j]);
  svg.arrow(300, 130, 226, 190), svg.arrow(360, 130, 440, 190);
  svg.text(335, 250, "two layouts,", "middle", "small");
  svg.text(335, 268, "no number moved", "middle", "small");
  write_file_atomically(folder + "/storage.svg", svg.str());
}

void broadcast_figure(const std::string& folder) {
  Svg svg(660, 250,
          "A column of shape 3 by 1 and a row of shape 4, both repeated by a stride of 0, give a "
          "table of shape 3 by 4");
  const char* names[] = {"column (3, 1)", "row (4)", "column + row (3, 4)"};
  const char* notes[] = {"as (3, 4): strides (1, 0)", "as (3, 4): strides (0, 1)", ""};
  const double left[] = {20, 236, 456}, size = 44;
  for (int part = 0; part < 3; ++part) {
    svg.text(left[part] + 2 * size, 34, names[part], "middle", "bold");
    svg.text(left[part] + 2 * size, 226, notes[part], "middle", "small");
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) {
        const bool stored = part == 2 || (part == 0 ? j == 0 : i == 0);
        const int value = part == 0 ? 10 * i : part == 1 ? j : 10 * i + j;
        svg.cell(left[part] + j * size, 56 + i * size, size, size, std::to_string(value),
                 !stored     ? "ghost"
                 : part == 0 ? "a"
                 : part == 1 ? "b"
                             : "c");
      }
  }
  svg.text(216, 128, "+"), svg.text(434, 128, "=");
  write_file_atomically(folder + "/broadcast.svg", svg.str());
}

void reshape_figure(const std::string& folder) {
  Svg svg(660, 300,
          "Read row by row, the transpose jumps 3 forward and 2 back through the storage: no "
          "single stride can do that");
  svg.text(330, 30, "the matrix, read row by row: one step each time", "middle", "bold");
  svg.text(330, 178, "its transpose, read row by row: +3, -2, +3, -2, +3", "middle", "bold");
  const double left = 145, step = 74;
  const auto middle = [&](int place) { return left + place * step; };
  for (const double y : {92.0, 250.0})
    for (int i = 0; i < 6; ++i)
      svg.cell(middle(i) - 23, y - 16, kCell, 32, std::to_string(i), i < 3 ? "a" : "b");
  for (int i = 0; i < 5; ++i) svg.hop(middle(i) + 6, middle(i + 1) - 6, 74, -16, "+1", "c");
  const int order[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 5; ++i) {
    const bool forward = order[i + 1] > order[i];
    const double from = middle(order[i]) + (forward ? 6 : -6),
                 to = middle(order[i + 1]) + (forward ? -6 : 6);
    forward ? svg.hop(from, to, 232, -22, "", "c") : svg.hop(from, to, 268, 14, "", "b");
  }
  write_file_atomically(folder + "/reshape.svg", svg.str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : argv[0] + std::string("_figures");
  std::filesystem::create_directories(folder);
  the_problem();
  the_idea();
  views();
  broadcasting();
  reshaping();
  check_it();
  make_it_fast();
  storage_figure(folder);
  broadcast_figure(folder);
  reshape_figure(folder);
  std::cout << "\nfigures: " << folder << "/storage.svg, broadcast.svg, reshape.svg\n";
}
