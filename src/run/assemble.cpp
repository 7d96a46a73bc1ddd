#include "run/assemble.h"

#include "base/text.h"
#include "data/faulty_split.h"
#include "data/order.h"
#include "device/allocator_settings.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/memory_history.h"
#include "nn/guards.h"
#include "nn/module.h"
#include "nn/recompute.h"
#include "optim/freeze.h"
#include "optim/groups.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gputrain::run {
namespace {

recipe::Problem located(const SettingError& error, const recipe::Node& root) {
  return {recipe::origin_of(root, error.key()), error.what()};
}

// On the CPU always: convolutions are faster so.
bool is_channels_last(const recipe::Recipe& recipe, at::Device device) {
  return device.is_cpu() || recipe.cuda.channels_last.value_or(true);
}

// Tries the parts of a run one after the other, so that what is wrong with all of them is told at once.
class Attempts {
 public:
  explicit Attempts(Plan plan) : plan_(std::move(plan)) {
    if (!plan_.problems.empty()) code_ = ExitCode::kUsage;
  }

  // Whether `build` came to its end.
  template <class Build>
  bool operator()(const Build& build) {
    try {
      build();
      return true;
    } catch (const SettingError& error) {
      add(located(error, plan_.root), ExitCode::kUsage);
    } catch (const Error& error) {
      add({{}, error.what()}, error.code());
    }
    return false;
  }

  void refuse_problems() const { run::refuse_problems(plan_, code_.value_or(ExitCode::kUsage)); }

 private:
  void add(recipe::Problem problem, ExitCode code) {
    plan_.problems.push_back(std::move(problem));
    if (!code_ || code == ExitCode::kUsage) code_ = code;
  }

