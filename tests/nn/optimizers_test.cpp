// SGD, Adam and Muon against PyTorch's and NumPy's numbers in float64, what Muon's products do to
// singular values, the groups, and what all optimizers share: the state, the bytes, the refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "kernels/thread_pool.h"
#include "nn/optim.h"
#include "train_steps.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

using Values = std::vector<double>;
using Groups = std::vector<ParameterGroup>;
using Maker = std::function<std::unique_ptr<Optimizer>(const Groups&)>;

template <class O, class... Options>
Maker maker(Options... options) {
  return [=](const Groups& groups) { return std::make_unique<O>(groups, options...); };
}

struct Weights : Module {
  Tensor w;
  explicit Weights(const Tensor& start) : w(parameter(start.shape(), 0, start.dtype())) {
    load_state_dict({{"w", start}});
  }
  void visit(Visitor& v) override { v("w", w); }
};

Tensor doubles(const Values& x, const Shape& shape) { return from_vector(x, shape, kFloat64); }

// The parameters that three steps give, against those of another program.
void check_steps(Weights& net, Optimizer& optimizer, const std::vector<Values>& gradients,
                 const std::vector<Values>& wanted, double lr, double bound) {
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    net.w.grad() = doubles(gradients[step], net.w.shape());
    optimizer.step(lr);
    CAPTURE(step);
    CHECK(max_difference(net.w.to_vector(), wanted[step]) < bound);
  }
}

// A rotation of the plane of two of n axes for each pair: an orthogonal (n, n).
Tensor rotation(int64_t n, double angle) {
  Tensor q = eye(n, kFloat64);  // (n, n)
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) {
      Values r = eye(n, kFloat64).to_vector();
      const double a = angle * static_cast<double>(i + 2 * j + 1);
      r[size_t(i * n + i)] = r[size_t(j * n + j)] = std::cos(a);
      r[size_t(i * n + j)] = -(r[size_t(j * n + i)] = std::sin(a));
      q = matmul(q, doubles(r, {n, n}));
    }
  return q;
}

struct Case {
  const char* name;
  double lr;  // at which twenty steps on a small GPT show
  std::function<std::unique_ptr<Optimizer>(GPT&)> make;
};
std::vector<Case> cases() {
  const auto with = [](const Maker& make) {
    return [make](GPT& model) { return make(decay_matrices(model.named_parameters(), 0.1)); };
  };
  return {{"SGD", 0.3, with(maker<SGD>())},
          {"SGD with momentum", 0.05, with(maker<SGD>(SGDOptions{.momentum = 0.9}))},
          {"Nesterov", 0.05, with(maker<SGD>(SGDOptions{.momentum = 0.9, .nesterov = true}))},
          {"Adam", 0.01, with(maker<Adam>())},
          {"AdamW", 0.01, with(maker<AdamW>())},
          {"Muon", 0.01, [](GPT& model) {
             return std::make_unique<Muon>(muon_groups(model.named_parameters(), 0.1, 2));
           }}};
}

}  // namespace

