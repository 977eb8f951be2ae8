// The test of exercise 01. What it expects it works out itself, element by element over plain
// vectors, and never with the functions that it grades.
#include <functional>
#include <sstream>
#include <stdexcept>

#include "tensor/strides.h"
#include "tutorials/course/check.h"

namespace pellucid::course {

namespace {

using Numbers = std::vector<int64_t>;

// ---- Between Shape and plain vectors.

Shape shape_of(const Numbers& numbers) {
  Shape shape;
  for (int64_t n : numbers) shape.push_back(n);
  return shape;
}
Numbers numbers_of(const Shape& shape) { return Numbers(shape.begin(), shape.end()); }

std::string listed(const Numbers& numbers, char open, char close) {
  std::ostringstream text;
  text << open;
  for (std::size_t i = 0; i < numbers.size(); ++i) text << (i ? ", " : "") << numbers[i];
  text << close;
  return text.str();
}
std::string braces(const Numbers& numbers) { return listed(numbers, '{', '}'); }
std::string round_ones(const Numbers& numbers) { return listed(numbers, '(', ')'); }

// ---- Layouts, one element at a time.

// Every index of a tensor with these sizes, the last dimension running fastest.
std::vector<Numbers> indices(const Numbers& sizes) {
  std::vector<Numbers> all = {{}};
  for (int64_t size : sizes) {
    std::vector<Numbers> longer;
    for (const Numbers& index : all)
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(index);
        longer.back().push_back(i);
      }
    all = longer;
  }
  return all;
}

int64_t place(const Numbers& index, const Numbers& strides) {
  int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

int64_t count(const Numbers& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

Numbers random_sizes(Random& random, int least_dims, int most_dims, int64_t largest) {
  Numbers sizes;
  const int64_t dims = random.whole(least_dims, most_dims);
  for (int64_t d = 0; d < dims; ++d)
    sizes.push_back(random.chance(20) ? 1 : random.whole(2, largest));
  return sizes;
}

// Strides without gaps: how far apart two neighbours are is counted, not computed.
Numbers counted_strides(const Numbers& sizes) {
  Numbers strides;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    strides.push_back(
        count(Numbers(sizes.begin() + static_cast<std::ptrdiff_t>(d) + 1, sizes.end())));
  return strides;
}

// A layout as views make it: dimensions in another order, rows left out, sizes of 1 with any
// stride.
struct Layout {
  Numbers sizes, strides;
};
Layout random_layout(Random& random, int most_dims = 4) {
  Layout x;
  x.sizes = random_sizes(random, 1, most_dims, 4);
  Numbers memory = x.sizes;  // the sizes of the whole that this is a part of
  for (int64_t& size : memory)
    if (random.chance(20)) size += random.whole(1, 2);
  x.strides = counted_strides(memory);
  while (random.chance(50)) {
    const auto last = static_cast<int64_t>(x.sizes.size()) - 1;
    const auto a = static_cast<std::size_t>(random.whole(0, last));
    const auto b = static_cast<std::size_t>(random.whole(0, last));
    std::swap(x.sizes[a], x.sizes[b]);
    std::swap(x.strides[a], x.strides[b]);
  }
  for (std::size_t d = 0; d < x.sizes.size(); ++d)
    if (x.sizes[d] == 1 && random.chance(50)) x.strides[d] = random.whole(0, 50);
  return x;
}

// Another shape with n elements.
Numbers random_factors(Random& random, int64_t n) {
  Numbers sizes;
  while (n > 1 && sizes.size() < 5) {
    int64_t factor = random.whole(2, n);
    while (n % factor != 0) ++factor;
    sizes.push_back(sizes.size() == 4 ? n : factor);
    n /= sizes.back();
    if (random.chance(15) && sizes.size() < 5) sizes.push_back(1);
  }
  if (n > 1) sizes.back() *= n;
  if (sizes.empty() || (random.chance(15) && sizes.size() < 6)) sizes.push_back(1);
  return sizes;
}

// The strides with which `to` meets the elements of x in x's own order, if there are any: each must
// be the distance of the dimension's first two elements, and then every element is looked at.
bool has_view(const Layout& x, const Numbers& to, Numbers& strides) {
  std::vector<int64_t> places;
  for (const Numbers& index : indices(x.sizes)) places.push_back(place(index, x.strides));
  const Numbers steps = counted_strides(to);
  strides.assign(to.size(), 0);
  if (places.empty()) return true;
  for (std::size_t d = 0; d < to.size(); ++d)
    if (to[d] > 1) strides[d] = places[static_cast<std::size_t>(steps[d])] - places[0];
  std::size_t element = 0;
  for (const Numbers& index : indices(to))
    if (place(index, strides) != places[element++]) return false;
  return true;
}

// Do both strides lead each index of these sizes to one place? Those of a size of 1 are free.
bool same_places(const Numbers& sizes, const Numbers& a, const Numbers& b) {
  if (a.size() != sizes.size() || b.size() != sizes.size()) return false;
  for (const Numbers& index : indices(sizes))
    if (place(index, a) != place(index, b)) return false;
  return true;
}

// Strides as a message shows them: that of a size of 1 is free.
std::string wanted_strides(const Numbers& sizes, const Numbers& strides) {
  std::ostringstream text;
  bool free = false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    text << (d ? ", " : "(");
    if (sizes[d] == 1) {
      text << "*", free = true;
    } else {
      text << strides[d];
    }
  }
  if (sizes.empty()) text << "(";
  return text.str() + (free ? "), * any number" : ")");
}

// ---- One case each.

void row_major_case(const Numbers& sizes) {
  calling("row_major(" + braces(sizes) + ")");
  const Numbers got = numbers_of(row_major(shape_of(sizes)));
  const Numbers wanted = counted_strides(sizes);
  if (got != wanted) fail_case("is " + round_ones(wanted) + "; yours gives " + round_ones(got));
}

void offset_case(const Numbers& index, const Numbers& strides) {
  calling("offset_of(" + braces(index) + ", " + braces(strides) + ")");
  const int64_t got = offset_of(shape_of(index), shape_of(strides)), wanted = place(index, strides);
  if (got != wanted)
    fail_case("is " + std::to_string(wanted) + "; yours gives " + std::to_string(got));
}

void broadcast_case(const Numbers& a, const Numbers& b, const Numbers& wanted) {
  calling("broadcast_shape(\"add\", " + braces(a) + ", " + braces(b) + ")");
  const Numbers got = numbers_of(broadcast_shape("add", shape_of(a), shape_of(b)));
  if (got != wanted) fail_case("is " + round_ones(wanted) + "; yours gives " + round_ones(got));
}

void expanded_case(const Layout& x, const Numbers& to) {
  const std::size_t lead = to.size() - x.sizes.size();
  Numbers wanted;
  for (std::size_t d = 0; d < to.size(); ++d)
    wanted.push_back(d >= lead && x.sizes[d - lead] == to[d] ? x.strides[d - lead] : 0);
  calling("expanded_strides(" + braces(x.sizes) + ", " + braces(x.strides) + ", " + braces(to) +
          ")");
  const Numbers got =
      numbers_of(expanded_strides(shape_of(x.sizes), shape_of(x.strides), shape_of(to)));
  if (!same_places(to, got, wanted))
    fail_case("is " + wanted_strides(to, wanted) + "; yours gives " + round_ones(got));
}

std::optional<Shape> view_of(const Layout& x, const Numbers& to) {
  calling("view_strides(" + braces(x.sizes) + ", " + braces(x.strides) + ", " + braces(to) + ")");
  return view_strides(shape_of(x.sizes), shape_of(x.strides), shape_of(to));
}

void view_case(const Layout& x, const Numbers& to, const Numbers& wanted) {
  const auto got = view_of(x, to);
  if (!got) fail_case("is " + wanted_strides(to, wanted) + "; yours says that it must copy");
  if (!same_places(to, numbers_of(*got), wanted))
    fail_case("is " + wanted_strides(to, wanted) + "; yours gives " + round_ones(numbers_of(*got)));
}

// Something that refuses its arguments does it by std::invalid_argument.
void refused_case(const std::string& code, const std::function<void()>& call) {
  calling(code);
  try {
    call();
  } catch (const std::invalid_argument&) {
    return;
  }
  fail_case("must be refused by CHECK_ARG; yours returns something");
}

// Who refuses everything refuses too much. What it gives is for another check.
void broadcast_fits(const Numbers& a, const Numbers& b) {
  calling("broadcast_shape(\"add\", " + braces(a) + ", " + braces(b) + ")");
  broadcast_shape("add", shape_of(a), shape_of(b));
}
void expanded_fits(const Numbers& sizes, const Numbers& to) {
  const Numbers strides = counted_strides(sizes);
  calling("expanded_strides(" + braces(sizes) + ", " + braces(strides) + ", " + braces(to) + ")");
  expanded_strides(shape_of(sizes), shape_of(strides), shape_of(to));
}

// ---- The checks. Each begins with its smallest cases.

void check_row_major(Random& random) {
  for (const Numbers& sizes : {Numbers{5}, {2, 3}, {2, 3, 4}}) row_major_case(sizes);
  for (int i = 0; i < 50; ++i) row_major_case(random_sizes(random, 1, 6, 5));
}

void check_offset_of(Random& random) {
  offset_case({1, 2}, {4, 1});
  offset_case({2, 1}, {1, 3});
  for (int i = 0; i < 50; ++i) {
    Numbers index, strides;
    for (int64_t d = random.whole(1, 6); d > 0; --d) {
      index.push_back(random.whole(0, 9));
      strides.push_back(random.whole(0, 99));
    }
    offset_case(index, strides);
  }
}

// Two shapes that fit and what they give: the result first, then what each of them hides of it.
void random_fit(Random& random, Numbers& a, Numbers& b, Numbers& both) {
  a = b = {};
  both = random_sizes(random, 1, 5, 5);
  const auto dims = static_cast<int64_t>(both.size());
  const int64_t shorter = random.whole(0, dims);
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = both[static_cast<std::size_t>(d)], who = random.whole(0, 3);
    a.push_back(d >= shorter && who == 0 ? 1 : size);
    if (d >= shorter) b.push_back(who == 1 ? 1 : size);
  }
  if (random.chance(50)) std::swap(a, b);
}

void check_broadcast_shape(Random& random) {
  broadcast_case({2, 3}, {2, 3}, {2, 3});
  broadcast_case({2, 3}, {1, 3}, {2, 3});
  broadcast_case({2, 1}, {2, 3}, {2, 3});
  broadcast_case({2, 1, 4}, {3, 1}, {2, 3, 4});
  broadcast_case({3}, {2, 3}, {2, 3});
  Numbers a, b, both;
  for (int i = 0; i < 50; ++i) {
    random_fit(random, a, b, both);
    broadcast_case(a, b, both);
  }
}

void check_broadcast_refuses(Random& random) {
  broadcast_fits({2, 3}, {1, 3});
  for (int i = 0; i < 20; ++i) {
    Numbers a = random_sizes(random, 1, 4, 5), b = a;
    const auto at = static_cast<std::size_t>(random.whole(0, static_cast<int64_t>(a.size()) - 1));
    a[at] = random.whole(2, 5);
    b[at] = a[at] + random.whole(1, 3);
    if (random.chance(50)) std::swap(a, b);
    if (random.chance(50)) b.insert(b.begin(), 2);
    refused_case("broadcast_shape(\"add\", " + braces(a) + ", " + braces(b) + ")",
                 [&] { broadcast_shape("add", shape_of(a), shape_of(b)); });
  }
}

void check_expanded_strides(Random& random) {
  expanded_case({{3}, {1}}, {3});
  expanded_case({{1}, {1}}, {3});
  expanded_case({{3}, {1}}, {2, 3});
  expanded_case({{3, 1}, {1, 1}}, {2, 3, 4});
  for (int i = 0; i < 50; ++i) {
    const Layout x = random_layout(random);
    Numbers to = x.sizes;
    for (int64_t& size : to)
      if (size == 1) size = random.whole(1, 4);
    for (int64_t lead = random.whole(0, 2); lead > 0; --lead)
      to.insert(to.begin(), random.whole(1, 3));
    expanded_case(x, to);
  }
}

void check_expanded_refuses(Random& random) {
  expanded_fits({3, 1}, {3, 4});
  const auto refused = [](const Numbers& sizes, const Numbers& to) {
    const Numbers strides = counted_strides(sizes);
    refused_case(
        "expanded_strides(" + braces(sizes) + ", " + braces(strides) + ", " + braces(to) + ")",
        [&] { expanded_strides(shape_of(sizes), shape_of(strides), shape_of(to)); });
  };
  refused({2}, {3});
  refused({3}, {1});
  refused({2, 3}, {3});
  for (int i = 0; i < 20; ++i) {
    const Numbers sizes = random_sizes(random, 2, 4, 5);
    Numbers to = sizes;
    const auto at = static_cast<std::size_t>(random.whole(0, static_cast<int64_t>(to.size()) - 1));
    if (sizes[at] == 1)
      to.erase(to.begin());  // fewer dimensions
    else
      to[at] += random.whole(1, 3);
    refused(sizes, to);
  }
}

// A small layout and a shape for it; every second one is a reshape that rows or columns were made
// for.
void random_reshape(Random& random, Layout& x, Numbers& to) {
  x = random_layout(random);
  to = random_factors(random, count(x.sizes));
  if (random.chance(50)) {
    to = x.sizes;  // two neighbours become one, or one becomes two
    const auto at = static_cast<std::size_t>(random.whole(0, static_cast<int64_t>(to.size()) - 1));
    if (at + 1 < to.size() && random.chance(50)) {
      to[at] *= to[at + 1];
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else if (to[at] % 2 == 0) {
      to[at] /= 2;
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), 2);
    }
  }
}