  Plan plan_;
  std::optional<ExitCode> code_;  // of the first problem, or kUsage where any has it
};

bool is_float16(recipe::Precision precision) {
  return precision == recipe::Precision::kFp16Mixed || precision == recipe::Precision::kFp16True;
}

nn::Precision compute_types(recipe::Precision precision) {
  switch (precision) {
    case recipe::Precision::kFp16Mixed:
      return {at::kHalf, std::nullopt};
    case recipe::Precision::kBf16Mixed:
      return {at::kBFloat16, std::nullopt};
    case recipe::Precision::kFp16True:
      return {std::nullopt, at::kHalf};
    case recipe::Precision::kBf16True:
      return {std::nullopt, at::kBFloat16};
    default:
      return {};
  }
}

train::UpdateOptions update_options(const recipe::Recipe& recipe) {
  train::UpdateOptions options;
  options.precision = compute_types(recipe.precision);
  options.max_grad_norm = recipe.max_grad_norm;
  options.max_grad_value = recipe.max_grad_value;
  options.max_skipped = recipe.max_skipped;
  options.stop_on_nonfinite = recipe.on_nonfinite == recipe::OnNonFinite::kStop;
  if (is_float16(recipe.precision)) {
    const recipe::LossScale& scale = recipe.loss_scale;
    options.loss_scale = {
        scale.fixed, scale.init, scale.growth_factor, scale.backoff_factor, scale.growth_interval,
        scale.min,   scale.max};
  }
  return options;
}

train::Graphs graphs(const recipe::Recipe& recipe) {
  if (at::Device(recipe.device).is_cpu()) return train::Graphs::kOff;
  if (!recipe.cuda.graphs) return train::Graphs::kAuto;
  return *recipe.cuda.graphs ? train::Graphs::kOn : train::Graphs::kOff;
}

// "precision: bf16-true": what would need less memory, of what can still need less.
std::vector<std::string> memory_savers(const recipe::Recipe& recipe) {
  std::vector<std::string> savers;
  if (*recipe.micro_batch_size > 1) {
    savers.push_back(concat("a smaller micro_batch_size (now ", *recipe.micro_batch_size,
                            ") with more gradient_accumulation_steps (now ",
                            *recipe.gradient_accumulation_steps, ")"));
  }
  if (recipe.activation_checkpointing.mode != recipe::ActivationCheckpointing::Mode::kFull)
    savers.emplace_back("activation_checkpointing: full");
  using recipe::Precision;
  if (recipe.precision == Precision::kFp32 || recipe.precision == Precision::kTf32)
    savers.emplace_back("a precision of 16 bits");
  if (recipe.precision == Precision::kFp16Mixed) savers.emplace_back("precision: fp16-true");
  if (recipe.precision == Precision::kBf16Mixed) savers.emplace_back("precision: bf16-true");
  if (recipe.optimizer.name != "sgd")
    savers.push_back(concat("an optimizer with less state (now ", recipe.optimizer.name, ")"));
  if (recipe.ema.decay > 0) savers.emplace_back("ema.decay: 0");
  return savers;
}

train::TrainOptions train_options(const recipe::Recipe& recipe) {
  train::TrainOptions options;
  options.device = at::Device(recipe.device);
  options.seed = static_cast<std::uint64_t>(recipe.seed);
  options.micro_batch_size = recipe.micro_batch_size.value();
  options.gradient_accumulation_steps = recipe.gradient_accumulation_steps.value();
  options.epochs = recipe.epochs;
  options.max_steps = recipe.max_steps;
  options.max_seconds = recipe.max_time;
  options.update = update_options(recipe);
  options.validate_every = recipe.validation.every;
  options.validation_micro_batch_size = recipe.validation.micro_batch_size.value_or(options.micro_batch_size);
  const recipe::EarlyStopping& early = recipe.early_stopping;
  if (early.patience) {
    options.early_stopping = train::EarlyStoppingOptions{*early.patience, early.min_delta, early.metric};
  }
  options.log_every = recipe.logging.log_every;
  options.warmup_steps = recipe.logging.warmup_steps;
  options.graphs = graphs(recipe);
  options.memory_ledger = recipe.memory.ledger;
  options.empty_cache = recipe.cuda.empty_cache;
  options.memory_savers = memory_savers(recipe);
  return options;
}

void check_early_stopping(const Assembly& made) {
  if (!made.options.early_stopping) return;
  if (!made.data.validation) {
    throw SettingError(
        "early_stopping",
        "needs validations, and this data has no samples to validate on; expected a validation "
        "split, or no early_stopping");
  }
  if (!made.objective) return;
  const std::string& metric = made.options.early_stopping->metric;
  std::vector<std::string> known = train::judged_numbers(*made.objective, made.ema != nullptr);
  known.insert(known.begin(), "auto");
  if (std::find(known.begin(), known.end(), metric) != known.end()) return;
  const std::string guess = nearest(metric, known);
  throw SettingError("early_stopping.metric",
                     concat("is ", metric, "; expected ", join(known, ", ", " or "),
                            guess.empty() ? "" : concat("; did you mean ", guess, "?")));
}

// A batch of one sample can have nothing to normalise over; that shows at the last batch of the first epoch,
// so it is tried before.
void check_smallest_batch(const Assembly& made) {
  const std::int64_t samples = made.data.train->size();
  const std::int64_t last = samples % made.options.micro_batch_size;
  if (made.options.micro_batch_size != 1 && last != 1) return;
  const c10::AutoGradMode no_grad(false);
  const nn::KeptBuffers kept(*made.model);
  nn::forward(*made.model, made.data.train->batch({samples - 1}).input, made.options.update.precision);
}

// Sets what the model computes again in its backward passes.
void set_recompute(nn::Module& model, const recipe::ActivationCheckpointing& settings) {
  using Mode = recipe::ActivationCheckpointing::Mode;
  if (settings.mode == Mode::kNone) return;
  const bool is_selective = settings.mode == Mode::kSelective;
  const nn::Recompute how = is_selective ? nn::Recompute::kSelective : nn::Recompute::kFull;
  if (!settings.match.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, module] : model.named_modules()) names.push_back(name);
    optim::check_patterns({"activation_checkpointing.match", "has", "no layer"}, settings.match, names);
    std::string outer;  // the last one chosen: what lies inside of it is computed again with it
    for (const auto& [name, module] : model.named_modules()) {
      const bool lies_inside = !outer.empty() && name.starts_with(outer + ".");
      if (lies_inside || !optim::matches_any(settings.match, name)) continue;
      module->recompute(name, how);
      outer = name;
    }
    return;
  }
  if (model.blocks() == nullptr || model.blocks()->size() == 0) {
    throw SettingError("activation_checkpointing",
                       concat("is ", is_selective ? "selective" : "full",
                              ", and this model repeats no blocks; expected none, or names of layers"));
  }
  model.blocks()->recompute(model, how, settings.every.value_or(is_selective ? 2 : 1));
}

