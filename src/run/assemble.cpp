#include "run/assemble.h"

#include "base/error.h"
#include "data/order.h"
#include "device/device.h"
#include "device/memory.h"

#include <algorithm>

namespace gputrain::run {
namespace {

train::TrainOptions train_options(const recipe::Recipe& recipe) {
  train::TrainOptions options;
  options.device = at::Device(recipe.device);
  options.seed = static_cast<std::uint64_t>(recipe.seed);
  options.micro_batch_size = recipe.micro_batch_size;
  options.gradient_accumulation_steps = recipe.gradient_accumulation_steps;
  options.epochs = recipe.epochs;
  options.max_steps = recipe.max_steps;
  options.max_seconds = recipe.max_time;
  options.max_grad_norm = recipe.max_grad_norm;
  options.validate_every = recipe.validation.every;
  options.validation_micro_batch_size = recipe.validation.micro_batch_size.value_or(recipe.micro_batch_size);
  options.log_every = recipe.logging.log_every;
  options.warmup_steps = recipe.logging.warmup_steps;
  return options;
}

// A batch of one sample can have nothing to normalise over; that shows at the last batch of the first epoch,
// so it is tried before.
void check_smallest_batch(const Assembly& made) {
  const std::int64_t samples = made.data.train->size();
  const std::int64_t last = samples % made.options.micro_batch_size;
  if (made.options.micro_batch_size != 1 && last != 1) return;
  const at::Tensor before = made.flat_buffers.defined() ? made.flat_buffers.clone() : at::Tensor();
  (*made.model)(made.data.train->batch({samples - 1}).input);
  if (before.defined()) at::Tensor(made.flat_buffers).copy_(before);
}

void append(std::vector<std::string>& notices, const std::vector<std::string>& more) {
  notices.insert(notices.end(), more.begin(), more.end());
}

train::RunInfo run_info(const recipe::Recipe& recipe, const Assembly& made) {
  train::RunInfo info;
  info.name = recipe.name;
  info.unit = made.data.unit;
  info.total_steps = train::total_steps(made.options, made.data.train->size());
  info.micro_batch_size = recipe.micro_batch_size;
  info.gradient_accumulation_steps = recipe.gradient_accumulation_steps;
  info.parameters = made.model->parameter_count();
  info.train_samples = made.data.train->size();
  info.validation_samples = made.data.validation ? made.data.validation->size() : 0;
  info.memory_limit_bytes = device::total_memory(made.options.device);
  return info;
}

}  // namespace

train::TrainParts Assembly::parts() {
  return {*model, flat_buffers, data, *objective, *optimizer, schedule};
}

void resolve(Plan& plan) {
  recipe::Recipe& recipe = plan.recipe;
  const bool automatic = recipe.device == "auto";
  const at::Device device = device::choose_device(recipe.device);
  if (automatic && device.is_cpu()) {
    const device::CudaState cuda = device::cuda_state();
    if (cuda.driver > 0)
      plan.notices.push_back("training on the CPU: " + device::why_no_gpu(cuda).value_or(""));
  }
  recipe.device = device.str();
  if (recipe.precision == recipe::Precision::kAuto) recipe.precision = recipe::Precision::kFp32;
  if (!recipe.validation.micro_batch_size) recipe.validation.micro_batch_size = recipe.micro_batch_size;
  if (!recipe.cuda.channels_last) recipe.cuda.channels_last = true;
  // Off: autotuning took 8 to 57 s before the first step of a ResNet-50 and doubled its peak of memory
  // (H200), for 9 % more speed in fp32 and none in tf32.
  if (!recipe.cuda.cudnn_benchmark) recipe.cuda.cudnn_benchmark = false;
}

Assembly assemble(const Plan& plan) {
  const recipe::Recipe& recipe = plan.recipe;
  Assembly made;
  made.options = train_options(recipe);
  const at::Device device = made.options.device;
  const bool channels_last = device.is_cpu() || recipe.cuda.channels_last.value_or(true);
  device::set_current(device);
  made.notices = plan.notices;
  append(made.notices, device::configure(device, recipe.precision == recipe::Precision::kTf32,
                                         recipe.cuda.cudnn_benchmark.value_or(false), recipe.cpu.threads));

  made.data = plan.data.build({.device = device, .seed = made.options.seed, .channels_last = channels_last});
  append(made.notices, made.data.notices);
  made.model =
      plan.model.build({made.data.sample_shape, made.data.num_classes, nn::init_on_cpu(made.options.seed)});
  made.flat_buffers = made.model->to(device, channels_last);
  if (made.flat_buffers.defined() && recipe.gradient_accumulation_steps > 1) {
    made.notices.push_back(
        "batch normalisation takes its statistics over each micro-batch, so that gradient accumulation does "
        "not "
        "equal one large batch exactly");
  }
  check_smallest_batch(made);

  made.objective = plan.objective.build({made.data.num_classes});
  made.optimizer = plan.optimizer.build(made.model->named_parameters());
  made.info = run_info(recipe, made);
  made.schedule = plan.schedule.build(
      {made.info.total_steps, train::steps_per_epoch(made.options, made.data.train->size())});
  return made;
}

}  // namespace gputrain::run
