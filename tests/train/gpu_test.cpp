#include "support/gpu.h"

#include "data/order.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/stream.h"
#include "optim/freeze.h"
#include "support/catch.h"
#include "train/evaluate.h"
#include "train/support.h"
#include "train/trace.h"
#include "train/update.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gputrain::train {
namespace {

const at::Device kGpu(at::kCUDA, 0);

using Shape = std::vector<std::int64_t>;
using Settings = std::vector<std::pair<std::string, std::string>>;

// Full float32, for comparisons with the CPU.
void start_gpu() {
  device::set_current(kGpu);
  device::configure(kGpu, /*tf32=*/false, /*cudnn_benchmark=*/false, std::nullopt);
}

std::vector<std::int64_t> numbers(std::int64_t end) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < end; ++i) all.push_back(i);
  return all;
}

// Noise with a brightness by class, of three classes; channels-last batches on the device. Making one copies
// nothing from the host, so it does not wait for the device.
class Pictures : public data::Split {
 public:
  Pictures(std::int64_t size, const Shape& shape, at::Device device) {
    const at::Tensor labels = at::arange(size).remainder(3);
    const at::Tensor noise = at::randn({size, shape[0], shape[1], shape[2]}, nn::init_on_cpu(4).generator);
    images_ = noise.add(labels.sub(1).view({size, 1, 1, 1}), 0.3).to(device).unbind();
    labels_ = labels.to(device).unbind();
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return static_cast<std::int64_t>(ids.size());
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    std::vector<at::Tensor> images, labels;
    for (const std::int64_t id : ids) {
      images.push_back(images_.at(static_cast<std::size_t>(id)));
      labels.push_back(labels_.at(static_cast<std::size_t>(id)));
    }
    return {at::stack(images).contiguous(at::MemoryFormat::ChannelsLast), at::stack(labels), ids,
            static_cast<std::int64_t>(ids.size())};
  }

 private:
  std::vector<at::Tensor> images_, labels_;  // one tensor a sample
};

// Gives the device milliseconds of other work before each batch, so that it is behind the host: a value that
// is read without waiting is an old one.
class Delayed : public Pictures {
 public:
  Delayed(std::int64_t size, const Shape& shape, at::Device device)
      : Pictures(size, shape, device), ballast_(at::zeros({4096, 4096}, at::TensorOptions(device))) {}
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    for (int i = 0; i < 3; ++i) static_cast<void>(ballast_.mm(ballast_));
    return Pictures::batch(ids);
  }

 private:
  at::Tensor ballast_;
};

// The same, where every fourth sample alone has a target.
class Sparse : public Delayed {
 public:
  using Delayed::Delayed;
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return std::count_if(ids.begin(), ids.end(), [](std::int64_t id) { return id % 4 == 0; });
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    nn::Batch batch = Delayed::batch(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] % 4 != 0) batch.target[static_cast<std::int64_t>(i)].fill_(-100);
    }
    batch.targets = targets(ids);
    return batch;
  }
};

// Everything that a training run needs, on one device; the same numbers on all of them.
struct Setup {
  Setup(at::Device device, const std::string& model_name, const Settings& values, const Shape& shape,
        std::int64_t samples) {
    options.device = device;
    options.seed = 9;
    options.micro_batch_size = 4;
    options.gradient_accumulation_steps = 2;
    data.sample_shape = shape;
    data.num_classes = 3;
    data.train = std::make_unique<Pictures>(samples, shape, device);
    model = bound(models::all_models(), model_name, values).build({shape, 3, nn::init_on_cpu(5)});
    flat_buffers = model->to(device, /*channels_last=*/true);
    objective = bound(objectives::all_objectives(), "cross_entropy").build({3});
    use_optimizer("sgd");
  }

  void use_optimizer(const std::string& name, const Settings& values = {}) {
    optimizer = bound(optim::all_optimizers(), name, values).build({model->named_parameters(), 1});
  }

