#include "kernels/optimizer_step.h"

#include "kernels/half.h"
#include "kernels/optimizer_step_math.h"
#include "kernels/optimizer_step_table.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace gputrain::kernels;
using gputrain::test::GpuArray;
using gputrain::test::has_gpu;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kPoison = -12345.0F;
constexpr std::uint16_t kLowPoison = 0x1234;
constexpr std::int64_t kMargin = 5;  // elements behind each array that must stay as they are

// Where the host's compiler may fuse multiplication and addition, CPU and GPU differ in the last bits.
#if defined(__FMA__) || defined(__aarch64__)
constexpr bool kSameBits = false;
#else
constexpr bool kSameBits = true;
#endif

struct TensorCase {
  std::int64_t count = 0;
  bool wide = true;  // float32 weights
  bool low = false;  // 16-bit weights
  Element low_type = Element::kFloat16;
  Element gradient_type = Element::kFloat32;
  std::int64_t offset = 0;  // elements by which all arrays are moved off their alignment
  float lr_scale = 1;
  float weight_decay = 0;
};

// Memory of a tensor, poisoned before and behind its elements.
struct Arrays {
  std::vector<float> weight;
  std::vector<std::uint16_t> low;
  std::vector<float> wide_gradient;
  std::vector<std::uint16_t> narrow_gradient;
  std::vector<float> state1;
  std::vector<float> state2;
};

struct TestTensor {
  TensorCase form;
  Arrays arrays;
};
using Model = std::vector<TestTensor>;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same_bits(const Arrays& a, const Arrays& b) {
  return same_bits(a.weight, b.weight) && same_bits(a.low, b.low) && same_bits(a.state1, b.state1) &&
         same_bits(a.state2, b.state2) && same_bits(a.wide_gradient, b.wide_gradient) &&
         same_bits(a.narrow_gradient, b.narrow_gradient);
}

float gradient_of(const TestTensor& tensor, std::int64_t i) {
  const auto at = static_cast<std::size_t>(tensor.form.offset + i);
  return tensor.form.gradient_type == Element::kFloat32
             ? tensor.arrays.wide_gradient[at]
             : widened(tensor.arrays.narrow_gradient[at], tensor.form.gradient_type);
}

void set_gradient(TestTensor& tensor, std::int64_t i, float value) {
  const auto at = static_cast<std::size_t>(tensor.form.offset + i);
  if (tensor.form.gradient_type == Element::kFloat32) {
    tensor.arrays.wide_gradient[at] = value;
  } else {
    tensor.arrays.narrow_gradient[at] = rounded_to(tensor.form.gradient_type, value);
  }
}

TestTensor new_tensor(const TensorCase& form, const std::function<float()>& weight) {
  TestTensor tensor{form, {}};
  const auto size = static_cast<std::size_t>(form.offset + form.count + kMargin);
  Arrays& a = tensor.arrays;
  for (auto* array : {&a.weight, &a.wide_gradient, &a.state1, &a.state2}) array->assign(size, kPoison);
  for (auto* array : {&a.low, &a.narrow_gradient}) array->assign(size, kLowPoison);
  for (std::int64_t i = 0; i < form.count; ++i) {
    const auto at = static_cast<std::size_t>(form.offset + i);
    a.weight[at] = weight();
    if (!form.wide) a.low[at] = rounded_to(form.low_type, a.weight[at]);
    a.state1[at] = 0;
    a.state2[at] = 0;
    set_gradient(tensor, i, 0);
  }
  return tensor;
}

OptimizerTensor tensor_at(const TensorCase& form, float* weight, std::uint16_t* low,
                          const float* wide_gradient, const std::uint16_t* narrow_gradient, float* state1,
                          float* state2) {
  OptimizerTensor t;
  t.weight = form.wide ? weight + form.offset : nullptr;
  t.low = form.low ? low + form.offset : nullptr;
  t.low_type = form.low_type;
  t.gradient = form.gradient_type == Element::kFloat32
                   ? static_cast<const void*>(wide_gradient + form.offset)
                   : static_cast<const void*>(narrow_gradient + form.offset);
  t.gradient_type = form.gradient_type;
  t.state1 = state1 + form.offset;
  t.state2 = state2 + form.offset;
  t.count = form.count;
  t.lr_scale = form.lr_scale;
  t.weight_decay = form.weight_decay;
  return t;
}

std::vector<OptimizerTensor> on_cpu(Model& model) {
  std::vector<OptimizerTensor> tensors;
  for (TestTensor& tensor : model) {
    Arrays& a = tensor.arrays;
    tensors.push_back(tensor_at(tensor.form, a.weight.data(), a.low.data(), a.wide_gradient.data(),
                                a.narrow_gradient.data(), a.state1.data(), a.state2.data()));
  }
  return tensors;
}

struct Scalars {
  float lr = 0.1F;
  float gradient_scale = 1;
  float apply = 1;
  float step = 1;
  std::uint64_t seed = 99;
};