// Builds all parts whose settings could be read. A part is tried also where one that it needs is missing, as
// far as it can be without.
void build_parts(const Plan& plan, Assembly& made, Attempts& attempt) {
  const train::TrainOptions& options = made.options;
  const bool channels_last = is_channels_last(plan.recipe, options.device);
  const bool has_data =
      plan.data.build && attempt([&] {
        made.data =
            plan.data.build({.device = options.device, .seed = options.seed, .channels_last = channels_last});
        made.data.train = data::with_faults(std::move(made.data.train), "training");
        made.data.validation = data::with_faults(std::move(made.data.validation), "validation");
        data::check_targets(made.data);
      });
  if (has_data && plan.model.build) {
    attempt([&] {
      made.model =
          plan.model.build({made.data.sample_shape, made.data.num_classes, nn::init_on_cpu(options.seed)});
      made.flat_buffers = made.model->to(options.device, channels_last,
                                         options.update.precision.weights.value_or(at::kFloat));
    });
  }
  if (made.model) {
    attempt([&] { set_recompute(*made.model, plan.recipe.activation_checkpointing); });
    attempt([&] { optim::freeze(made.model->named_parameters(), plan.recipe.freeze); });
  }
  const nn::NamedTensors trained =
      made.model ? optim::trained(made.model->named_parameters()) : nn::NamedTensors();
  if (has_data && plan.objective.build) {
    attempt([&] { made.objective = plan.objective.build({made.data.num_classes, made.data.ignore_index}); });
  }
  if (plan.optimizer.build) {
    attempt([&] { made.optimizer = plan.optimizer.build({trained, options.seed}); });
  }
  if (made.model && made.optimizer && plan.recipe.ema.decay > 0) {
    made.ema = std::make_unique<optim::Ema>(trained, made.model->named_buffers(), *made.optimizer,
                                            optim::EmaOptions{plan.recipe.ema.decay, plan.recipe.ema.warmup});
  }
  if (has_data) attempt([&] { check_early_stopping(made); });
  const bool ends = options.epochs || options.max_steps || options.max_seconds;
  if (plan.schedule.build && ends) {
    const std::int64_t samples = has_data ? made.data.train->size() : 1;
    attempt([&] {
      made.schedule = plan.schedule.build(
          {train::total_steps(options, samples), train::steps_per_epoch(options, samples)});
    });
  }
}

void append(std::vector<std::string>& notices, const std::vector<std::string>& more) {
  notices.insert(notices.end(), more.begin(), more.end());
}

// Settings of a GPU or a precision other than those in force are checked but do nothing; said once.
void report_inactive(Plan& plan, at::Device device) {
  std::vector<std::string> keys;
  if (device.is_cpu() && plan.recipe.precision == recipe::Precision::kTf32)
    keys.emplace_back("precision: tf32 (a CPU computes fp32)");
  if (device.is_cpu() && plan.recipe.cuda.channels_last) keys.emplace_back("cuda.channels_last");
  if (device.is_cpu() && plan.recipe.cuda.cudnn_benchmark) keys.emplace_back("cuda.cudnn_benchmark");
  if (device.is_cpu() && plan.recipe.cuda.graphs) keys.emplace_back("cuda.graphs");
  const recipe::Cuda defaults;
  if (device.is_cpu() && plan.recipe.cuda.allocator != defaults.allocator)
    keys.emplace_back("cuda.allocator");
  if (device.is_cpu() && plan.recipe.cuda.empty_cache != defaults.empty_cache)
    keys.emplace_back("cuda.empty_cache");
  if (device.is_cpu() && plan.recipe.memory.snapshot) keys.emplace_back("memory.snapshot");
  const recipe::ActivationCheckpointing& checkpointing = plan.recipe.activation_checkpointing;
  const bool is_kept = checkpointing.mode == recipe::ActivationCheckpointing::Mode::kNone;
  if (is_kept && (checkpointing.every || !checkpointing.match.empty())) {
    plan.notices.emplace_back("inactive: activation_checkpointing.every and match (its mode is none)");
  }
  if (!keys.empty()) plan.notices.push_back("inactive on the CPU: " + join(keys, ", "));
  if (!is_float16(plan.recipe.precision) && plan.recipe.loss_scale != recipe::LossScale())
    plan.notices.emplace_back("inactive: loss_scale (it belongs to fp16-mixed and fp16-true)");
  if (plan.recipe.ema.warmup && plan.recipe.ema.decay == 0)
    plan.notices.emplace_back("inactive: ema.warmup (ema.decay is 0)");
  const recipe::EarlyStopping& early = plan.recipe.early_stopping;
  if (!early.patience && early != recipe::EarlyStopping())
    plan.notices.emplace_back("inactive: early_stopping (patience is not given)");
}

