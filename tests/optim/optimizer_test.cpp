#include "optim/optimizer.h"

#include "base/error.h"
#include "optim/schedule.h"
#include "recipe/paths.h"
#include "reference.h"
#include "support.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <set>

namespace gputrain::optim {
namespace {

constexpr c10::DeviceType kCpu = at::kCPU;

// How weights are kept: their type, and the setting for it.
struct Storage {
  at::ScalarType type;
  const char* yaml;
};
const std::vector<Storage>& storages() {
  static const std::vector<Storage> all = {
      {at::kFloat, "{}"}, {at::kBFloat16, "{rounding: nearest}"}, {at::kHalf, "{rounding: stochastic}"}};
  return all;
}

// Parameters and states, copied.
std::vector<at::Tensor> snapshot(const nn::NamedTensors& parameters, const Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : parameters) all.push_back(tensor.detach().clone());
  for (const auto& [name, tensor] : optimizer.state()) all.push_back(tensor.clone());
  return all;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto bits = a.element_size() == 4 ? at::kInt : at::kShort;
  return a.scalar_type() == b.scalar_type() && a.contiguous().view(bits).equal(b.contiguous().view(bits));
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return same_bits(x, y); });
}

template <class Check>
void for_every_optimizer(const Check& check) {
  for (const OptimizerComponent& component : all_optimizers()) {
    INFO(component.name);
    check(component.name);
  }
}

// Three steps of `optimizer` with gradients that differ.
void train(Optimizer& optimizer, at::ScalarType gradient_type = at::kFloat) {
  for (const std::uint64_t step : {1, 2, 3}) {
    optimizer.step(gradients_on(kCpu, gradient_type, 10 + step),
                   inputs_on(kCpu, 0.01, static_cast<double>(step)));
  }
}

}  // namespace

TEST_CASE("every optimizer: against its paper's formula in float64", "[optim]") {
  constexpr double kLr = 0.5;  // so that adafactor's 1/sqrt(t) is now the larger one, now the smaller
  for_every_optimizer([](const std::string& name) {
    REQUIRE(references().count(name) == 1);
    for (const std::string& yaml : variants(name)) {
      INFO(yaml);
      const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
      const OptimizerComponent::Bound component = bound(name, yaml);
      const auto optimizer = component.build({parameters, 0});
      const auto numbers = numbers_of(component);
      const bool spares = name != "sgd" && name != "adam";
      std::vector<Reference> states;
      std::vector<at::Tensor> expected;
      for (const auto& [called, p] : parameters) {
        states.push_back({numbers, called, spares && p.dim() < 2 ? 0 : numbers.at("weight_decay")});
        expected.push_back(p.detach().to(at::kDouble));
      }
      for (int t = 2; t <= 7; ++t) {
        const std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kFloat, 10 + t);
        optimizer->step(gradients, inputs_on(kCpu, kLr, t, 1, 0.5));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const at::Tensor g = gradients[i].to(at::kDouble).mul(0.5);
          expected[i] = references().at(name)(states[i], expected[i], g, kLr, t);
          INFO(parameters[i].first << ", step " << t);
          const at::Tensor error = parameters[i].second.detach().to(at::kDouble).sub(expected[i]).abs();
          // A few roundings a step of values of about 1.
          CHECK(error.max().item<double>() < 2e-5 * std::max(1.0, expected[i].abs().max().item<double>()));
        }
      }
    }
  });
}

TEST_CASE("every optimizer: where apply is 0 no bit changes, whatever the gradients hold", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    for (const Storage& storage : storages()) {
      INFO(storage.type << ' ' << storage.yaml);
      const nn::NamedTensors parameters = parameters_on(kCpu, storage.type, 1);
      const auto optimizer = make(name, storage.yaml, {parameters, 3});
      for (const int step : {1, 2}) {
        optimizer->step(gradients_on(kCpu, at::kFloat, 10), inputs_on(kCpu, 0.01, step));
        const std::vector<at::Tensor> before = snapshot(parameters, *optimizer);
        for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
          std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kFloat, 11);
          for (at::Tensor& one : gradients) one.fill_(value);
          optimizer->step(gradients, inputs_on(kCpu, 0.01, step + 1, 0, NAN));
        }
        CHECK(same_bits(snapshot(parameters, *optimizer), before));
      }
    }
  });
}