  RunSummary train() {
    const StopFlag stop;
    return train::train(options, {*model, flat_buffers, data, *objective, *optimizer, schedule, ema},
                        recorder, stop, nullptr);
  }

  Update update(const UpdateOptions& update_options = {}) {
    return Update(*model, flat_buffers, *objective, *optimizer, update_options);
  }

  // All parameters, one after the other, on the CPU.
  at::Tensor parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& [name, value] : model->named_parameters()) {
      all.push_back(value.detach().flatten().cpu());
    }
    return at::cat(all);
  }

  TrainOptions options;
  data::DataSet data;
  models::Model model;
  at::Tensor flat_buffers;
  std::unique_ptr<objectives::Objective> objective;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::Schedule schedule = [](std::int64_t) { return 1.0; };
  optim::Ema* ema = nullptr;
  Recorder recorder;
};

// Two convolutions with normalisation, for `samples` images of 8x9 px.
Setup small_convnet(at::Device device, std::int64_t channels, std::int64_t samples) {
  return Setup(device, "convnet", {{"width", "4"}, {"stages", "2"}}, {channels, 8, 9}, samples);
}

double largest(const at::Tensor& difference) {
  return difference.abs().max().item<double>();
}

}  // namespace

// 21 samples and windows of 8: 8, 8, 5, twice. One channel: a weight has the same order in both layouts.
TEST_CASE("trainer on the GPU: six steps in float32 are those of the CPU", "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  const std::int64_t channels = GENERATE(1, 3);
  INFO(channels << " channels");
  Setup on_cpu = small_convnet(at::kCPU, channels, 21), on_gpu = small_convnet(kGpu, channels, 21);
  for (Setup* setup : {&on_cpu, &on_gpu}) {
    setup->options.epochs = 2;
    setup->train();
  }
  REQUIRE(on_cpu.recorder.steps.size() == 6);
  REQUIRE(on_gpu.recorder.steps.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    INFO("step " << i + 1);
    const StepRecord &expected = on_cpu.recorder.steps[i], &found = on_gpu.recorder.steps[i];
    // Sums in another order differ by 1e-6, which steps and normalisation make larger.
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-4));
    CHECK(found.grad_norm == Approx(expected.grad_norm).epsilon(1e-3));
    CHECK(found.samples_total == expected.samples_total);
    CHECK(found.seconds > 0);
  }
  CHECK(largest(on_gpu.parameters().sub(on_cpu.parameters())) < 1e-3);
  CHECK(largest(on_gpu.flat_buffers.cpu().sub(on_cpu.flat_buffers)) < 1e-3);
}

TEST_CASE("trainer on the GPU: each record has the values of its own step", "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  const Shape shape = {1, 8, 9};
  Setup late(kGpu, "mlp", {}, shape, 21), prompt(kGpu, "mlp", {}, shape, 21);
  late.data.train = std::make_unique<Delayed>(21, shape, kGpu);
  late.options.max_steps = 12;
  late.options.log_every = 100;
  late.train();
  REQUIRE(late.recorder.steps.size() == 12);

  const TrainOptions& options = prompt.options;
  data::WindowPlan plan(21, options.micro_batch_size, options.gradient_accumulation_steps, options.seed);
  Update update = prompt.update();
  double last_loss = 0;
  for (const StepRecord& record : late.recorder.steps) {
    INFO("step " << record.step);
    const data::Window window = plan.next();
    update.begin(window.samples(), window.micro_batches.size());
    double loss = 0;
    for (const auto& ids : window.micro_batches) {
      const nn::Batch batch = prompt.data.train->batch(ids);
      {
        const c10::AutoGradMode no_grad(false);
        loss += prompt.objective->loss_sum((*prompt.model)(batch.input), batch.target).item<double>();
      }
      update.accumulate(batch);
    }
    loss /= static_cast<double>(window.samples());
    const at::Tensor values = update.finish({0, {prompt.optimizer->peak_lr()}});
    device::synchronize(kGpu);
    REQUIRE(std::abs(loss - last_loss) > 1e-4);  // else an old value would pass
    last_loss = loss;
    CHECK(record.loss == Approx(loss).epsilon(1e-5));
    CHECK(record.grad_norm == Approx(values[-4].item<double>()).epsilon(1e-5));
    CHECK(record.samples == window.samples());
  }
}