bool is_bfloat16(recipe::Precision precision) {
  return precision == recipe::Precision::kBf16Mixed || precision == recipe::Precision::kBf16True;
}

void check_memory_limit(Plan& plan, at::Device device) {
  if (!plan.recipe.memory.limit) return;
  try {
    device::check_memory_limit(device, *plan.recipe.memory.limit);
  } catch (const SettingError& error) {
    plan.problems.push_back(located(error, plan.root));
  }
}

// What `auto` means on this device; a precision that the device cannot compute in is a problem.
void resolve_precision(Plan& plan, at::Device device) {
  constexpr int kFirstWithBfloat16 = 80;
  const int capability =
      device.is_cuda() ? device::cuda_state().capabilities.at(static_cast<std::size_t>(device.index())) : 0;
  recipe::Precision& precision = plan.recipe.precision;
  if (precision == recipe::Precision::kAuto) {
    precision = device.is_cpu()                    ? recipe::Precision::kFp32
                : capability >= kFirstWithBfloat16 ? recipe::Precision::kBf16Mixed
                                                   : recipe::Precision::kFp16Mixed;
  }
  if (device.is_cuda() && is_bfloat16(precision) && capability < kFirstWithBfloat16) {
    const SettingError error("precision", concat("computes in bfloat16, which ", device.str(),
                                                 " (compute capability ", device::capability_text(capability),
                                                 ") cannot; expected fp16-mixed, fp16-true, tf32 or fp32"));
    plan.problems.push_back(located(error, plan.root));
  }
}

// Schedules that do not reach their peak, or their end before the run's.
void report_odd_schedule(const train::TrainOptions& options, const optim::Schedule& schedule,
                         const std::optional<std::int64_t>& total_steps, std::vector<std::string>& notices) {
  if (!total_steps || options.max_seconds) return;
  double peak = 0;
  const std::int64_t samples = std::min<std::int64_t>(*total_steps, 1000);
  for (std::int64_t i = 0; i < samples; ++i) peak = std::max(peak, schedule(*total_steps * i / samples));
  if (peak < 0.5) {
    notices.push_back(concat("the learning rate reaches only ", shortest(std::round(peak * 100)),
                             " % of optimizer.lr within ", *total_steps,
                             " steps; see lr_scheduler.warmup_steps"));
  }
  if (*total_steps > 1 && schedule(*total_steps - 1) == 0) {
    notices.emplace_back("the learning rate is 0 before the run ends; see lr_scheduler.total_steps");
  }
}

// A validation at the end of the run ends nothing.
void report_idle_early_stopping(const train::TrainOptions& options, const train::RunInfo& info,
                                std::vector<std::string>& notices) {
  if (!options.early_stopping || !info.total_steps) return;
  const auto every =
      optim::steps_of(options.validate_every, train::steps_per_epoch(options, info.train_samples));
  if (!every) return;
  const std::int64_t needed = options.early_stopping->patience + 1;
  const std::int64_t validations = (*info.total_steps - 1) / *every;
  if (validations >= needed) return;
  notices.push_back(concat("early stopping cannot end this run: it takes ", needed,
                           " validations before the ", "last step, and of ", *info.total_steps,
                           " steps there are ", validations,
                           "; see early_stopping.patience and validation.every"));
}

train::RunInfo run_info(const recipe::Recipe& recipe, const Assembly& made) {
  train::RunInfo info;
  info.name = recipe.name;
  info.unit = made.data.unit;
  info.total_steps = train::total_steps(made.options, made.data.train->size());
  info.micro_batch_size = made.options.micro_batch_size;
  info.gradient_accumulation_steps = made.options.gradient_accumulation_steps;
  info.parameters = made.model->parameter_count();
  info.frozen_parameters = info.parameters;
  for (const auto& [name, value] : optim::trained(made.model->named_parameters())) {
    info.frozen_parameters -= value.numel();
  }
  info.train_samples = made.data.train->size();
  info.validation_samples = made.data.validation ? made.data.validation->size() : 0;
  info.memory_limit_bytes =
      recipe.memory.limit ? recipe.memory.limit : device::total_memory(made.options.device);
  return info;
}

}  // namespace

Assembly::Assembly() = default;
Assembly::Assembly(Assembly&&) noexcept = default;
Assembly::~Assembly() = default;