TEST_CASE("every optimizer: a parameter without a gradient is left alone", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
    const auto optimizer = make(name, "{weight_decay: 0.5}", {parameters, 0});
    std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kFloat, 2);
    for (const std::size_t left : {1, 2}) gradients[left].reset();
    const std::vector<at::Tensor> before = snapshot(parameters, *optimizer);
    optimizer->step(gradients, inputs_on(kCpu, 0.1, 1));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      INFO(parameters[i].first);
      CHECK(parameters[i].second.equal(before[i]) == !gradients[i].defined());
    }
    for (const auto& [called, tensor] : optimizer->state()) {
      INFO(called);
      const bool is_zero = tensor.count_nonzero().item<std::int64_t>() == 0;
      CHECK(is_zero == (called.rfind("conv.", 0) == 0));
    }
    std::vector<at::Tensor> none(parameters.size());
    CHECK_NOTHROW(optimizer->step(none, inputs_on(kCpu, 0.1, 2)));
  });
}

TEST_CASE("every optimizer: zero gradients and zero weights give no NaN", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
    parameters[1].second.detach().zero_();
    const auto optimizer = make(name, "{weight_decay: 0}", {parameters, 0});
    const std::vector<at::Tensor> before = snapshot(parameters, *optimizer);
    std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kFloat, 2);
    for (at::Tensor& one : gradients) one.zero_();
    optimizer->step(gradients, inputs_on(kCpu, 0.1, 1));
    for (std::size_t i = 0; i < parameters.size(); ++i) CHECK(parameters[i].second.equal(before[i]));
    optimizer->step(gradients_on(kCpu, at::kFloat, 3), inputs_on(kCpu, 0.1, 2));
    for (const auto& [called, tensor] : parameters) CHECK(tensor.isfinite().all().item<bool>());
  });
}

TEST_CASE("every optimizer: a learning rate of 0 leaves the weights as they are", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
    const auto optimizer = make(name, "{weight_decay: 0.1}", {parameters, 0});
    optimizer->step(gradients_on(kCpu, at::kFloat, 2), inputs_on(kCpu, 0, 1));
    const std::vector<at::Tensor> start = random_values(1);
    for (std::size_t i = 0; i < start.size(); ++i) CHECK(parameters[i].second.equal(start[i]));
  });
}

TEST_CASE("every optimizer: 16-bit weights are the rounding of float32 masters", "[optim]") {
  const auto type = GENERATE(at::kHalf, at::kBFloat16);
  for_every_optimizer([type](const std::string& name) {
    const nn::NamedTensors low = parameters_on(kCpu, type, 1);
    nn::NamedTensors exact;
    for (const auto& [called, tensor] : low)
      exact.emplace_back(called, tensor.detach().to(at::kFloat).set_requires_grad(true));
    const auto first = make(name, "{}", {low, 0}), second = make(name, "{}", {exact, 0});
    train(*first, type);
    for (const std::uint64_t step : {1, 2, 3}) {
      std::vector<at::Tensor> gradients = gradients_on(kCpu, type, 10 + step);
      for (at::Tensor& one : gradients) one = one.to(at::kFloat);
      second->step(gradients, inputs_on(kCpu, 0.01, static_cast<double>(step)));
    }
    std::map<std::string, at::Tensor> masters;
    for (const auto& [called, tensor] : first->state()) masters[called] = tensor;
    for (std::size_t i = 0; i < low.size(); ++i) {
      INFO(low[i].first);
      REQUIRE(masters.count(low[i].first + ".master") == 1);
      CHECK(masters.at(low[i].first + ".master").equal(exact[i].second));
      CHECK(low[i].second.equal(exact[i].second.to(type)));
    }
  });
}

