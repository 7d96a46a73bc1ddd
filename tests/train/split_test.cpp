#include "support/catch.h"
#include "support/temporary_folder.h"
#include "train/support.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

// How a window is split over forward passes decides nothing but rounding, whatever is trained for and in
// whatever precision.
namespace gputrain::train {
namespace {

constexpr std::int64_t kSamples = 21;  // windows of 8, 8 and 5: the last one of an epoch is short
constexpr std::int64_t kEpochs = 2;

using Settings = std::vector<std::pair<std::string, std::string>>;

// What is trained, on which data.
struct Task {
  std::string data;
  Settings data_settings;
  std::string model;
  std::string objective;
  Settings objective_settings;
};

// Sample i has 1 + 3 i mod 5 tokens; of its positions about half have a target, of some samples none.
std::string varying_sequences() {
  std::string text;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    std::string tokens, targets;
    for (std::int64_t at = 0; at < 1 + i * 3 % 5; ++at) {
      const std::int64_t token = (i * 7 + at * 3) % 6;
      tokens += std::to_string(token) + " ";
      const bool has_target = i % 4 != 1 && (i + at) % 3 != 0;
      targets += has_target ? std::to_string((token * 2 + 1) % 6) + " " : "-100 ";
    }
    text += tokens + "| " + targets + "\n";
  }
  return text;
}

std::string linear_samples() {
  std::string text;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double x = static_cast<double>(i * 37 % 11 - 5) / 5, y = static_cast<double>(i * 53 % 7 - 3) / 3;
    text += std::to_string(i % 3) + " " + std::to_string(x) + " " + std::to_string(y) + "\n";
  }
  return text;
}

std::string write(const testing::TemporaryFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder / name) << text;
  return (folder / name).string();
}

// Every kind of data that an objective can be trained on, and its settings that matter. Batch normalisation
// is left out: its statistics are a micro-batch's by nature.
std::vector<Task> tasks_of(const std::string& objective, const testing::TemporaryFolder& folder) {
  const Settings sequences{{"path", write(folder, "sequences.txt", varying_sequences())}};
  const Settings linear{{"path", write(folder, "linear.txt", linear_samples())}};
  const Settings images{{"shape", "[1, 4, 5]"},
                        {"samples", std::to_string(kSamples)},
                        {"pool", std::to_string(kSamples)},
                        {"num_classes", "3"},
                        {"validation_samples", "0"}};
  std::vector<Task> tasks;
  if (objective == "cross_entropy") {
    for (const char* smoothing : {"0", "0.1"}) {
      const Settings smoothed{{"label_smoothing", smoothing}};
      tasks.push_back({"testing.sequences", sequences, "testing.tokens", objective, smoothed});
      tasks.push_back({"testing.linear", linear, "mlp", objective, smoothed});
    }
    tasks.push_back({"synthetic", images, "mlp", objective, {}});
  }
  if (tasks.empty()) FAIL("an objective without a task for this test: " << objective);
  return tasks;
}

struct Numbers {
  UpdateOptions options;
  double roundoff;  // of the products: half the distance of 1 to the next number
};

std::map<std::string, Numbers> precisions() {
  std::map<std::string, Numbers> all;
  all["fp32"].roundoff = std::exp2(-24);
  all["bf16-mixed"].options.precision.autocast = at::kBFloat16;
  all["fp16-mixed"].options.precision.autocast = at::kHalf;
  all["bf16-true"].options.precision.weights = at::kBFloat16;
  all["fp16-true"].options.precision.weights = at::kHalf;
  for (const char* name : {"bf16-mixed", "bf16-true"}) all[name].roundoff = std::exp2(-8);
  for (const char* name : {"fp16-mixed", "fp16-true"}) {
    all[name].roundoff = std::exp2(-11);
    all[name].options.loss_scale = optim::LossScaleOptions{.init = 1024};
  }
  return all;
}

at::Tensor flat_parameters(const nn::Module& model) {
  std::vector<at::Tensor> all;
  for (const auto& [name, value] : model.named_parameters()) {
    all.push_back(value.detach().to(at::kDouble).flatten());
  }
  return at::cat(all);
}