StepScalars at(const float* four, std::uint64_t seed) {
  return {four, four + 1, four + 2, four + 3, seed};
}

// A rule, and what it does to one element by its paper's formula, in double. Returns false where rounding
// decides between results far apart: the sign of a number near 0.
struct RuleCase {
  std::string name;
  std::function<void(OptimizerTable&, const StepScalars&)> run;
  std::function<bool(double& p, double& m, double& v, double g, double lr, double decay, int step)> formula;
};

RuleCase sgd_case(double momentum, bool nesterov) {
  return {"sgd, momentum " + std::to_string(momentum) + (nesterov ? ", nesterov" : ""),
          [=](OptimizerTable& table, const StepScalars& scalars) {
            table.sgd({momentum, nesterov}, scalars, nullptr);
          },
          [=](double& p, double& m, double&, double g, double lr, double decay, int) {
            g += decay * p;
            if (momentum == 0) {
              p -= lr * g;
              return true;
            }
            m = momentum * m + g;
            p -= lr * (nesterov ? g + momentum * m : m);
            return true;
          }};
}

RuleCase adamw_case(bool decoupled) {
  const AdamWRule rule = {0.9, 0.99, 1e-8, decoupled};
  return {decoupled ? "adamw" : "adam",
          [=](OptimizerTable& table, const StepScalars& scalars) { table.adamw(rule, scalars, nullptr); },
          [=](double& p, double& m, double& v, double g, double lr, double decay, int step) {
            if (decoupled) {
              p -= lr * decay * p;
            } else {
              g += decay * p;
            }
            m = rule.beta1 * m + (1 - rule.beta1) * g;
            v = rule.beta2 * v + (1 - rule.beta2) * g * g;
            const double m_hat = m / (1 - std::pow(rule.beta1, step));
            const double v_hat = v / (1 - std::pow(rule.beta2, step));
            p -= lr * m_hat / (std::sqrt(v_hat) + rule.eps);
            return decoupled || std::abs(g) > 2e-5;
          }};
}

RuleCase lion_case() {
  return {"lion", [](OptimizerTable& table, const StepScalars& scalars) { table.lion({}, scalars, nullptr); },
          [](double& p, double& m, double&, double g, double lr, double decay, int) {
            const double c = 0.9 * m + 0.1 * g;
            p -= lr * ((c > 0) - (c < 0) + decay * p);
            m = 0.99 * m + 0.01 * g;
            return std::abs(c) > 1e-5;
          }};
}

std::vector<RuleCase> all_rules() {
  return {sgd_case(0, false), sgd_case(0.9, false), sgd_case(0.9, true),
          adamw_case(true),   adamw_case(false),    lion_case()};
}

void step_on_cpu(Model& model, const RuleCase& rule, const Scalars& scalars) {
  OptimizerTable table(false);
  table.set(on_cpu(model), nullptr);
  const float four[4] = {scalars.lr, scalars.gradient_scale, scalars.apply, scalars.step};
  rule.run(table, at(four, scalars.seed));
}

// The trajectory that the formula prescribes for the float32 weights of a model.
class Reference {
 public:
  explicit Reference(const Model& model) {
    for (const TestTensor& tensor : model) {
      const float* first = tensor.arrays.weight.data() + tensor.form.offset;
      const auto count = static_cast<std::size_t>(tensor.form.count);
      tensors_.push_back({std::vector<double>(first, first + count), std::vector<double>(count),
                          std::vector<double>(count), std::vector<char>(count, 1)});
    }
  }

  void step(const Model& model, const RuleCase& rule, const Scalars& scalars) {
    ++steps_;
    for (std::size_t t = 0; t < model.size(); ++t) {
      const TensorCase& form = model[t].form;
      Trajectory& want = tensors_[t];
      const double lr = static_cast<double>(scalars.lr) * form.lr_scale;
      for (std::size_t i = 0; i < want.p.size(); ++i) {
        const double g =
            static_cast<double>(gradient_of(model[t], static_cast<std::int64_t>(i))) * scalars.gradient_scale;
        if (!rule.formula(want.p[i], want.m[i], want.v[i], g, lr, form.weight_decay, steps_))
          want.certain[i] = 0;
      }
    }
  }

  // Every element: within some roundings a step of float32 numbers of its size; margins untouched.
  void require_near(const Model& model) const {
    std::int64_t uncertain = 0;
    for (std::size_t t = 0; t < model.size(); ++t) {
      const TensorCase& form = model[t].form;
      const Arrays& got = model[t].arrays;
      require_margins(form, got);
      if (!form.wide) continue;
      const Trajectory& want = tensors_[t];
      for (std::size_t i = 0; i < want.p.size(); ++i) {
        if (want.certain[i] == 0) {
          ++uncertain;
          continue;
        }
        const std::size_t at = static_cast<std::size_t>(form.offset) + i;
        const bool near = is_near(got.weight[at], want.p[i]) && is_near(got.state1[at], want.m[i]) &&
                          is_near(got.state2[at], want.v[i]);
        const bool copied = !form.low || got.low[at] == rounded_to(form.low_type, got.weight[at]);
        if (near && copied) continue;
        INFO("tensor " << t << " of " << form.count << ", element " << i << ": weight " << got.weight[at]
                       << " for " << want.p[i] << ", state1 " << got.state1[at] << " for " << want.m[i]
                       << ", state2 " << got.state2[at] << " for " << want.v[i] << ", low weight "
                       << got.low[at]);
        REQUIRE(near);
        REQUIRE(copied);
      }
    }
    REQUIRE(uncertain < 500);  // of some 400,000
  }