TEST_CASE("every optimizer: without masters weights are rounded at random, by the seed and the step",
          "[optim]") {
  const auto type = GENERATE(at::kHalf, at::kBFloat16);
  for_every_optimizer([type](const std::string& name) {
    const auto trained = [&](std::uint64_t seed) {
      const nn::NamedTensors parameters = parameters_on(kCpu, type, 1);
      const auto optimizer = make(name, "{rounding: stochastic}", {parameters, seed});
      train(*optimizer);
      for (const auto& [called, tensor] : optimizer->state()) {
        CHECK_THAT(called, !Catch::Matchers::EndsWith(".master"));
        CHECK(tensor.scalar_type() == at::kFloat);
      }
      std::vector<at::Tensor> values;
      for (const auto& [called, tensor] : parameters) values.push_back(tensor.detach());
      return values;
    };
    CHECK(same_bits(trained(1), trained(1)));
    CHECK(!same_bits(trained(1), trained(2)));
  });
}

TEST_CASE("every optimizer: steps below the spacing of 16 bits add up on average", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    constexpr std::int64_t kCount = 4096;
    at::Tensor low = at::ones({2, kCount / 2}, at::kBFloat16), exact = at::ones({2, kCount / 2});
    const auto first = make(name, "{rounding: stochastic, weight_decay: 0}", {{{"p.weight", low}}, 5});
    const auto second = make(name, "{weight_decay: 0}", {{{"p.weight", exact}}, 5});
    for (const int step : {1, 2, 3, 4}) {
      first->step({at::ones({2, kCount / 2})}, inputs_on(kCpu, 2e-4, step));
      second->step({at::ones({2, kCount / 2})}, inputs_on(kCpu, 2e-4, step));
    }
    // bfloat16 has a spacing of 2^-8 below 1: the mean of 4096 values rounded at random four times is off by
    // less than 2^-8 / 2 / 64 * sqrt(4), one standard deviation.
    const double moved = 1 - exact.mean().item<double>();
    CHECK(moved > 0);
    CHECK(1 - low.to(at::kFloat).mean().item<double>() == Approx(moved).margin(4 * 6.2e-5));
  });
}

TEST_CASE("every optimizer: gradients of 16 bits are those numbers", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors a = parameters_on(kCpu, at::kFloat, 1), b = parameters_on(kCpu, at::kFloat, 1);
    const auto first = make(name, "{}", {a, 0}), second = make(name, "{}", {b, 0});
    std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kHalf, 10);
    first->step(gradients, inputs_on(kCpu, 0.1, 1));
    for (at::Tensor& one : gradients) one = one.to(at::kFloat);
    second->step(gradients, inputs_on(kCpu, 0.1, 1));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].second.equal(b[i].second));
  });
}

TEST_CASE("every optimizer: copying into its state restores it", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    for (const Storage& storage : storages()) {
      const nn::NamedTensors parameters = parameters_on(kCpu, storage.type, 1);
      const auto optimizer = make(name, storage.yaml, {parameters, 3});
      train(*optimizer);
      const std::vector<at::Tensor> saved = snapshot(parameters, *optimizer);
      train(*optimizer);

      const nn::NamedTensors others = parameters_on(kCpu, storage.type, 2);
      const auto restored = make(name, storage.yaml, {others, 3});
      std::size_t next = 0;
      for (const auto& [called, tensor] : others) tensor.detach().copy_(saved[next++]);
      for (const auto& [called, tensor] : restored->state()) tensor.copy_(saved.at(next++));
      train(*restored);
      CHECK(same_bits(snapshot(others, *restored), snapshot(parameters, *optimizer)));
    }
  });
}

TEST_CASE("every optimizer: its state is named by parameter, each name once", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors parameters = parameters_on(kCpu, at::kBFloat16, 1);
    const auto optimizer = make(name, "{}", {parameters, 0});
    std::set<std::string> names;
    for (const auto& [called, tensor] : optimizer->state()) {
      INFO(called);
      CHECK(names.insert(called).second);
      CHECK(tensor.scalar_type() == at::kFloat);
      bool is_known = false;
      for (const auto& one : parameters) is_known |= called.rfind(one.first + ".", 0) == 0;
      CHECK(is_known);
    }
    for (const auto& [called, tensor] : parameters) CHECK(names.count(called + ".master") == 1);
  });
  const auto sgd = make("sgd", "{}", {{{"fc.weight", at::ones({2})}}, 0});
  REQUIRE(sgd->state().size() == 1);
  CHECK(sgd->state()[0].first == "fc.weight.momentum");
}