// Three steps of torch.optim 1.13.1 in float64; the numbers there are sums of a few terms below 3.
TEST_CASE("SGD and Adam give PyTorch's numbers") {
  struct Row {
    const char* name;
    Maker make;
    double lr, decay;
    std::vector<Values> wanted;
  };
  const SGDOptions momentum{.momentum = 0.9}, nesterov{.momentum = 0.9, .nesterov = true};
  const std::vector<Row> rows = {
      {"sgd",
       maker<SGD>(),
       0.1,
       0,
       {{0.98999999999999999, -1.98, 0.5},
        {0.95999999999999996, -1.97, 0.49999999899999997},
        {0.97999999999999998, -2.0099999999999998, 0.49999999899999997}}},
      {"sgd, decay",
       maker<SGD>(),
       0.1,
       0.01,
       {{0.98899999999999999, -1.978, 0.4995},
        {0.95801099999999995, -1.9660219999999999, 0.49900049899999999},
        {0.97705298899999993, -2.0040559779999998, 0.49850149850100001}}},
      {"momentum",
       maker<SGD>(momentum),
       0.1,
       0.01,
       {{0.98899999999999999, -1.978, 0.4995},
        {0.94811100000000004, -1.9462219999999999, 0.49855049899999998},
        {0.93036278900000002, -1.9556755779999999, 0.49719739760099996}}},
      {"nesterov",
       maker<SGD>(nesterov),
       0.1,
       0.01,
       {{0.97909999999999997, -1.9581999999999999, 0.49904999999999999},
        {0.91132970999999996, -1.9176594199999999, 0.49769680309999997},
        {0.91448611255099999, -1.9642917251019998, 0.49598244786411}}},
      {"adam, decay",
       maker<Adam>(),
       0.01,
       0.1,
       {{0.99000000050000003, -1.99000000025, 0.4900000019999996},
        {0.98034551361425781, -1.9801773550832122, 0.48000577962098218},
        {0.97449381434941562, -1.9755360405057634, 0.47002133509259142}}},
      {"adam",
       maker<Adam>(),
       0.01,
       0,
       {{0.99000000099999985, -1.9900000005, 0.5},
        {0.98082219022055894, -1.9806782047015365, 0.49691723283692785},
        {0.97824315228897929, -1.9827417748955474, 0.49481178201981912}}}};
  const std::vector<Values> gradients = {{.1, -.2, 0}, {.3, -.1, 1e-8}, {-.2, .4, 0}};
  for (const Row& row : rows) {
    INFO(std::string(row.name));
    Weights net(doubles({1, -2, 0.5}, {3}));
    const auto optimizer = row.make({{net.named_parameters(), row.decay}});
    check_steps(net, *optimizer, gradients, row.wanted, row.lr, 2e-15);
    CHECK(optimizer->steps() == 3);
  }
}

// By NumPy in float64. The five steps multiply what is rounded by less than 3.5^5 = 525.
TEST_CASE("Muon against NumPy, tall and wide") {
  struct Row {
    Shape shape;
    std::vector<Values> wanted;
  };
  const std::vector<Row> rows = {
      {{3, 2},
       {{-0.17689506814465625, -0.094928008835875641, -0.0028891898985809422, 0.082052071308514773,
         0.20246973335889981, 0.31061881257873486},
        {-0.17282462394301257, -0.11362193578023241, -0.0009443525849236196, 0.085532130543854321,
         0.18195019627230968, 0.30257723500517952},
        {-0.16419059345558118, -0.11558539909896783, -0.015180991840375191, 0.07338753372096625,
         0.18791269531062763, 0.27917612237181011}}},
      {{2, 3},
       {{-0.187016203724191, -0.10670323006429351, 0.0081497044336067814, 0.087582813832812564,
         0.19528685121259262, 0.30984649762359562},
        {-0.17510104153153797, -0.11495726401376635, 0.0049972987784534335, 0.081964743573428991,
         0.18386185906923869, 0.31668277897425579},
        {-0.16510603072694371, -0.11840146672403916, -0.0060746042072184914, 0.071190094074310567,
         0.19855219346504346, 0.30769031977459094}}}};
  std::vector<Values> gradients;
  for (int step = 0; step < 3; ++step) {
    Values g;
    for (int i = 0; i < 6; ++i) g.push_back(double((7 * i + 3 * step) % 11 - 5) / 10);
    gradients.push_back(g);
  }
  for (const Row& row : rows) {
    INFO(row.shape);
    Weights net(doubles({-.2, -.1, 0, .1, .2, .3}, row.shape));
    Muon optimizer({{net.named_parameters(), 0.1, 1, true}});
    check_steps(net, optimizer, gradients, row.wanted, 0.02, 2e-13);
    CHECK(optimizer.state_dict().contains("w.momentum_buffer"));
  }
}