 private:
  struct Trajectory {
    std::vector<double> p;
    std::vector<double> m;
    std::vector<double> v;
    std::vector<char> certain;
  };

  bool is_near(float got, double want) const {
    const double margin = 16.0 * std::numeric_limits<float>::epsilon() * steps_;
    return std::abs(got - want) <= margin * (1 + std::abs(want));
  }

  static void require_margins(const TensorCase& form, const Arrays& a) {
    const auto size = static_cast<std::int64_t>(a.weight.size());
    for (std::int64_t i = 0; i < size; ++i) {
      if (i >= form.offset && i < form.offset + form.count) continue;
      const auto at = static_cast<std::size_t>(i);
      REQUIRE(a.weight[at] == kPoison);
      REQUIRE(a.state1[at] == kPoison);
      REQUIRE(a.state2[at] == kPoison);
      REQUIRE(a.low[at] == kLowPoison);
    }
  }

  std::vector<Trajectory> tensors_;
  int steps_ = 0;
};

// Every mixture of types, at unequal sizes, aligned and not.
std::vector<TensorCase> many_tensors() {
  const Element gradients[] = {Element::kFloat32, Element::kFloat16, Element::kBfloat16};
  const std::int64_t counts[] = {1, 3, 4, 1023, 1024, 0, 8191, 8192, 8193, 20001, 7, 65537};
  const std::int64_t offsets[] = {0, 1, 0, 4, 2, 3, 8};
  std::vector<TensorCase> cases;
  std::size_t n = 0;
  for (int round = 0; round < 2; ++round) {
    for (const Element gradient : gradients) {
      for (const Element low : gradients) {
        for (const bool wide : {true, false}) {
          if (!wide && low == Element::kFloat32) continue;
          TensorCase form;
          form.count = counts[n % 12];
          form.offset = offsets[n % 7];
          form.wide = wide;
          form.low = low != Element::kFloat32;
          form.low_type = form.low ? low : Element::kFloat16;
          form.gradient_type = gradient;
          form.lr_scale = n % 5 == 4 ? 0.0F : n % 5 == 3 ? 0.5F : 1.0F;
          form.weight_decay = n % 3 == 0 ? 0.0F : 0.05F;
          cases.push_back(form);
          ++n;
        }
      }
    }
  }
  return cases;
}

Model random_model(const std::vector<TensorCase>& cases, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Model model;
  for (const TensorCase& form : cases) model.push_back(new_tensor(form, [&] { return normal(random); }));
  return model;
}

void draw_gradients(Model& model, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (TestTensor& tensor : model) {
    for (std::int64_t i = 0; i < tensor.form.count; ++i) set_gradient(tensor, i, normal(random));
  }
}

struct GpuArrays {
  explicit GpuArrays(const Arrays& a)
      : weight(a.weight),
        low(a.low),
        wide_gradient(a.wide_gradient),
        narrow_gradient(a.narrow_gradient),
        state1(a.state1),
        state2(a.state2) {}
  Arrays read() const {
    return {weight.read(),          low.read(),    wide_gradient.read(),
            narrow_gradient.read(), state1.read(), state2.read()};
  }

  GpuArray<float> weight;
  GpuArray<std::uint16_t> low;
  GpuArray<float> wide_gradient;
  GpuArray<std::uint16_t> narrow_gradient;
  GpuArray<float> state1;
  GpuArray<float> state2;
};

// The model after the step, which is made in new memory of the GPU.
Model stepped_on_gpu(OptimizerTable& table, Model model, const RuleCase& rule, const Scalars& scalars) {
  std::vector<std::unique_ptr<GpuArrays>> memory;
  std::vector<OptimizerTensor> tensors;
  for (const TestTensor& tensor : model) {
    memory.push_back(std::make_unique<GpuArrays>(tensor.arrays));
    GpuArrays& a = *memory.back();
    tensors.push_back(tensor_at(tensor.form, a.weight.data(), a.low.data(), a.wide_gradient.data(),
                                a.narrow_gradient.data(), a.state1.data(), a.state2.data()));
  }
  GpuArray<float> four({scalars.lr, scalars.gradient_scale, scalars.apply, scalars.step});
  table.set(tensors, nullptr);
  rule.run(table, at(four.data(), scalars.seed));
  for (std::size_t t = 0; t < model.size(); ++t) model[t].arrays = memory[t]->read();
  return model;
}

