#pragma once

#include "recipe/keys.h"
#include "support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

// Every optimizer's update of one parameter in float64, written from the formula of its paper.
namespace gputrain::optim {

// What a reference is told: its settings by name, and the learning rate and number of the step.
struct Reference {
  std::map<std::string, double> settings;
  std::string name;  // of the parameter
  double decay = 0;  // of this parameter
  std::map<std::string, at::Tensor> states = {};

  at::Tensor& state(const char* called, const at::Tensor& like) {
    at::Tensor& one = states[called];
    if (!one.defined()) one = at::zeros_like(like);
    return one;
  }
};

using Update = std::function<at::Tensor(Reference& r, const at::Tensor& p, const at::Tensor& g, double lr,
                                        double t)>;  // the new p

inline at::Tensor reference_sgd(Reference& r, const at::Tensor& p, const at::Tensor& given, double lr,
                                double) {
  const double momentum = r.settings.at("momentum");
  const at::Tensor g = given + r.decay * p;
  at::Tensor& m = r.state("m", p);
  m = momentum * m + g;
  return p - lr * (r.settings.at("nesterov") != 0 ? g + momentum * m : m);
}

// Loshchilov & Hutter 2019, algorithm 2, either of the two.
inline at::Tensor reference_adam(Reference& r, const at::Tensor& p, const at::Tensor& given, double lr,
                                 double t, bool decoupled) {
  const double beta1 = r.settings.at("beta1"), beta2 = r.settings.at("beta2"), eps = r.settings.at("eps");
  const at::Tensor g = decoupled ? given : given + r.decay * p;
  at::Tensor& m = r.state("m", p);
  at::Tensor& v = r.state("v", p);
  m = beta1 * m + (1 - beta1) * g;
  v = beta2 * v + (1 - beta2) * g * g;
  const at::Tensor m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
  return p - lr * (m_hat / (v_hat.sqrt() + eps) + (decoupled ? r.decay : 0) * p);
}

inline at::Tensor reference_lion(Reference& r, const at::Tensor& p, const at::Tensor& g, double lr, double) {
  const double beta1 = r.settings.at("beta1"), beta2 = r.settings.at("beta2");
  at::Tensor& m = r.state("m", p);
  const at::Tensor c = beta1 * m + (1 - beta1) * g;
  m = beta2 * m + (1 - beta2) * g;
  return p - lr * (c.sign() + r.decay * p);
}

inline double norm(const at::Tensor& x) {
  return std::sqrt(x.square().sum().item<double>());
}

inline at::Tensor reference_lamb(Reference& r, const at::Tensor& p, const at::Tensor& g, double lr,
                                 double t) {
  const double beta1 = r.settings.at("beta1"), beta2 = r.settings.at("beta2"), eps = r.settings.at("eps");
  at::Tensor& m = r.state("m", p);
  at::Tensor& v = r.state("v", p);
  m = beta1 * m + (1 - beta1) * g;
  v = beta2 * v + (1 - beta2) * g * g;
  const at::Tensor ratio = m / (1 - std::pow(beta1, t)) / ((v / (1 - std::pow(beta2, t))).sqrt() + eps);
  const at::Tensor direction = ratio + r.decay * p;
  return p - lr * norm(p) / norm(direction) * direction;
}

// Algorithms 4 (matrices), 5 (vectors) and 6, with sums where the program has means.
inline at::Tensor reference_adafactor(Reference& r, const at::Tensor& p, const at::Tensor& g, double lr,
                                      double t) {
  const auto rms = [](const at::Tensor& x) { return norm(x) / std::sqrt(static_cast<double>(x.numel())); };
  const double beta2 = 1 - std::pow(t, -r.settings.at("beta2_exponent"));
  const at::Tensor squared = g * g + 1e-30;
  at::Tensor v;
  if (p.dim() < 2) {
    at::Tensor& whole = r.state("v", p);
    whole = beta2 * whole + (1 - beta2) * squared;
    v = whole;
  } else {
    const at::Tensor matrix = squared.reshape({p.size(0), -1});
    at::Tensor& rows = r.state("r", matrix.sum(1));
    at::Tensor& columns = r.state("c", matrix.sum(0));
    rows = beta2 * rows + (1 - beta2) * matrix.sum(1);
    columns = beta2 * columns + (1 - beta2) * matrix.sum(0);
    v = (rows.unsqueeze(1) * columns.unsqueeze(0) / rows.sum()).reshape(p.sizes());
  }
  const at::Tensor u = g / v.sqrt();
  const at::Tensor clipped = u / std::max(1.0, rms(u) / r.settings.at("clip_threshold"));
  const double relative = std::min(lr, 1 / std::sqrt(t));
  return p - relative * std::max(r.settings.at("least_scale"), rms(p)) * clipped - lr * r.decay * p;
}

inline at::Tensor reference_muon(Reference& r, const at::Tensor& p, const at::Tensor& g, double lr,
                                 double t) {
  if (p.dim() < 2 || r.name == "wte.weight" || r.name == "fc.weight")
    return reference_adam(r, p, g, lr * r.settings.at("adamw_lr_scale"), t, true);
  const double momentum = r.settings.at("momentum");
  at::Tensor& m = r.state("m", p);
  m = momentum * m + (1 - momentum) * g;
  const at::Tensor d = r.settings.at("nesterov") != 0 ? momentum * m + (1 - momentum) * g : m;
  at::Tensor x = d.reshape({p.size(0), -1});
  const double rows = static_cast<double>(x.size(0)), columns = static_cast<double>(x.size(1));
  x = x / norm(x);
  for (int i = 0; i < r.settings.at("ns_steps"); ++i) {
    const at::Tensor a = x.mm(x.t());
    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a.mm(a)).mm(x);
  }
  const at::Tensor step = std::sqrt(std::max(1.0, rows / columns)) * x.reshape(p.sizes());
  return p - lr * (step + r.decay * p);
}

inline const std::map<std::string, Update>& references() {
  using namespace std::placeholders;
  static const std::map<std::string, Update> all = {
      {"sgd", reference_sgd},
      {"adamw", std::bind(reference_adam, _1, _2, _3, _4, _5, true)},
      {"adam", std::bind(reference_adam, _1, _2, _3, _4, _5, false)},
      {"lion", reference_lion},
      {"lamb", reference_lamb},
      {"adafactor", reference_adafactor},
      {"muon", reference_muon},
  };
  return all;
}

// The numbers and switches among an optimizer's settings.
inline std::map<std::string, double> numbers_of(const OptimizerComponent::Bound& bound) {
  std::map<std::string, double> numbers;
  for (const recipe::Key& key : recipe::keys(bound.describe)) {
    if (key.type == recipe::Key::Type::kBoolean) numbers[key.path] = key.value == "true" ? 1 : 0;
    if (key.type == recipe::Key::Type::kNumber || key.type == recipe::Key::Type::kInteger)
      numbers[key.path] = std::stod(key.value);
  }
  return numbers;
}

}  // namespace gputrain::optim
