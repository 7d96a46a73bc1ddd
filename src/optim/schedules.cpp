#include "base/error.h"
#include "optim/components.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gputrain::optim {
namespace {

constexpr recipe::Range kSteps{.min = 0, .max = 1e12};

void describe_warmup(recipe::Visitor& v, std::int64_t& warmup_steps) {
  v.integer("warmup_steps", warmup_steps, kSteps, "steps", "linear warm-up from near 0 to the peak");
}

// Warm-up, then `after` of the updates applied since.
Schedule with_warmup(std::int64_t warmup_steps, Schedule after) {
  return [warmup_steps, after = std::move(after)](std::int64_t applied) {
    if (applied >= warmup_steps) return after(applied - warmup_steps);
    return static_cast<double>(applied + 1) / static_cast<double>(warmup_steps + 1);
  };
}

struct ConstantOptions {
  std::int64_t warmup_steps = 0;
};

void describe(recipe::Visitor& v, ConstantOptions& o) {
  describe_warmup(v, o.warmup_steps);
}

Schedule build_constant(const ConstantOptions& options, const ScheduleContext& /*context*/) {
  return with_warmup(options.warmup_steps, [](std::int64_t /*applied*/) { return 1.0; });
}

// What linear and cosine share: both fall from 1 to `final_factor` at `total_steps` and stay there.
struct DecayOptions {
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> total_steps;
  double final_factor = 0;
};

void describe(recipe::Visitor& v, DecayOptions& o) {
  describe_warmup(v, o.warmup_steps);
  v.integer("total_steps", o.total_steps, {1, 1e12}, "steps",
            "end of the decay, warm-up included; auto: the smallest step limit of the recipe");
  v.number("final_factor", o.final_factor, {0, 1}, "", "share of the peak that is left at the end");
}

Schedule build_decay(const DecayOptions& options, const ScheduleContext& context, double (*shape)(double)) {
  const std::optional<std::int64_t> total = options.total_steps ? options.total_steps : context.total_steps;
  if (!total) {
    throw SettingError("lr_scheduler.total_steps",
                       "is auto, and the recipe limits the run by max_time alone; give "
                       "lr_scheduler.total_steps, epochs or max_steps, so that the schedule knows its end");
  }
  const double steps = static_cast<double>(std::max<std::int64_t>(*total - options.warmup_steps, 1));
  const double last = options.final_factor;
  return with_warmup(options.warmup_steps, [=](std::int64_t applied) {
    const double progress = std::min(static_cast<double>(applied) / steps, 1.0);
    return last + (1 - last) * shape(progress);
  });
}

Schedule build_linear(const DecayOptions& options, const ScheduleContext& context) {
  return build_decay(options, context, [](double progress) { return 1 - progress; });
}

// Source: Loshchilov & Hutter 2017, "SGDR", without restarts.
Schedule build_cosine(const DecayOptions& options, const ScheduleContext& context) {
  return build_decay(options, context,
                     [](double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); });
}

struct StepOptions {
  std::int64_t warmup_steps = 0;
  recipe::Interval every{30, recipe::Interval::Unit::kEpochs};
  double gamma = 0.1;
};

void describe(recipe::Visitor& v, StepOptions& o) {
  describe_warmup(v, o.warmup_steps);
  v.interval("every", o.every, "how long each level lasts, in steps or epochs");
  v.number("gamma", o.gamma, {.min = 0, .max = 1, .min_open = true}, "", "factor from one level to the next");
}

Schedule build_step(const StepOptions& options, const ScheduleContext& context) {
  const std::optional<std::int64_t> steps = steps_of(options.every, context.steps_per_epoch);
  if (!steps) {
    throw Error(
        ExitCode::kUsage,
        "lr_scheduler.every is a time; expected steps (500) or epochs (30ep), so that the learning rate "
        "does not depend on the speed of the machine");
  }
  const std::int64_t length = *steps;
  return with_warmup(options.warmup_steps, [length, gamma = options.gamma](std::int64_t applied) {
    return std::pow(gamma, static_cast<double>(applied / length));
  });
}

}  // namespace

std::optional<std::int64_t> steps_of(const recipe::Interval& interval, std::int64_t steps_per_epoch) {
  if (interval.unit == recipe::Interval::Unit::kSeconds) return std::nullopt;
  const bool by_epoch = interval.unit == recipe::Interval::Unit::kEpochs;
  const double steps = interval.count * (by_epoch ? static_cast<double>(steps_per_epoch) : 1.0);
  constexpr double kMost = 1e15;  // more than any run has, and safe to round
  return std::max<std::int64_t>(std::llround(std::min(steps, kMost)), 1);
}

ScheduleComponent constant() {
  return recipe::component("constant", "the peak throughout", build_constant);
}
ScheduleComponent linear() {
  return recipe::component("linear", "falls in a straight line", build_linear);
}
ScheduleComponent cosine() {
  return recipe::component("cosine", "falls along half a cosine", build_cosine);
}
ScheduleComponent step_decay() {
  return recipe::component("step", "falls by gamma every so often", build_step);
}

}  // namespace gputrain::optim