// One tensor of one float32 weight.
Model one_weight(float weight, float gradient, float decay) {
  TensorCase form;
  form.count = 1;
  form.weight_decay = decay;
  Model model = {new_tensor(form, [=] { return weight; })};
  set_gradient(model[0], 0, gradient);
  return model;
}

double mean_of_low_weights(const Model& model) {
  double sum = 0;
  for (std::int64_t i = 0; i < model[0].form.count; ++i)
    sum += widened(model[0].arrays.low[static_cast<std::size_t>(i)], model[0].form.low_type);
  return sum / static_cast<double>(model[0].form.count);
}

// 100 updates of size `update` to weights of 1, rounded stochastically.
Model drifted(Element type, float update) {
  TensorCase form;
  form.count = 4096;
  form.wide = false;
  form.low = true;
  form.low_type = type;
  Model model = {new_tensor(form, [] { return 1.0F; })};
  for (std::int64_t i = 0; i < form.count; ++i) set_gradient(model[0], i, -1);
  Scalars scalars;
  scalars.lr = update;
  for (int step = 1; step <= 100; ++step) {
    scalars.step = static_cast<float>(step);
    step_on_cpu(model, sgd_case(0, false), scalars);
  }
  return model;
}

}  // namespace

TEST_CASE("sgd: decay joins the gradient, momentum gathers it, nesterov looks ahead", "[kernels]") {
  Scalars scalars;
  scalars.lr = 0.5F;
  scalars.gradient_scale = 2;
  Model plain = one_weight(2, 1, 0.5F);
  step_on_cpu(plain, sgd_case(0, false), scalars);
  REQUIRE(plain[0].arrays.weight[0] == 0.5F);  // 2 - 0.5 * (1 * 2 + 0.5 * 2)
  REQUIRE(plain[0].arrays.state1[0] == 0);

  Model momentum = one_weight(2, 1, 0.5F);
  step_on_cpu(momentum, sgd_case(0.5, false), scalars);
  REQUIRE(momentum[0].arrays.state1[0] == 3);
  REQUIRE(momentum[0].arrays.weight[0] == 0.5F);
  step_on_cpu(momentum, sgd_case(0.5, false), scalars);
  REQUIRE(momentum[0].arrays.state1[0] == 3.75F);    // 0.5 * 3 + (2 + 0.5 * 0.5)
  REQUIRE(momentum[0].arrays.weight[0] == -1.375F);  // 0.5 - 0.5 * 3.75

  Model nesterov = one_weight(2, 1, 0.5F);
  step_on_cpu(nesterov, sgd_case(0.5, true), scalars);
  REQUIRE(nesterov[0].arrays.weight[0] == -0.25F);  // 2 - 0.5 * (3 + 0.5 * 3)
}

TEST_CASE("adamw: the first step moves a weight by lr, and decay acts apart from the gradient", "[kernels]") {
  Model model = one_weight(1, 0.5F, 0.01F);
  step_on_cpu(model, adamw_case(true), {});
  REQUIRE(model[0].arrays.weight[0] == Approx(0.899));  // 1 - 0.1 * 0.01 - 0.1 * 0.5 / 0.5
  REQUIRE(model[0].arrays.state1[0] == Approx(0.05));
  REQUIRE(model[0].arrays.state2[0] == Approx(0.0025));  // (1 - 0.99) * 0.25
}

TEST_CASE("adamw: what beta2 leaves is taken before it is rounded to float32", "[kernels]") {
  Model model = one_weight(1, 1, 0);
  const RuleCase rule = {
      "adamw", [](OptimizerTable& table, const StepScalars& scalars) { table.adamw({}, scalars, nullptr); },
      nullptr};
  step_on_cpu(model, rule, {});
  REQUIRE(model[0].arrays.state2[0] == 0.001F);  // and not 1 - 0.999F, which is 0.00100004673
}

TEST_CASE("adam: decay is part of the gradient", "[kernels]") {
  Model model = one_weight(1, 0.5F, 0.5F);
  step_on_cpu(model, adamw_case(false), {});
  REQUIRE(model[0].arrays.weight[0] == Approx(0.9));
  REQUIRE(model[0].arrays.state1[0] == Approx(0.1));
  REQUIRE(model[0].arrays.state2[0] == Approx(0.01));
}

TEST_CASE("lion: the sign of an average moves the weight, another average is kept", "[kernels]") {
  Model model = one_weight(2, -3, 0.25F);
  model[0].arrays.state1[0] = 1;
  const RuleCase rule = {"lion",
                         [](OptimizerTable& table, const StepScalars& scalars) {
                           table.lion({0.5, 0.75}, scalars, nullptr);
                         },
                         nullptr};
  Scalars scalars;
  scalars.lr = 0.5F;
  step_on_cpu(model, rule, scalars);
  REQUIRE(model[0].arrays.weight[0] == 2.25F);  // sign(0.5 * 1 - 0.5 * 3) = -1; 2 - 0.5 * (-1 + 0.25 * 2)
  REQUIRE(model[0].arrays.state1[0] == 0);      // 0.75 * 1 + 0.25 * -3
}