TEST_CASE("every optimizer: groups scale the learning rate and replace the weight decay", "[optim]") {
  for_every_optimizer([](const std::string& name) {
    const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
    const nn::NamedTensors plain = parameters_on(kCpu, at::kFloat, 1);
    const auto grouped = make(name,
                              "{weight_decay: 0.5, groups: [{match: ['wte.*', conv.bias], lr_scale: 0}, "
                              "{match: [wide.weight, scale], weight_decay: 0}]}",
                              {parameters, 0});
    const auto without = make(name, "{weight_decay: 0}", {plain, 0});
    const std::vector<at::Tensor> before = random_values(1);
    grouped->step(gradients_on(kCpu, at::kFloat, 2), inputs_on(kCpu, 0.1, 1));
    without->step(gradients_on(kCpu, at::kFloat, 2), inputs_on(kCpu, 0.1, 1));
    CHECK(parameters[0].second.equal(before[0]));
    CHECK(parameters[2].second.equal(before[2]));
    CHECK(parameters[3].second.equal(plain[3].second));
    CHECK(parameters[4].second.equal(plain[4].second));
    CHECK(!parameters[5].second.equal(plain[5].second));
    CHECK_THROWS_AS(make(name, "{groups: [{match: fcc}]}", {parameters, 0}), SettingError);
  });
}

TEST_CASE("every optimizer and schedule: each key has a meaning, and a default that is accepted", "[optim]") {
  const auto check = [](const auto& all, const std::string& component) {
    for (const auto& one : all) {
      for (const recipe::Key& key : recipe::keys(one.describe, component)) {
        INFO(one.name << ' ' << key.path << ": " << key.value);
        CHECK(!key.meaning.empty());
        for (const recipe::Key& item_key : key.item_keys) CHECK(!item_key.meaning.empty());
        const std::string yaml = "{" + recipe::last_part(key.path) + ": " + key.value + "}\n";
        std::vector<recipe::Problem> problems;
        one.bind(recipe::read_text(yaml, "a.yaml").root, component, {}, problems);
        CHECK(recipe::text_of(problems).empty());
      }
    }
  };
  check(all_optimizers(), "optimizer");
  check(all_schedules(), "lr_scheduler");
  for_every_optimizer([](const std::string& name) {
    const auto optimizer = make(name, "{lr: 0.25}", {parameters_on(kCpu, at::kFloat, 1), 0});
    CHECK(optimizer->peak_lr() == 0.25);
  });
}

TEST_CASE("sgd: equal gradients make the bits that PyTorch's SGD makes", "[optim]") {
  const bool nesterov = GENERATE(false, true);
  const std::string settings = nesterov ? ", nesterov: true}" : "}";
  const nn::NamedTensors ours = parameters_on(kCpu, at::kFloat, 1);
  const nn::NamedTensors theirs = parameters_on(kCpu, at::kFloat, 1);
  const auto sgd = make("sgd", "{momentum: 0.9, weight_decay: 0.3" + settings, {ours, 0});
  std::vector<at::Tensor> momentum;
  for (int step = 0; step < 3; ++step) {
    const std::vector<at::Tensor> gradients = gradients_on(kCpu, at::kFloat, 2 + step);
    sgd->step(gradients, inputs_on(kCpu, 0.1, step + 1));
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < theirs.size(); ++i) {  // torch.optim.SGD, operation by operation
      at::Tensor weight = theirs[i].second;
      at::Tensor direction = gradients[i].add(weight, 0.3);
      if (step == 0) {
        momentum.push_back(direction.clone());
      } else {
        momentum[i].mul_(0.9).add_(direction, 1);
      }
      direction = nesterov ? direction.add(momentum[i], 0.9) : momentum[i];
      weight.add_(direction, -0.1);
      INFO(theirs[i].first << " after step " << step + 1);
      REQUIRE(ours[i].second.equal(weight));
    }
  }
}

