#include "optim/components.h"
#include "optim/moments.h"
#include "optim/states.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gputrain::optim {
namespace {

struct MuonOptions {
  SharedOptions shared{.lr = 0.02, .weight_decay = 0.01};
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t ns_steps = 5;
  std::vector<std::string> adamw_match = {"*emb*", "*wte*", "*wpe*"};
  double adamw_lr_scale = 0.015;
  MomentOptions moments{.beta2 = 0.95};
};

void describe(recipe::Visitor& v, MuonOptions& o) {
  describe_shared(v, o.shared, 10, "decoupled: p -= lr * decay * p");
  v.number("momentum", o.momentum, {.min = 0, .max = 1, .max_open = true}, "per step",
           "decay of the gradient's mean, of which the direction is made");
  v.boolean("nesterov", o.nesterov, "look ahead along the momentum");
  v.integer("ns_steps", o.ns_steps, {1, 20}, "", "Newton-Schulz iterations that make a direction orthogonal");
  v.texts(
      "adamw_match", o.adamw_match,
      "names of parameters that AdamW trains besides the last layer and those of one dimension: embeddings");
  v.number("adamw_lr_scale", o.adamw_lr_scale, {0, 1e3}, "",
           "factor on the learning rate of what AdamW trains");
  describe_moments(v, o.moments);
}

// The nearest matrix with orthogonal rows or columns, roughly: singular values end between 0.7 and 1.2.
// Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
at::Tensor orthogonal(const at::Tensor& matrix, std::int64_t iterations) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kLeastNorm = 1e-7;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = matrix.div(at::linalg_vector_norm(matrix).add(kLeastNorm));
  // bfloat16 is exact enough for this iteration, says the source, and several times as fast on a GPU.
  if (x.is_cuda()) x = x.to(at::kBFloat16);
  if (is_tall) x = x.t();
  for (std::int64_t i = 0; i < iterations; ++i) {
    const at::Tensor square = x.mm(x.t());
    const at::Tensor factor = at::addmm(square, square, square, kB, kC);
    x = at::addmm(x, factor, x, kA, 1);
  }
  return is_tall ? x.t() : x;
}

// Whether there is nothing to make orthogonal: one row or one column, whatever the dimensions.
bool is_vector(const at::Tensor& parameter) {
  return parameter.dim() < 2 || parameter.size(0) == 1 || parameter.numel() == parameter.size(0);
}

// What AdamW trains: vectors, what `match` names, and the layer of the last matrix, the head.
std::vector<bool> for_adamw(const nn::NamedTensors& parameters, const std::vector<std::string>& match) {
  const auto module_of = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
  const auto last = std::find_if(parameters.rbegin(), parameters.rend(),
                                 [](const auto& one) { return one.second.dim() >= 2; });
  const std::string head = last == parameters.rend() ? "" : module_of(last->first);
  std::vector<bool> chosen;
  for (const auto& [name, parameter] : parameters) {
    chosen.push_back(is_vector(parameter) || module_of(name) == head || matches_any(match, name));
  }
  return chosen;
}

// The default holds for all models, most of which have no embeddings; what a recipe says is meant for its
// own.
void check_matches(const nn::NamedTensors& parameters, const std::vector<std::string>& match) {
  if (match == MuonOptions().adamw_match) return;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  check_patterns({"optimizer.adamw_match", "has", "no parameter that trains"}, match, names);
}

// Some of the parameters of an optimizer.
struct Part {
  std::vector<std::size_t> indices;
  OptimizerContext context;
  std::vector<ParameterSetting> settings;

  std::vector<at::Tensor> of(const std::vector<at::Tensor>& gradients) const {
    std::vector<at::Tensor> own;
    for (const std::size_t i : indices) own.push_back(gradients.at(i));
    return own;
  }
};

Part part_of(const OptimizerContext& context, const std::vector<ParameterSetting>& settings,
             const std::vector<bool>& chosen, bool which, double lr_scale) {
  Part part;
  part.context.seed = context.seed + (which ? 1 : 0);  // the parts round by numbers of their own
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != which) continue;
    part.indices.push_back(i);
    part.context.parameters.push_back(context.parameters[i]);
    part.settings.push_back({settings[i].lr_scale * lr_scale, settings[i].weight_decay});
  }
  return part;
}

// m = momentum * m + (1 - momentum) * g;  d = nesterov ? momentum * m + (1 - momentum) * g : m;
// p -= lr * (sqrt(max(1, rows / columns)) * orthogonal(d) + decay * p). Convolutions are matrices of
// [out, in * height * width].
class Muon : public Optimizer {
 public:
  Muon(const MuonOptions& options, Part hidden, Part rest)
      : options_(options),
        hidden_(std::move(hidden)),
        rest_(std::move(rest)),
        hidden_weights_(hidden_.context, hidden_.settings, options.shared.rounding, {"momentum"}),
        rest_weights_(rest_.context, rest_.settings, options.shared.rounding, {"mean", "square"}),
        adamw_(adam_rule(options.moments, /*decoupled=*/true)) {}

  void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs) override {
    std::vector<at::Tensor> directions = hidden_.of(gradients);
    for (std::size_t i = 0; i < directions.size(); ++i) {
      if (directions[i].defined()) directions[i] = direction(i, directions[i], inputs);
    }
    hidden_weights_.descend(directions, inputs);
    rest_weights_.step(rest_.of(gradients), inputs, adamw_);
  }

  double peak_lr() const override { return options_.shared.lr; }

  nn::NamedTensors state() const override {
    nn::NamedTensors all = hidden_weights_.state();
    for (auto& one : rest_weights_.state()) all.push_back(std::move(one));
    return all;
  }

 private:
  at::Tensor direction(std::size_t index, const at::Tensor& given, const StepInputs& inputs) const {
    const at::Tensor gradient = given.to(at::kFloat).mul(inputs.gradient_scale);
    const at::Tensor& momentum = hidden_weights_.state_of(0, index);
    const at::Tensor mean = at::lerp(momentum, gradient, 1 - options_.momentum);
    keep(inputs.apply, mean, momentum);
    const at::Tensor ahead = options_.nesterov ? at::lerp(gradient, mean, options_.momentum) : mean;
    const at::Tensor matrix = ahead.flatten(1);
    const auto rows = static_cast<double>(matrix.size(0)), columns = static_cast<double>(matrix.size(1));
    const double scale = std::sqrt(std::max(1.0, rows / columns));
    return orthogonal(matrix, options_.ns_steps).mul(scale).reshape(given.sizes());
  }

  MuonOptions options_;
  Part hidden_, rest_;
  FusedStep hidden_weights_, rest_weights_;
  Rule adamw_;
};

std::unique_ptr<Optimizer> build(const MuonOptions& options, const OptimizerContext& context) {
  const std::vector<ParameterSetting> settings =
      settings_of(context, options.shared, /*spared_by_default=*/true);
  check_matches(context.parameters, options.adamw_match);
  const std::vector<bool> chosen = for_adamw(context.parameters, options.adamw_match);
  return std::make_unique<Muon>(options, part_of(context, settings, chosen, false, 1),
                                part_of(context, settings, chosen, true, options.adamw_lr_scale));
}

}  // namespace

OptimizerComponent muon() {
  return recipe::component("muon", "orthogonal steps for hidden matrices, AdamW for the rest", build);
}

}  // namespace gputrain::optim