TEST_CASE("lion: a weight whose average is 0 only decays", "[kernels]") {
  Model model = one_weight(2, 0, 0.25F);
  step_on_cpu(model, lion_case(), {});
  REQUIRE(model[0].arrays.weight[0] == Approx(1.95));
}

TEST_CASE("optimizer steps: follow the formulas of the papers in double over several steps", "[kernels]") {
  std::mt19937 random(5);
  for (const RuleCase& rule : all_rules()) {
    INFO(rule.name);
    Model model = random_model(many_tensors(), random);
    Reference reference(model);
    Scalars scalars;
    scalars.gradient_scale = 0.5F;
    for (int step = 1; step <= 4; ++step) {
      scalars.step = static_cast<float>(step);
      draw_gradients(model, random);
      reference.step(model, rule, scalars);
      step_on_cpu(model, rule, scalars);
      reference.require_near(model);
    }
  }
}

TEST_CASE("optimizer steps: 16-bit weights become a neighbour of what float32 arithmetic gives",
          "[kernels]") {
  std::mt19937 random(6);
  for (const RuleCase& rule : all_rules()) {
    for (const Element type : {Element::kFloat16, Element::kBfloat16}) {
      TensorCase form;
      form.count = 1023;
      form.weight_decay = 0.05F;
      form.low = true;
      form.low_type = type;
      Model wide = random_model({form}, random);
      draw_gradients(wide, random);
      Model narrow = wide;
      narrow[0].form.wide = false;
      for (std::size_t i = 0; i < 1023; ++i) {
        const std::uint16_t low = rounded_to(type, wide[0].arrays.weight[i]);
        narrow[0].arrays.low[i] = low;
        wide[0].arrays.weight[i] = widened(low, type);
      }
      step_on_cpu(wide, rule, {});
      step_on_cpu(narrow, rule, {});
      REQUIRE(same_bits(narrow[0].arrays.state1, wide[0].arrays.state1));
      REQUIRE(same_bits(narrow[0].arrays.state2, wide[0].arrays.state2));
      for (std::size_t i = 0; i < 1023; ++i) {
        INFO(rule.name << ", element " << i);
        // A unit is 2^-10 or 2^-7 of the power of two below the number, or 2^-24 of float16's subnormals.
        const float exact = wide[0].arrays.weight[i];
        const float unit =
            type == Element::kFloat16 ? std::abs(exact) * 0x1p-10F + 0x1p-24F : std::abs(exact) * 0x1p-7F;
        REQUIRE(std::abs(widened(narrow[0].arrays.low[i], type) - exact) <= unit);
      }
    }
  }
}

TEST_CASE("optimizer steps: apply 0 changes no bit, whatever the gradients hold", "[kernels]") {
  std::mt19937 random(7);
  for (const RuleCase& rule : all_rules()) {
    INFO(rule.name);
    Model model = random_model(many_tensors(), random);
    for (TestTensor& tensor : model) {
      for (std::int64_t i = 0; i < tensor.form.count; ++i) set_gradient(tensor, i, kNan);
    }
    const Model before = model;
    Scalars scalars;
    scalars.apply = 0;
    step_on_cpu(model, rule, scalars);
    for (std::size_t t = 0; t < model.size(); ++t) REQUIRE(same_bits(model[t].arrays, before[t].arrays));
  }
}

TEST_CASE("optimizer steps: lr_scale 0 keeps weights and moves states", "[kernels]") {
  std::mt19937 random(8);
  for (const RuleCase& rule : {sgd_case(0.9, true), adamw_case(true), adamw_case(false), lion_case()}) {
    INFO(rule.name);
    TensorCase form;
    form.count = 37;
    form.lr_scale = 0;
    form.weight_decay = 0.1F;
    Model model = random_model({form}, random);
    draw_gradients(model, random);
    const Model before = model;
    step_on_cpu(model, rule, {});
    REQUIRE(same_bits(model[0].arrays.weight, before[0].arrays.weight));
    REQUIRE_FALSE(same_bits(model[0].arrays.state1, before[0].arrays.state1));
  }
}

TEST_CASE("optimizer steps: a tensor without a gradient is left alone, and still counted", "[kernels]") {
  TensorCase form;
  form.count = 9;
  form.wide = false;
  form.low = true;
  form.low_type = Element::kBfloat16;
  std::mt19937 random(9);
  Model model = random_model({form, form}, random);
  draw_gradients(model, random);
  Model with_gradient = model;
  step_on_cpu(with_gradient, adamw_case(true), {});

  const Model before = model;
  std::vector<OptimizerTensor> tensors = on_cpu(model);
  tensors[0].gradient = nullptr;
  OptimizerTable table(false);
  table.set(tensors, nullptr);
  const float four[4] = {0.1F, 1, 1, 1};
  adamw_case(true).run(table, at(four, Scalars().seed));
  REQUIRE(same_bits(model[0].arrays, before[0].arrays));
  REQUIRE(same_bits(model[1].arrays, with_gradient[1].arrays));
}