TEST_CASE(
    "orthogonalize takes each singular value through the polynomial, and leaves the vectors") {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 5}, {5, 1}, {3, 3}, {2, 7}, {7, 2}, {17, 31}, {33, 9}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const int64_t r = std::min(rows, columns);
    const Tensor U = slice(rotation(rows, 0.3), 1, 0, r),
                 V = slice(rotation(columns, 0.7), 1, 0, r);
    Values s, wanted;
    double squares = 0;
    for (int64_t i = 0; i < r; ++i) s.push_back(3 / static_cast<double>(1 + i));
    for (const double x : s) squares += x * x;
    for (double x : s) {
      x /= std::sqrt(squares) + 1e-7;
      for (int i = 0; i < 5; ++i)
        x = 3.4445 * x - 4.7750 * std::pow(x, 3) + 2.0315 * std::pow(x, 5);
      wanted.push_back(x);
      CHECK(x > 0.68);
      CHECK(x < 1.14);
    }
    const auto built = [&](const Values& values) {
      return matmul(U * doubles(values, {r}), transpose(V, 0, 1));  // (rows, columns)
    };
    const Tensor x = built(s);
    // Products of r terms, in each of which an error may grow as above.
    CHECK(max_difference(orthogonalize(x).to_vector(), built(wanted).to_vector()) < 1e-12);
    CHECK(max_difference(orthogonalize(x * 1e6).to_vector(), built(wanted).to_vector()) < 1e-5);
    CHECK(max_difference(orthogonalize(contiguous(transpose(x, 0, 1))).to_vector(),
                         contiguous(transpose(built(wanted), 0, 1)).to_vector()) < 1e-12);
  }
  CHECK(orthogonalize(zeros({2, 3})).to_vector() == Values(6, 0));
  CHECK(orthogonalize(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(orthogonalize(zeros({3})), "orthogonalize: wanted a matrix; got x (3)");
}

TEST_CASE("Muon's groups: the blocks' matrices, the other matrices, the rest") {
  GPTConfig config = tiny_configs()["xsa, gate"];
  GPT model(config, 1);
  const Groups groups = muon_groups(model.named_parameters(), 0.1, 20);
  REQUIRE(groups.size() == 3);
  std::size_t count = 0;
  for (const ParameterGroup& group : groups) count += group.parameters.size();
  CHECK(count == model.named_parameters().size());
  CHECK(groups[0].parameters.size() == 4 * static_cast<std::size_t>(config.n_layer));
  for (const auto& [key, x] : groups[0].parameters) {
    CHECK(key.starts_with("h."));
    CHECK(key.ends_with(".weight"));
    CHECK(x.dim() == 2);
  }
  CHECK(groups[0].orthogonalize);
  CHECK(groups[0].lr_scale == 20);
  for (const auto& [key, x] : groups[1].parameters) CHECK(key.starts_with("w"));  // wte, wpe
  CHECK(groups[1].parameters.size() == 2);
  for (const std::size_t i : {1, 2}) {
    CHECK(!groups[i].orthogonalize);
    CHECK(groups[i].lr_scale == 1);
  }
  CHECK(groups[1].weight_decay == 0.1);
  CHECK(groups[2].weight_decay == 0);
}

TEST_CASE("a group's share of the learning rate") {
  Weights a(doubles({1, 2}, {2})), b(doubles({1, 2}, {2}));
  SGD whole({{a.named_parameters()}}), half({{b.named_parameters(), 0, 0.5}});
  a.w.grad() = b.w.grad() = doubles({3, -1}, {2});
  whole.step(0.05), half.step(0.1);
  CHECK(a.w.to_vector() == b.w.to_vector());
}

TEST_CASE("clipping and accumulation scale the gradient of every optimizer") {
  for (const Case& c : cases()) {
    INFO(std::string(c.name));
    GPT a = tiny_gpt(tiny_configs()["xsa"]), b = tiny_gpt(tiny_configs()["xsa"]);
    const auto first = c.make(a), second = c.make(b);
    const Tensor ids = random_ids(2, 6, 7, 1);
    a.loss(ids, ids).backward();
    (b.loss(ids, ids) * 4.0).backward();
    second->scale_grads(0.25);
    first->step(0.01), second->step(0.01);
    CHECK(max_difference(all_weights(a), all_weights(b)) < 1e-12);
  }
}

TEST_CASE("the state of every optimizer comes back: the run goes on with the same bytes") {
  for (const Case& c : cases()) {
    INFO(std::string(c.name));
    GPT a(tiny_configs()["xsa, gate"], 3), b(tiny_configs()["xsa, gate"], 4);
    const auto first = c.make(a), second = c.make(b);
    train(a, *first, 0, 4);
    const StateDict weights = copy_of(a.state_dict()), state = copy_of(first->state_dict());
    train(a, *first, 4, 8);
    b.load_state_dict(weights);
    second->load_state_dict(state);
    train(b, *second, 4, 8);
    CHECK(all_weights(a) == all_weights(b));
    CHECK(second->steps() == 8);
  }
}

TEST_CASE("every optimizer learns, with the same bytes for any number of threads") {
  const int before = num_threads();
  const Tensor ids = random_ids(3, 33, 17, 1), targets = random_ids(3, 33, 17, 2);
  for (const Case& c : cases()) {
    INFO(std::string(c.name));
    Values reference;
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      GPTConfig config;
      config.vocab_size = 17, config.block_size = 33, config.n_layer = 2, config.n_head = 2;
      config.n_embd = 32;
      GPT model(config, 1);
      const auto optimizer = c.make(model);
      const double start = model.loss(ids, targets).item();
      for (int step = 0; step < 20; ++step) {
        model.loss(ids, targets).backward();
        optimizer->step(c.lr);
        optimizer->zero_grad();
      }
      CHECK(model.loss(ids, targets).item() < start - 0.1);
      if (threads == 1) reference = all_weights(model);
      CHECK(all_weights(model) == reference);
    }
  }
  set_num_threads(before);
}