void check_view_strides(Random& random) {
  view_case({{2, 3}, {3, 1}}, {6}, {1});
  view_case({{2, 3, 4}, {12, 4, 1}}, {6, 4}, {4, 1});
  view_case({{6, 4}, {1, 6}}, {2, 3, 4}, {3, 1, 6});  // transposed, and still a view
  Layout x;
  Numbers to, wanted;
  for (int views = 0; views < 100;) {
    random_reshape(random, x, to);
    if (!has_view(x, to, wanted)) continue;
    view_case(x, to, wanted);
    ++views;
  }
}

void must_copy_case(const Layout& x, const Numbers& to) {
  Numbers wanted;
  const bool view = has_view(x, to, wanted);
  const auto got = view_of(x, to);
  if (got.has_value() == view) return;
  fail_case(got ? "must copy (std::nullopt); yours gives " + round_ones(numbers_of(*got))
                : "needs no copy; yours says that it must copy");
}

void check_must_copy(Random& random) {
  must_copy_case({{2, 3}, {3, 1}}, {6});
  must_copy_case({{3, 2}, {1, 3}}, {6});
  must_copy_case({{2, 3}, {5, 1}}, {3, 2});
  must_copy_case({{2, 1, 3}, {3, 50, 1}}, {6});  // a stride of 50 that is never used
  Layout x;
  Numbers to, unused;
  for (int copies = 0; copies < 100;) {
    random_reshape(random, x, to);
    if (!has_view(x, to, unused)) ++copies;
    must_copy_case(x, to);
  }
}

