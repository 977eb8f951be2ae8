// Convolution and pooling of images by their windows. unfold2d and fold2d are each other's adjoint,
// and all else is made of ops, so every order of derivative is there.
#include "autograd/ops.h"
#include "kernels/unfold.h"
#include "tensor/launch.h"

namespace pellucid {

namespace {

void check_size(const char* op, const char* what, Size2d size, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 29;  // no place or product of two overflows
  CHECK_ARG(size.h >= least && size.w >= least && size.h <= kMost && size.w <= kMost, op, ": ",
            what, " must be in [", least, ", ", kMost, "]; got (", size.h, ", ", size.w, ")");
}

// The windows of images of shape (..., C, H, W), checked.
Windows windows_of(const char* op, const Shape& images, Size2d kernel, const Conv2dOptions& o) {
  check_size(op, "the kernel", kernel, 1);
  check_size(op, "stride", o.stride, 1);
  check_size(op, "padding", o.padding, 0);
  check_size(op, "dilation", o.dilation, 1);
  const int64_t C = images[-3], H = images[-2], W = images[-1];
  const Size2d reach{o.dilation.h * (kernel.h - 1) + 1, o.dilation.w * (kernel.w - 1) + 1};
  const Size2d padded{H + 2 * o.padding.h, W + 2 * o.padding.w};
  CHECK_ARG(reach.h <= padded.h && reach.w <= padded.w, op, ": the kernel reaches over (", reach.h,
            ", ", reach.w, ") elements, more than the (", padded.h, ", ", padded.w, ") of x ",
            images, " with its padding; take a smaller kernel or more padding");
  const Size2d out{(padded.h - reach.h) / o.stride.h + 1, (padded.w - reach.w) / o.stride.w + 1};
  return {C,          H,          W,           kernel.h,    kernel.w,     out.h,       out.w,
          o.stride.h, o.stride.w, o.padding.h, o.padding.w, o.dilation.h, o.dilation.w};
}

void check_images(const char* op, const Tensor& x) {
  CHECK_ARG(x.dim() == 4, op, ": x must have shape (N, C, H, W); got ", x.shape(),
            "; unsqueeze() adds what is missing");
  check_floating(op, x);
}

}  // namespace

Tensor unfold2d(const Tensor& x, Size2d kernel, const Conv2dOptions& options) {
  check_images("unfold2d", x);
  const Windows w = windows_of("unfold2d", x.shape(), kernel, options);
  const int64_t N = x.size(0);
  Tensor y = empty_like(x, {N, w.C, w.kh, w.kw, w.OH, w.OW});  // refuses what overflows
  y = reshape(y, {N, w.C * w.kh * w.kw, w.OH * w.OW});         // (N, C kh kw, OH OW)
  LAUNCH(x, unfold2d, y, x, N, w);
  return record("unfold2d", y, {x}, [image = Size2d(w.H, w.W), kernel, options](const Tensor& dy) {
    return TensorList{fold2d(dy, image, kernel, options)};
  });
}

Tensor fold2d(const Tensor& columns, Size2d image, Size2d kernel, const Conv2dOptions& options) {
  check_size("fold2d", "the kernel", kernel, 1);
  check_size("fold2d", "the image", image, 0);
  const int64_t area = kernel.h * kernel.w;
  CHECK_ARG(columns.dim() == 3 && columns.size(1) % area == 0,
            "fold2d: columns must have shape (N, C kh kw, OH OW); got ", columns.shape(),
            ", kernel (", kernel.h, ", ", kernel.w, ")");
  const int64_t N = columns.size(0), C = columns.size(1) / area;
  const Windows w = windows_of("fold2d", {C, image.h, image.w}, kernel, options);
  check_floating("fold2d", columns);
  CHECK_ARG(columns.size(2) == w.OH * w.OW, "fold2d: an image of (", image.h, ", ", image.w,
            ") has (", w.OH, ", ", w.OW, ") windows, a column each; got columns ", columns.shape());
  Tensor x = empty_like(columns, {N, C, image.h, image.w});  // (N, C, H, W)
  LAUNCH(columns, fold2d, x, columns, N, w);
  return record("fold2d", x, {columns}, [kernel, options](const Tensor& dx) {
    return TensorList{unfold2d(dx, kernel, options)};
  });
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2dOptions& options) {
  check_images("conv2d", x);
  CHECK_ARG(w.dim() == 4 && w.size(1) == x.size(1),
            "conv2d: wanted x (N, C, H, W) and w (O, C, kh, kw) of one C; got x ", x.shape(),
            " and w ", w.shape());
  const int64_t N = x.size(0), O = w.size(0);
  CHECK_ARG(!b.defined() || b.shape() == Shape{O}, "conv2d: wanted b of shape (", O,
            "), the first dimension of w ", w.shape(), "; got ", b.shape());
  CHECK_ARG(w.dtype() == x.dtype() && (!b.defined() || b.dtype() == x.dtype()),
            "conv2d: one dtype wanted; got x ", name(x.dtype()), ", w ", name(w.dtype()), ", b ",
            b.defined() ? name(b.dtype()) : "undefined", "; convert one of them");
  const Size2d kernel{w.size(2), w.size(3)};
  const Windows at = windows_of("conv2d", x.shape(), kernel, options);

  const Tensor columns = unfold2d(x, kernel, options);                       // (N, CK, OH OW)
  const Tensor filters = reshape(w, {O, at.C * kernel.h * kernel.w});        // (O, CK)
  const Tensor y = reshape(matmul(filters, columns), {N, O, at.OH, at.OW});  // (N, O, OH, OW)
  return b.defined() ? y + reshape(b, {O, 1, 1}) : y;
}

// Where the largest elements are is found by a kernel, the elements by gather.
Tensor max_pool2d(const Tensor& x, Size2d kernel, Size2d stride, Size2d padding) {
  check_images("max_pool2d", x);
  const Windows w = windows_of("max_pool2d", x.shape(), kernel, {stride, padding});
  CHECK_ARG(padding.h <= kernel.h / 2 && padding.w <= kernel.w / 2,
            "max_pool2d: padding may be half of the kernel at most, else a window has no elements; "
            "got padding (",
            padding.h, ", ", padding.w, "), kernel (", kernel.h, ", ", kernel.w, ")");
  CHECK_ARG(w.H > 0 && w.W > 0, "max_pool2d: the largest of no elements is undefined; got x ",
            x.shape());
  const int64_t N = x.size(0);
  const Tensor planes = reshape(x, {N, w.C, w.H * w.W});           // (N, C, H W)
  Tensor index = empty({N, w.C, w.OH, w.OW}, kInt64, x.device());  // (N, C, OH, OW)
  LAUNCH(x, max_pool2d_index, index, planes, N, w);
  const Tensor y = gather(planes, -1, reshape(index, {N, w.C, w.OH * w.OW}));  // (N, C, OH OW)
  return reshape(y, index.shape());                                            // (N, C, OH, OW)
}

Tensor avg_pool2d(const Tensor& x, Size2d kernel, Size2d stride, Size2d padding,
                  bool count_include_pad) {
  check_images("avg_pool2d", x);
  const Conv2dOptions options{stride, padding};
  const Windows w = windows_of("avg_pool2d", x.shape(), kernel, options);
  const int64_t N = x.size(0);
  const auto sums = [&](const Tensor& images) {  // (P, 1, H, W) -> (P, OH OW)
    return sum(unfold2d(images, kernel, options), 1);
  };
  const Tensor total = sums(reshape(x, {N * w.C, 1, w.H, w.W}));  // (N C, OH OW)
  const Tensor mean = count_include_pad
                          ? total / static_cast<double>(kernel.h * kernel.w)
                          : total / sums(full_like(x, {1, 1, w.H, w.W}, 1));  // (N C, OH OW)
  return reshape(mean, {N, w.C, w.OH, w.OW});                                 // (N, C, OH, OW)
}

}  // namespace pellucid