TEST_CASE("what the optimizers refuse") {
  Weights net(doubles({1, 2}, {2}));
  const Groups groups{{net.named_parameters()}};
  CHECK_THROWS_WITH(SGD(groups, {.momentum = 1}), "SGD: momentum must be in [0, 1); got 1");
  CHECK_THROWS_WITH(SGD(groups, {.nesterov = true}), "SGD: nesterov needs a momentum above 0");
  CHECK_THROWS_WITH(SGD({{net.named_parameters(), -1}}),
                    "SGD: weight_decay must not be negative; got -1");
  CHECK_THROWS_WITH(SGD({{net.named_parameters(), 0, NAN}}),
                    "SGD: lr_scale must be finite and not negative; got nan");
  CHECK_THROWS_WITH(Adam(groups, {.beta1 = -1}), "Adam: betas must be in [0, 1); got -1, 0.999");
  CHECK_THROWS_WITH(Adam(groups, {.eps = 0}), "Adam: eps must be positive; got 0");
  CHECK_THROWS_WITH(Muon(groups, NAN), "Muon: momentum must be in [0, 1); got nan");
  CHECK_THROWS_WITH(Muon({{net.named_parameters(), 0, 1, true}}),
                    "Muon: only matrices can be orthogonalised; w has shape (2)");
  SGD optimizer(groups);
  CHECK_THROWS_WITH(optimizer.step(1),
                    "SGD: no gradient has come to w; call backward() first, and see that the loss "
                    "depends on it");
  Muon muon(groups);
  CHECK_THROWS_WITH(muon.load_state_dict(optimizer.state_dict()),
                    "Muon: the state does not fit, nothing was loaded; missing: w.exp_avg; "
                    "missing: w.exp_avg_sq");
}