TEST_CASE("update on the GPU: a window with a NaN changes nothing, then and later", "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  for (const optim::OptimizerComponent& component : optim::all_optimizers()) {
    INFO(component.name);
    Setup setup = small_convnet(kGpu, 3, 7);
    setup.use_optimizer(component.name);
    UpdateOptions options;
    options.max_grad_norm = 1;
    options.stop_on_nonfinite = true;
    Update update = setup.update(options);
    const auto run_window = [&](bool poisoned) {
      update.begin(7, 2);
      update.accumulate(setup.data.train->batch({0, 1, 2, 3}));
      if (poisoned) update.poison_next();
      update.accumulate(setup.data.train->batch({4, 5, 6}));
      return update.finish({0, {0.1}}).cpu();
    };
    const auto parameters = [&] { return hash_tensors(setup.model->named_parameters()); };
    const auto buffers = [&] { return hash_tensors({{"buffers", setup.flat_buffers}}); };

    const std::uint64_t parameters_at_start = parameters(), buffers_at_start = buffers();
    run_window(false);
    const std::uint64_t parameters_before = parameters(), buffers_before = buffers();
    REQUIRE(parameters_before != parameters_at_start);
    REQUIRE(buffers_before != buffers_at_start);

    const at::Tensor values = run_window(true);
    REQUIRE(values.numel() == 2 + static_cast<std::int64_t>(kOutcomes));
    CHECK(std::isfinite(values[0].item<double>()));
    CHECK(std::isnan(values[1].item<double>()));
    CHECK(parameters() == parameters_before);
    CHECK(buffers() == buffers_before);

    run_window(false);
    CHECK(parameters() == parameters_before);
    CHECK(buffers() == buffers_before);
  }
}

// Images of which some are not finite.
class SpoiledPictures : public Pictures {
 public:
  using Pictures::Pictures;
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    nn::Batch batch = Pictures::batch(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == 5)
        batch.input[static_cast<std::int64_t>(i)].fill_(std::numeric_limits<double>::quiet_NaN());
    }
    return batch;
  }
};

// cuDNN's deterministic algorithms alone, while it lives.
class DeterministicCudnn {
 public:
  DeterministicCudnn() { at::globalContext().setDeterministicCuDNN(true); }
  ~DeterministicCudnn() { at::globalContext().setDeterministicCuDNN(false); }
};

struct TypesTried {
  nn::Precision precision;
  bool is_scaled;
};