TEST_CASE("sgd: without momentum it keeps no state", "[optim]") {
  CHECK(make("sgd", "{momentum: 0}", {parameters_on(kCpu, at::kFloat, 1), 0})->state().empty());
}

TEST_CASE("sgd: Nesterov needs momentum", "[optim]") {
  CHECK_THROWS_WITH(make("sgd", "{nesterov: true, momentum: 0}", {parameters_on(kCpu, at::kFloat, 1), 0}),
                    ContainsSubstring("optimizer.nesterov is true and optimizer.momentum is 0"));
}

TEST_CASE("muon: embeddings, the last layer and vectors are AdamW's", "[optim]") {
  const auto names = [](const std::string& yaml) {
    std::set<std::string> all;
    for (const auto& [name, tensor] : make("muon", yaml, {parameters_on(kCpu, at::kFloat, 1), 0})->state())
      all.insert(name);
    return all;
  };
  CHECK(names("{}") == std::set<std::string>{"conv.bias.mean", "conv.bias.square", "conv.weight.momentum",
                                             "fc.weight.mean", "fc.weight.square", "scale.mean",
                                             "scale.square", "wide.weight.momentum", "wte.weight.mean",
                                             "wte.weight.square"});
  const auto token =
      make("muon", "{}", {{{"token", at::ones({1, 1, 4})}, {"fc.weight", at::ones({2, 2})}}, 0});
  CHECK(token->state().at(0).first == "token.mean");
  const auto one =
      make("muon", "{}", {{{"body.weight", at::ones({2, 2})}, {"fc.weight", at::ones({1, 2})}}, 0});
  CHECK(one->state().at(0).first == "body.weight.momentum");
  const std::set<std::string> chosen = names("{adamw_match: wide.*}");
  CHECK(chosen.count("wte.weight.momentum") == 1);
  CHECK(chosen.count("wide.weight.mean") == 1);
}

TEST_CASE("muon: names for AdamW that match nothing are refused, but for the default", "[optim]") {
  const nn::NamedTensors parameters = parameters_on(kCpu, at::kFloat, 1);
  CHECK_THROWS_WITH(make("muon", "{adamw_match: [\"wte.*\", \"heads.*\"]}", {parameters, 0}),
                    "optimizer.adamw_match has heads.*, and no parameter that trains has such a name; the "
                    "nearest are wide.weight, scale and wte.weight");
  const nn::NamedTensors without = {parameters[1], parameters[3], parameters[5]};
  CHECK_NOTHROW(make("muon", "{}", {without, 0}));
  CHECK_NOTHROW(make("muon", "{adamw_match: [\"*emb*\", \"*wte*\", \"*wpe*\"]}", {without, 0}));
}

TEST_CASE("adafactor: matrices keep a row and a column of squares", "[optim]") {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : make("adafactor", "{}", {parameters_on(kCpu, at::kFloat, 1), 0})->state())
    shapes[name] = tensor.sizes().vec();
  CHECK(shapes.at("conv.weight.square_row") == std::vector<std::int64_t>{4, 1, 1, 1});
  CHECK(shapes.at("conv.weight.square_column") == std::vector<std::int64_t>{1, 3, 2, 5});
  CHECK(shapes.at("conv.bias.square") == std::vector<std::int64_t>{7});
}

TEST_CASE("adafactor: a row of zeros beside large gradients gives no NaN", "[optim]") {
  at::Tensor p = at::ones({2, 3});
  const auto optimizer = make("adafactor", "{}", {{{"p", p}}, 0});
  at::Tensor gradient = at::zeros({2, 3});
  gradient.select(0, 1).fill_(1e8);
  optimizer->step({gradient}, inputs_on(kCpu, 0.01, 1));
  CHECK(p.select(0, 0).equal(at::ones({3})));
  CHECK(p.select(0, 1).lt(1).all().item<bool>());
}

}  // namespace gputrain::optim