TEST_CASE("optimizer steps: small updates add up in 16-bit weights, where rounding to the nearest stalls",
          "[kernels]") {
  REQUIRE(float_to_bfloat16(1.0F + 1e-3F) == float_to_bfloat16(1.0F));
  REQUIRE(float_to_half(1.0F + 4e-4F) == float_to_half(1.0F));
  // An update u goes up by a unit of 2^-7 (2^-10) with probability u / unit, so that 100 of them vary by
  // 0.026 (0.0048), and the mean of 4096 weights by a 64th of that; bounds are six of these deviations.
  REQUIRE(std::abs(mean_of_low_weights(drifted(Element::kBfloat16, 1e-3F)) - 1.1) < 2.5e-3);
  REQUIRE(std::abs(mean_of_low_weights(drifted(Element::kFloat16, 4e-4F)) - 1.04) < 4.5e-4);
}

TEST_CASE("optimizer steps: random rounding depends on seed, step and element, not on how tensors are cut",
          "[kernels]") {
  TensorCase form;
  form.count = 1000;
  form.wide = false;
  form.low = true;
  form.low_type = Element::kBfloat16;
  std::mt19937 random(10);
  Model model = random_model({form}, random);
  draw_gradients(model, random);
  const auto stepped = [&](std::vector<std::int64_t> counts, const Scalars& scalars) {
    Model copy = model;
    std::vector<OptimizerTensor> tensors;
    for (const std::int64_t count : counts) {
      OptimizerTensor t = tensors.empty() ? on_cpu(copy)[0] : tensors.back();
      const std::int64_t before = tensors.empty() ? 0 : t.count;
      t.low = static_cast<std::uint16_t*>(t.low) + before;
      t.gradient = static_cast<const float*>(t.gradient) + before;
      t.state1 += before;
      t.state2 += before;
      t.count = count;
      tensors.push_back(t);
    }
    OptimizerTable table(false);
    table.set(tensors, nullptr);
    const float four[4] = {scalars.lr, 1, 1, scalars.step};
    table.adamw({}, at(four, scalars.seed), nullptr);
    return copy[0].arrays.low;
  };
  const Scalars first;
  const std::vector<std::uint16_t> whole = stepped({1000}, first);
  REQUIRE(whole == stepped({1, 998, 0, 1}, first));
  Scalars other_seed;
  other_seed.seed = 100;
  REQUIRE(whole != stepped({1000}, other_seed));

  // The same update in another step is rounded otherwise; sgd's depends on nothing else.
  Model step1 = model;
  Model step2 = model;
  Scalars second;
  second.step = 2;
  step_on_cpu(step1, sgd_case(0, false), first);
  step_on_cpu(step2, sgd_case(0, false), second);
  REQUIRE(step1[0].arrays.low != step2[0].arrays.low);
}

TEST_CASE("bias_correction: is 1 - beta^step to a few roundings, up to the last step that a float counts",
          "[kernels]") {
  REQUIRE(bias_correction(0.5, 3) == 0.875);
  REQUIRE(bias_correction(0, 1) == 1);
  REQUIRE(bias_correction(0.9, 1) == 1 - 0.9);
  for (const double beta : {0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.9999999}) {
    for (const float step : {1.0F, 2.0F, 3.0F, 10.0F, 777.0F, 12345.0F, 1e6F, 16777216.0F}) {
      INFO("beta " << beta << ", step " << step);
      const long double expected =
          -std::expm1(static_cast<long double>(step) * std::log(static_cast<long double>(beta)));
      const double got = bias_correction(beta, step);
      REQUIRE(std::abs(static_cast<double>(got - expected)) <=
              4e-16 / (1 - beta) * static_cast<double>(expected));
    }
  }
}

TEST_CASE("lay_out: tensors are cut into chunks, and their elements numbered through the model",
          "[kernels]") {
  alignas(16) static float memory[8] = {};
  OptimizerTensor tensor;
  tensor.weight = memory;
  tensor.gradient = memory + 4;
  std::vector<OptimizerTensor> tensors(5, tensor);
  tensors[0].count = 3;
  tensors[1].count = 0;
  tensors[2].count = 7;
  tensors[2].gradient = nullptr;
  tensors[3].count = 2 * 8192 + 1;
  tensors[4].count = 8192;
  tensors[4].weight = memory + 1;
  const TableLayout layout = lay_out(tensors);
  REQUIRE(layout.tensors.size() == 3);
  REQUIRE(layout.tensors[0].first_element == 0);
  REQUIRE(layout.tensors[1].first_element == 10);
  REQUIRE(layout.tensors[2].first_element == 10 + 16385);
  REQUIRE(layout.tensors[0].whole_vectors);
  REQUIRE_FALSE(layout.tensors[2].whole_vectors);
  std::vector<std::int64_t> chunks;
  for (const TableChunk& chunk : layout.chunks) {
    chunks.push_back(chunk.tensor);
    chunks.push_back(chunk.first);
  }
  REQUIRE(chunks == std::vector<std::int64_t>{0, 0, 1, 0, 1, 8192, 1, 16384, 2, 0});
  REQUIRE(lay_out({}).chunks.empty());
}

