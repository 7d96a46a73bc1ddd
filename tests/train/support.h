#pragma once

#include "data/data_set.h"
#include "models/model.h"
#include "nn/module.h"
#include "objectives/objective.h"
#include "optim/optimizer.h"
#include "support/settings.h"
#include "train/trainer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <cstring>

namespace gputrain::train {

// Samples of two features whose class is the sign of their sum.
class Points : public data::Split {
 public:
  explicit Points(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return static_cast<std::int64_t>(ids.size());
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (const std::int64_t id : ids) {
      const auto x = static_cast<float>((id * 37) % 11 - 5) / 5,
                 y = static_cast<float>((id * 53) % 7 - 3) / 3;
      values.insert(values.end(), {x, y});
      labels.push_back(x + y > 0 ? 1 : 0);
    }
    const auto count = static_cast<std::int64_t>(ids.size());
    return {at::tensor(values).view({count, 2, 1, 1}), at::tensor(labels), ids, count};
  }

 private:
  std::int64_t size_;
};

// Keeps all records.
class Recorder : public Sink {
 public:
  void start(const RunInfo& /*info*/) override {}
  void step(const StepRecord& record) override { steps.push_back(record); }
  void eval(const EvalRecord& record) override { evals.push_back(record); }
  void notice(const std::string& text) override { notices.push_back(text); }
  void finish(const RunSummary& /*summary*/) override {}

  std::vector<StepRecord> steps;
  std::vector<EvalRecord> evals;
  std::vector<std::string> notices;
};

// A small network on Points, ready to train.
struct Bench {
  explicit Bench(std::int64_t samples, std::int64_t validation_samples = 0) {
    data.sample_shape = {2, 1, 1};
    data.num_classes = 2;
    data.train = std::make_unique<Points>(samples);
    if (validation_samples > 0) data.validation = std::make_unique<Points>(validation_samples);
    model = bound(models::all_models(), "mlp", {}).build({data.sample_shape, 2, nn::init_on_cpu(5)});
    flat_buffers = model->to(at::kCPU, true);
    objective = bound(objectives::all_objectives(), "cross_entropy").build({2});
    optimizer = bound(optim::all_optimizers(), "sgd", {{"lr", "0.2"}}).build({model->named_parameters(), 1});
    options.seed = 9;
    options.validate_every = {1, recipe::Interval::Unit::kEpochs};
  }

  RunSummary train() {
    const StopFlag stop;
    return train::train(options,
                        {*model, flat_buffers, data, *objective, *optimizer, schedule, ema ? &*ema : nullptr},
                        recorder, stop, nullptr);
  }

  void average(const optim::EmaOptions& settings) {
    ema.emplace(model->named_parameters(), model->named_buffers(), *optimizer, settings);
  }

  TrainOptions options;
  data::DataSet data;
  models::Model model;
  at::Tensor flat_buffers;
  std::unique_ptr<objectives::Objective> objective;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<optim::Ema> ema;
  optim::Schedule schedule = [](std::int64_t) { return 1.0; };
  Recorder recorder;
};

}  // namespace gputrain::train