// A residual network with all that an update can have: averages, frozen weights, clipping of both kinds, a
// loss scale that changes and a rate that falls, skipped windows, validation in between. Hashes of all that
// it learned.
std::vector<std::uint64_t> everything_trained(Graphs graphs, const TypesTried& types, std::int64_t samples,
                                              std::int64_t accumulation, bool spoiled) {
  const Shape shape = {3, 16, 16};
  Setup setup(kGpu, "resnet18", {{"stem", "small"}}, shape, samples);
  if (spoiled) setup.data.train = std::make_unique<SpoiledPictures>(samples, shape, kGpu);
  setup.data.validation = std::make_unique<Pictures>(7, shape, kGpu);
  setup.flat_buffers = setup.model->to(kGpu, true, types.precision.weights.value_or(at::kFloat));
  optim::freeze(setup.model->named_parameters(), {"layer1.*"});
  const nn::NamedTensors trained = optim::trained(setup.model->named_parameters());
  setup.optimizer = bound(optim::all_optimizers(), "adamw").build({trained, 1});
  optim::Ema ema(trained, setup.model->named_buffers(), *setup.optimizer, {.decay = 0.9});
  setup.ema = &ema;
  setup.schedule = [](std::int64_t applied) { return 1 / (1.0 + static_cast<double>(applied)); };
  TrainOptions& options = setup.options;
  options.gradient_accumulation_steps = accumulation;
  options.update.precision = types.precision;
  options.update.max_grad_norm = 1;
  options.update.max_grad_value = 0.1;
  if (types.is_scaled) options.update.loss_scale = optim::LossScaleOptions{.growth_interval = 2};
  options.epochs = 5;
  options.log_every = 100;
  options.validate_every = {3, recipe::Interval::Unit::kSteps};
  options.graphs = graphs;
  const RunSummary summary = setup.train();
  CHECK(summary.skipped >= (spoiled ? 5 : 0));
  const std::vector<std::string>& notices = setup.recorder.notices;
  const bool replayed = std::any_of(notices.begin(), notices.end(), [](const std::string& notice) {
    return notice.find("replayed as CUDA graphs") != std::string::npos;
  });
  CHECK(replayed == (graphs == Graphs::kOn));
  return {hash_tensors(setup.model->named_parameters()), hash_tensors(setup.model->named_buffers()),
          hash_tensors(ema.averages())};
}

// Of 18 samples in micro-batches of 4 the last window of an epoch is one short micro-batch, of 20 a full one,
// of 22 a full and a short one.
TEST_CASE("trainer on the GPU: passes replayed as graphs give the bits of passes made one by one",
          "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  const DeterministicCudnn deterministic;
  const TypesTried types = GENERATE(TypesTried{{}, false}, TypesTried{{at::kHalf, std::nullopt}, true},
                                    TypesTried{{std::nullopt, at::kBFloat16}, false});
  const std::int64_t samples = GENERATE(18, 20, 22);
  const std::int64_t accumulation = GENERATE(1, 2);
  const bool spoiled = GENERATE(false, true);
  CAPTURE(samples, accumulation, spoiled);
  const auto one_by_one = everything_trained(Graphs::kOff, types, samples, accumulation, spoiled);
  CHECK(everything_trained(Graphs::kOn, types, samples, accumulation, spoiled) == one_by_one);
}

TEST_CASE("trainer on the GPU: a pass that cannot be captured leaves counters and results as they were",
          "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  Setup setup = small_convnet(kGpu, 3, 8);
  Update update = setup.update();
  const auto window = [&] {
    update.begin(8, 1);
    update.accumulate(setup.data.train->batch(numbers(8)));
    update.finish({0, {0.1}});
  };
  window();
  const std::uint64_t buffers = hash_tensors(setup.model->named_buffers());
  {
    const nn::CallWatch waits(
        [](const nn::Module&, const at::Tensor& output) { static_cast<void>(output.sum().item<double>()); });
    CHECK_THROWS(update.capture(setup.data.train->batch(numbers(8)), 1));
  }
  CHECK_FALSE(update.has_graphs());
  CHECK(hash_tensors(setup.model->named_buffers()) == buffers);
  window();
  update.capture(setup.data.train->batch(numbers(8)), 1);
  window();
  for (const auto& [name, value] : setup.model->named_buffers()) {
    if (value.scalar_type() == at::kLong) CHECK(value.item<std::int64_t>() == 3);
  }
}

// Plain gradient descent, so that the change is the learning rate times the clipped gradient.
TEST_CASE("trainer on the GPU: clipping is that of the CPU", "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  Setup on_cpu = small_convnet(at::kCPU, 3, 8), on_gpu = small_convnet(kGpu, 3, 8);
  const at::Tensor start = on_cpu.parameters();
  for (Setup* setup : {&on_cpu, &on_gpu}) {
    setup->use_optimizer("sgd", {{"lr", "0.2"}, {"momentum", "0"}});
    setup->options.max_steps = 1;
    setup->options.update.max_grad_norm = 0.05;
    setup->train();
    const double norm = setup->recorder.steps.at(0).grad_norm;  // before clipping
    REQUIRE(norm > 0.1);
    CHECK(norm == Approx(on_cpu.recorder.steps.at(0).grad_norm).epsilon(1e-4));
    CHECK(setup->parameters().sub(start).norm().item<double>() == Approx(0.2 * 0.05).epsilon(1e-3));
  }
  CHECK(largest(on_gpu.parameters().sub(on_cpu.parameters())) < 1e-6);
}