TEST_CASE("lay_out: four elements at a time only where every pointer allows them", "[kernels]") {
  alignas(16) static float memory[8] = {};
  const auto whole = [](const std::function<void(OptimizerTensor&)>& change) {
    OptimizerTensor t;
    t.weight = memory;
    t.state1 = memory;
    t.state2 = memory;
    t.low = memory;
    t.gradient = memory;
    t.count = 8;
    change(t);
    return lay_out({t}).tensors[0].whole_vectors;
  };
  REQUIRE(whole([](OptimizerTensor&) {}));
  REQUIRE(whole([](OptimizerTensor& t) { t.low = memory + 2; }));
  REQUIRE(whole([](OptimizerTensor& t) { t.weight = nullptr; }));
  REQUIRE_FALSE(whole([](OptimizerTensor& t) { t.weight = memory + 2; }));
  REQUIRE_FALSE(whole([](OptimizerTensor& t) { t.state1 = memory + 1; }));
  REQUIRE_FALSE(whole([](OptimizerTensor& t) { t.state2 = memory + 3; }));
  REQUIRE_FALSE(whole([](OptimizerTensor& t) { t.low = memory + 1; }));
  REQUIRE_FALSE(whole([](OptimizerTensor& t) { t.gradient = memory + 2; }));
  REQUIRE(whole([](OptimizerTensor& t) {
    t.gradient = memory + 2;
    t.gradient_type = Element::kBfloat16;
  }));
}