void check_corners(Random& random) {
  row_major_case({});
  row_major_case({1, 1});
  offset_case({}, {});
  broadcast_case({}, {}, {});
  broadcast_case({}, {2, 3}, {2, 3});
  broadcast_case({0}, {1}, {0});
  broadcast_case({2, 1}, {0}, {2, 0});
  expanded_case({{}, {}}, {2});
  expanded_case({{1, 3}, {7, 1}}, {0, 3});
  view_case({{}, {}}, {1, 1}, {1, 1});
  view_case({{1, 1}, {7, 9}}, {}, {});
  view_case({{0, 3}, {3, 1}}, {5, 0}, {0, 0});
  view_case({{3, 1}, {5, random.whole(0, 50)}}, {1, 3}, {0, 5});
  view_case({{1, 3}, {random.whole(0, 50), 2}}, {3}, {2});
  view_case({{2, 1, 3}, {3, random.whole(0, 50), 1}}, {6}, {1});
}

}  // namespace

const std::vector<Check> kChecks = {
    {"row_major", check_row_major},
    {"offset_of", check_offset_of},
    {"broadcast_shape", check_broadcast_shape},
    {"broadcast_refuses", check_broadcast_refuses},
    {"expanded_strides", check_expanded_strides},
    {"expanded_refuses", check_expanded_refuses},
    {"view_strides", check_view_strides},
    {"must_copy", check_must_copy},
    {"corners", check_corners},
};

}  // namespace pellucid::course