struct Trained {
  std::vector<StepRecord> steps;
  at::Tensor start, end;  // all parameters as one vector, float64
};

Trained trained(const Task& task, const UpdateOptions& update, std::int64_t micro_batch_size,
                std::int64_t accumulation) {
  data::DataSet data =
      bound(data::all_data_sets(), task.data, task.data_settings).build({at::Device(at::kCPU), 1});
  const models::Model model = bound(models::all_models(), task.model, {{"hidden", "[]"}})
                                  .build({data.sample_shape, data.num_classes, nn::init_on_cpu(5)});
  const at::Tensor buffers = model->to(at::kCPU, true, update.precision.weights.value_or(at::kFloat));
  const auto objective = bound(objectives::all_objectives(), task.objective, task.objective_settings)
                             .build({data.num_classes, data.ignore_index});
  const auto optimizer =
      bound(optim::all_optimizers(), "sgd", {{"lr", "0.2"}}).build({model->named_parameters(), 1});
  TrainOptions options;
  options.seed = 9;
  options.micro_batch_size = micro_batch_size;
  options.gradient_accumulation_steps = accumulation;
  options.epochs = kEpochs;
  options.update = update;
  Trained made;
  made.start = flat_parameters(*model);
  Recorder recorder;
  const StopFlag stop;
  train(options, {*model, buffers, data, *objective, *optimizer, [](std::int64_t) { return 1.0; }}, recorder,
        stop, nullptr);
  made.steps = recorder.steps;
  made.end = flat_parameters(*model);
  return made;
}

double norm(const at::Tensor& values) {
  return values.norm().item<double>();
}

// Of two splits of the same windows.
void check_equal(const Trained& whole, const Trained& parts, double roundoff) {
  REQUIRE(parts.steps.size() == whole.steps.size());
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const StepRecord &a = whole.steps[i], &b = parts.steps[i];
    CAPTURE(a.window);
    REQUIRE_FALSE(b.skipped);
    CHECK(b.targets == a.targets);
    CHECK(b.samples_total == a.samples_total);
    CHECK(b.learning_rate == a.learning_rate);
    // Sums of products that are rounded one by one; and where a loss is small, it is a difference of logits
    // of about 1, as its gradient is one of probabilities.
    CHECK(std::abs(b.loss - a.loss) <= 4 * roundoff * std::max(1.0, a.loss));
    CHECK(std::abs(b.grad_norm - a.grad_norm) <= 8 * roundoff * std::max(1.0, a.grad_norm));
  }
  // A weight is rounded once in either; what its steps differ by is less.
  CHECK(norm(whole.end.sub(whole.start)) > 0.05 * norm(whole.end));
  CHECK(norm(parts.end.sub(whole.end)) <= 2 * roundoff * norm(whole.end));
}

}  // namespace

TEST_CASE(
    "every objective, every precision: how a window is split changes loss, norm and weights by rounding "
    "alone",
    "[train]") {
  const testing::TemporaryFolder folder;
  for (const objectives::ObjectiveComponent& component : objectives::all_objectives()) {
    for (const Task& task : tasks_of(component.name, folder)) {
      for (const auto& [precision, numbers] : precisions()) {
        const Trained whole = trained(task, numbers.options, 8, 1);
        REQUIRE(whole.steps.size() == 6);
        for (const auto& [micro, accumulation] : {std::pair{4, 2}, {2, 4}, {1, 8}}) {
          INFO(task.objective << " on " << task.data << ", " << precision << ", " << micro << " x "
                              << accumulation);
          check_equal(whole, trained(task, numbers.options, micro, accumulation), numbers.roundoff);
        }
      }
    }
  }
}

TEST_CASE("update: how much padding there is changes nothing", "[train]") {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder, "sequences.txt", varying_sequences());
  Task task{"testing.sequences", {{"path", path}, {"length", "8"}}, "testing.tokens", "cross_entropy", {}};
  const Trained narrow = trained(task, {}, 2, 2);
  task.data_settings.back().second = "64";
  check_equal(narrow, trained(task, {}, 2, 2), std::exp2(-24));
}

}  // namespace gputrain::train