TEST_CASE("OptimizerTable: names the tensor that no step could work on", "[kernels]") {
  float number = 0;
  OptimizerTensor good;
  good.weight = &number;
  good.gradient = &number;
  good.count = 1;
  const auto refusal = [&](const std::function<void(OptimizerTensor&)>& change) {
    std::vector<OptimizerTensor> tensors(2, good);
    change(tensors[1]);
    OptimizerTable table(false);
    try {
      table.set(tensors, nullptr);
      table.adamw({}, {&number, &number, &number, &number, 0}, nullptr);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE(refusal([](OptimizerTensor& t) { t.count = -1; }) == "optimizer tensor 1 has -1 elements");
  REQUIRE(refusal([](OptimizerTensor& t) { t.weight = nullptr; }) ==
          "optimizer tensor 1 has no weights, neither float32 nor 16-bit ones");
  REQUIRE(refusal([&](OptimizerTensor& t) {
            t.low = &number;
            t.low_type = Element::kFloat32;
          }) == "optimizer tensor 1 has low weights of type float32; expected float16 or bfloat16");
  REQUIRE(refusal([](OptimizerTensor&) {}) == "optimizer tensor 0 has no state1, which this optimizer keeps");
}

TEST_CASE("OptimizerTable: needs every scalar, and does nothing without tensors", "[kernels]") {
  const float four[4] = {1, 1, 1, 1};
  OptimizerTable table(false);
  table.sgd({}, at(four, 0), nullptr);
  REQUIRE_THROWS_WITH(table.sgd({}, {four, four, nullptr, four, 0}, nullptr),
                      "an optimizer step has no lr, gradient_scale, apply or step");
}

TEST_CASE("OptimizerTable: set again, it works on the new tensors alone", "[kernels]") {
  Model first = one_weight(1, 1, 0);
  Model second = one_weight(1, 1, 0);
  const float four[4] = {0.5F, 1, 1, 1};
  OptimizerTable table(false);
  table.set(on_cpu(first), nullptr);
  table.sgd({}, at(four, 0), nullptr);
  table.set(on_cpu(second), nullptr);
  table.set(on_cpu(second), nullptr);
  table.sgd({}, at(four, 0), nullptr);
  table.sgd({}, at(four, 0), nullptr);
  REQUIRE(first[0].arrays.weight[0] == 0.5F);
  REQUIRE(second[0].arrays.weight[0] == 0);
  table.set({}, nullptr);
  table.sgd({}, at(four, 0), nullptr);
  REQUIRE(second[0].arrays.weight[0] == 0);
}

TEST_CASE("optimizer steps on the GPU follow the formulas and equal the CPU bit for bit", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  OptimizerTable table(true);
  for (const RuleCase& rule : all_rules()) {
    Model gpu = random_model(many_tensors(), random);
    Reference reference(gpu);
    Scalars scalars;
    scalars.gradient_scale = 0.5F;
    scalars.seed = random();
    for (int step = 1; step <= 4; ++step) {
      INFO("seed " << seed << ": " << rule.name << ", step " << step);
      scalars.step = static_cast<float>(step);
      draw_gradients(gpu, random);
      reference.step(gpu, rule, scalars);
      Model cpu = gpu;
      step_on_cpu(cpu, rule, scalars);
      gpu = stepped_on_gpu(table, gpu, rule, scalars);
      reference.require_near(gpu);
      for (std::size_t t = 0; kSameBits && t < gpu.size(); ++t) {
        INFO("tensor " << t);
        REQUIRE(same_bits(gpu[t].arrays, cpu[t].arrays));
      }
    }
  }
}

TEST_CASE("optimizer steps on the GPU equal the CPU for extreme numbers", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  if (!kSameBits) GPUTRAIN_SKIP("needs a host compiler that does not fuse multiplication and addition");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  // Any exponent from float32's subnormals on, up to where sums of float16 stay finite.
  const auto any_size = [&random] {
    return std::ldexp(static_cast<float>(random()) / 0x1p31F - 1, static_cast<int>(random() % 165) - 149);
  };
  OptimizerTable table(true);
  for (const RuleCase& rule : all_rules()) {
    Model gpu;
    for (const TensorCase& form : many_tensors()) gpu.push_back(new_tensor(form, any_size));
    for (TestTensor& tensor : gpu) {
      for (std::int64_t i = 0; i < tensor.form.count; ++i) {
        set_gradient(tensor, i, any_size());
      }
    }
    Model cpu = gpu;
    for (const float step : {1.0F, 123457.0F}) {
      INFO("seed " << seed << ": " << rule.name << ", step " << step);
      Scalars scalars;
      scalars.lr = 3e-3F;
      scalars.step = step;
      step_on_cpu(cpu, rule, scalars);
      gpu = stepped_on_gpu(table, gpu, rule, scalars);
      for (std::size_t t = 0; t < gpu.size(); ++t) {
        INFO("tensor " << t);
        REQUIRE(same_bits(gpu[t].arrays, cpu[t].arrays));
      }
    }
  }
}

TEST_CASE("optimizer steps on the GPU: apply 0 changes no bit, whatever the gradients hold",
          "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  std::mt19937 random(std::random_device{}());
  OptimizerTable table(true);
  for (const RuleCase& rule : all_rules()) {
    INFO(rule.name);
    Model before = random_model(many_tensors(), random);
    for (TestTensor& tensor : before) {
      for (std::int64_t i = 0; i < tensor.form.count; ++i) set_gradient(tensor, i, kNan);
    }
    Scalars scalars;
    scalars.apply = 0;
    const Model after = stepped_on_gpu(table, before, rule, scalars);
    for (std::size_t t = 0; t < after.size(); ++t) REQUIRE(same_bits(after[t].arrays, before[t].arrays));
  }
}

TEST_CASE("OptimizerTable on the GPU: changes queued faster than they are copied each take effect",
          "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  constexpr std::int64_t kCount = 3000000;  // a step takes longer than queueing the next
  constexpr int kTensors = 3;
  GpuArray<float> gradient(std::vector<float>(kCount, 1));
  std::vector<std::unique_ptr<GpuArray<float>>> weights;
  for (int n = 0; n < kTensors; ++n)
    weights.push_back(std::make_unique<GpuArray<float>>(std::vector<float>(kCount, 0)));
  GpuArray<float> four({-1, 1, 1, 1});
  OptimizerTable table(true);
  for (int round = 0; round < 60; ++round) {
    OptimizerTensor t;
    t.weight = weights[static_cast<std::size_t>(round % kTensors)]->data();
    t.gradient = gradient.data();
    t.count = kCount;
    table.set({t}, nullptr);
    table.sgd({}, at(four.data(), 0), nullptr);
  }
  for (const auto& weight : weights) REQUIRE(weight->read() == std::vector<float>(kCount, 20));
}

TEST_CASE("OptimizerTable on the GPU: no tensors, empty ones and a growing table", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  OptimizerTable table(true);
  TensorCase empty;
  TensorCase some;
  some.count = 5;
  const auto one = [] { return 1.0F; };
  for (const std::size_t tensors : {0, 1, 2, 300, 3}) {
    Model model = {new_tensor(empty, one)};
    for (std::size_t t = 0; t < tensors; ++t) model.push_back(new_tensor(some, one));
    for (TestTensor& tensor : model) {
      for (std::int64_t i = 0; i < tensor.form.count; ++i) set_gradient(tensor, i, 2);
    }
    Model cpu = model;
    Scalars scalars;
    scalars.lr = 0.5F;
    step_on_cpu(cpu, sgd_case(0, false), scalars);
    const Model gpu = stepped_on_gpu(table, model, sgd_case(0, false), scalars);
    for (std::size_t t = 0; t < gpu.size(); ++t) REQUIRE(same_bits(gpu[t].arrays, cpu[t].arrays));
    if (tensors > 0) REQUIRE(gpu[1].arrays.weight[0] == 0);
  }
}