train::TrainParts Assembly::parts() {
  return {*model, flat_buffers, data, *objective, *optimizer, schedule, ema.get(), memory_limit.get()};
}

void resolve(Plan& plan, Purpose purpose) {
  recipe::Recipe& recipe = plan.recipe;
  const bool automatic = recipe.device == "auto";
  at::Device device(at::kCPU);
  bool is_there = true;
  try {
    device = device::choose_device(recipe.device);
  } catch (const SettingError& error) {
    is_there = false;
    const recipe::Problem problem = located(error, plan.root);
    if (purpose == Purpose::kTrain) {
      plan.problems.push_back(problem);
    } else {
      plan.notices.push_back(recipe::text_of({problem}));
    }
  }
  if (automatic && device.is_cpu()) {
    const device::CudaState cuda = device::cuda_state();
    if (cuda.driver > 0) {
      plan.notices.push_back("training on the CPU: " + device::why_no_gpu(cuda).value_or(""));
    }
  }
  if (is_there) {
    recipe.device = device.str();
    resolve_precision(plan, device);
    report_inactive(plan, device);
    check_memory_limit(plan, device);
  }
  if (!recipe.validation.micro_batch_size) recipe.validation.micro_batch_size = recipe.micro_batch_size;
  if (!recipe.cuda.channels_last) recipe.cuda.channels_last = true;
  // Off: autotuning took 8 to 57 s before the first step of a ResNet-50 and doubled its peak of memory
  // (H200), for 9 % more speed in fp32 and none in tf32 (docs/results.md).
  if (!recipe.cuda.cudnn_benchmark) recipe.cuda.cudnn_benchmark = false;
}

void check_deterministic(const Assembly& made) {
  // Of one sample there may be nothing to normalise over.
  std::vector<std::int64_t> ids{0};
  if (made.options.micro_batch_size > 1 && made.data.train->size() > 1) ids.push_back(1);
  const nn::KeptBuffers kept(*made.model);
  try {
    const nn::Batch batch = made.data.train->batch(ids);
    const at::Tensor output = nn::forward(*made.model, batch.input, made.options.update.precision);
    made.objective->loss_sum(output, batch.target).backward();
    nn::drop_gradients(*made.model);
  } catch (const std::exception& error) {
    nn::drop_gradients(*made.model);
    if (const auto refused = device::refused_operator(error)) throw device::not_deterministic(*refused);
    throw;
  }
}

Assembly assemble(const Plan& plan, const std::vector<std::function<void(const Assembly&)>>& also) {
  const recipe::Recipe& recipe = plan.recipe;
  Assembly made;
  made.options = train_options(recipe);
  const at::Device device = made.options.device;
  made.notices = plan.readings;
  append(made.notices, plan.notices);
  append(made.notices, device::set_deterministic(recipe.deterministic));
  if (device.is_cuda() && recipe.cuda.allocator == recipe::CudaAllocator::kExpandable)
    append(made.notices, device::use_expandable_segments());
  device::set_current(device);
  append(made.notices, device::configure(device, recipe.precision == recipe::Precision::kTf32,
                                         recipe.cuda.cudnn_benchmark.value_or(false), recipe.cpu.threads));

  Attempts attempt(plan);
  if (device.is_cuda() && recipe.memory.snapshot) device::record_memory_history();
  if (recipe.memory.limit) {
    attempt([&] { made.memory_limit = std::make_unique<device::MemoryLimit>(device, *recipe.memory.limit); });
  }
  build_parts(plan, made, attempt);
  for (const auto& look : also) attempt([&] { look(made); });
  attempt.refuse_problems();

  append(made.notices, made.data.notices);
  for (const std::string& key : made.objective->inactive()) {
    made.notices.push_back("inactive: objective." + key);
  }
  if (made.flat_buffers.defined() && made.options.gradient_accumulation_steps > 1) {
    made.notices.emplace_back(
        "batch normalisation takes its statistics over each micro-batch, so that gradient accumulation does "
        "not equal one large batch exactly");
  }
  check_smallest_batch(made);
  if (recipe.deterministic) {
    attempt([&] { check_deterministic(made); });
    attempt.refuse_problems();
  }
  made.info = run_info(recipe, made);
  report_odd_schedule(made.options, made.schedule, made.info.total_steps, made.notices);
  report_idle_early_stopping(made.options, made.info, made.notices);
  return made;
}

}  // namespace gputrain::run