TEST_CASE("evaluation on the GPU: its peak is its own, far below that of the training step before",
          "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  constexpr std::int64_t kBatch = 64;
  Setup setup(kGpu, "resnet18", {{"stem", "small"}}, {3, 32, 32}, kBatch);
  Update update = setup.update();
  device::MemoryMeter meter(kGpu);
  const auto added_at_peak = [&](const auto& work) {
    meter.reset_peaks();
    const std::int64_t before = meter.read().allocated.value();
    work();
    return meter.read().allocated_peak.value() - before;
  };
  const std::int64_t training = added_at_peak([&] {
    update.begin(kBatch, 1);
    update.accumulate(setup.data.train->batch(numbers(kBatch)));
    update.finish({0, {0.1}});
  });
  const std::int64_t evaluation = added_at_peak([&] {
    const StopFlag stop;
    REQUIRE(evaluate(*setup.model, *setup.data.train, *setup.objective, {}, kBatch, stop));
  });
  INFO("bytes beyond those held before: training " << training << ", evaluation " << evaluation);
  REQUIRE(evaluation > 0);
  // Both hold cuDNN's workspace of the largest convolution, some 300 MB here; only training holds the
  // activations of all blocks, and gradients.
  CHECK(evaluation < training);
}

TEST_CASE("trainer on the GPU: allocated memory does not grow", "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  Setup setup = small_convnet(kGpu, 3, 16);  // two full windows an epoch
  setup.options.max_steps = 200;
  setup.options.log_every = 20;
  setup.options.update.max_grad_norm = 1;
  setup.train();
  REQUIRE(setup.recorder.steps.size() == 200);
  const std::optional<std::int64_t> early = setup.recorder.steps[19].memory.allocated;
  REQUIRE(early.value_or(0) > 0);
  for (std::size_t i = 20; i < 200; ++i) {
    INFO("step " << i + 1);
    CHECK(setup.recorder.steps[i].memory.allocated == early);
  }
}

// With few log lines many windows are in flight when one without targets comes; with a line for each, none.
TEST_CASE("trainer on the GPU: windows without targets keep their place among those in flight",
          "[train][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu();
  Setup seldom(kGpu, "mlp", {}, {1, 8, 9}, 24), often(kGpu, "mlp", {}, {1, 8, 9}, 24);
  for (Setup* setup : {&seldom, &often}) {
    setup->data.train = std::make_unique<Sparse>(24, Shape{1, 8, 9}, kGpu);
    setup->options.micro_batch_size = 1;
    setup->options.epochs = 2;
    setup->schedule = [](std::int64_t applied) { return 1.0 / static_cast<double>(1 + applied); };
  }
  seldom.options.log_every = 1000;
  CHECK(seldom.train().skipped_without_targets == often.train().skipped_without_targets);
  REQUIRE(seldom.recorder.steps.size() == often.recorder.steps.size());
  for (std::size_t i = 0; i < often.recorder.steps.size(); ++i) {
    const StepRecord &a = often.recorder.steps[i], &b = seldom.recorder.steps[i];
    CAPTURE(i);
    CHECK(b.window == a.window);
    CHECK(b.step == a.step);
    CHECK(b.targets == a.targets);
    CHECK(b.skipped == (b.targets == 0));
    CHECK(b.learning_rate == a.learning_rate);
    CHECK(b.loss == Approx(a.loss).epsilon(1e-5));
  }
  CHECK(largest(seldom.parameters().sub(often.parameters())) < 1e-5);
}

}  // namespace gputrain::train
