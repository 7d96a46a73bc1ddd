#include "base/error.h"
#include "base/text.h"
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

// From 1 to 0 while `progress` rises from 0 to 1.
double falling_line(double progress) {
  return 1 - progress;
}
double falling_cosine(double progress) {
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}
double falling_sqrt(double progress) {
  return 1 - std::sqrt(progress);
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

// The end of the schedule: its own key, or the smallest step limit of the recipe.
std::int64_t horizon(const std::optional<std::int64_t>& total_steps, const ScheduleContext& context) {
  const std::optional<std::int64_t> total = total_steps ? total_steps : context.total_steps;
  if (total) return *total;
  throw SettingError("lr_scheduler.total_steps",
                     "is auto, and the recipe limits the run by max_time alone; give "
                     "lr_scheduler.total_steps, epochs or max_steps, so that the schedule knows its end");
}

void describe_horizon(recipe::Visitor& v, std::optional<std::int64_t>& total_steps) {
  v.integer("total_steps", total_steps, {1, 1e12}, "steps",
            "end of the decay, warm-up included; auto: the smallest step limit of the recipe");
}

void describe_final_factor(recipe::Visitor& v, double& final_factor) {
  v.number("final_factor", final_factor, {0, 1}, "", "share of the peak that is left at the end");
}

// What linear and cosine share: both fall from 1 to `final_factor` at `total_steps` and stay there.
struct DecayOptions {
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> total_steps;
  double final_factor = 0;
};

void describe(recipe::Visitor& v, DecayOptions& o) {
  describe_warmup(v, o.warmup_steps);
  describe_horizon(v, o.total_steps);
  describe_final_factor(v, o.final_factor);
}

// `shape` falls from 1 to 0 while its argument rises from 0 to 1.
Schedule build_decay(const DecayOptions& options, const ScheduleContext& context,
                     const std::function<double(double)>& shape) {
  const std::int64_t total = horizon(options.total_steps, context);
  const double steps = static_cast<double>(std::max<std::int64_t>(total - options.warmup_steps, 1));
  const double last = options.final_factor;
  return with_warmup(options.warmup_steps, [=](std::int64_t applied) {
    const double progress = std::min(static_cast<double>(applied) / steps, 1.0);
    return last + (1 - last) * shape(progress);
  });
}

Schedule build_linear(const DecayOptions& options, const ScheduleContext& context) {
  return build_decay(options, context, falling_line);
}

// Source: Loshchilov & Hutter 2017, "SGDR", without restarts.
Schedule build_cosine(const DecayOptions& options, const ScheduleContext& context) {
  return build_decay(options, context, falling_cosine);
}

struct PolynomialOptions {
  DecayOptions decay;
  double power = 2;
};

void describe(recipe::Visitor& v, PolynomialOptions& o) {
  describe(v, o.decay);
  v.number("power", o.power, {.min = 0, .max = 100, .min_open = true}, "",
           "exponent of what is left of the way; 1 is a straight line");
}

// (1 - progress)^power, as in PyTorch's PolynomialLR.
Schedule build_polynomial(const PolynomialOptions& options, const ScheduleContext& context) {
  const double power = options.power;
  return build_decay(options.decay, context,
                     [power](double progress) { return std::pow(1 - progress, power); });
}

struct InverseSqrtOptions {
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> timescale;
};

void describe(recipe::Visitor& v, InverseSqrtOptions& o) {
  describe_warmup(v, o.warmup_steps);
  v.integer("timescale", o.timescale, {1, 1e12}, "steps",
            "falls to half after three times as many; auto: warmup_steps, or 10000 without a warm-up");
}

// sqrt(timescale / (timescale + applied)). With timescale = warmup_steps this is the 1/sqrt(step) of Vaswani
// et al. 2017.
Schedule build_inverse_sqrt(const InverseSqrtOptions& options, const ScheduleContext& /*context*/) {
  constexpr std::int64_t kWithoutWarmup = 10000;
  const std::int64_t by_default = options.warmup_steps > 0 ? options.warmup_steps : kWithoutWarmup;
  const auto timescale = static_cast<double>(options.timescale.value_or(by_default));
  return with_warmup(options.warmup_steps, [timescale](std::int64_t applied) {
    return std::sqrt(timescale / (timescale + static_cast<double>(applied)));
  });
}

struct WsdOptions {
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> total_steps;
  std::optional<std::int64_t> decay_steps;
  std::optional<double> decay_fraction;
  enum class Shape { kLinear, kCosine, kSqrt } shape = Shape::kLinear;
  double final_factor = 0;
};

void describe(recipe::Visitor& v, WsdOptions& o) {
  describe_warmup(v, o.warmup_steps);
  describe_horizon(v, o.total_steps);
  v.integer("decay_steps", o.decay_steps, {1, 1e12}, "steps",
            "length of the decay at the end; auto: by decay_fraction");
  v.number("decay_fraction", o.decay_fraction, {.min = 0, .max = 1, .min_open = true}, "",
           "the same as a share of total_steps; auto: by decay_steps, else 0.1");
  v.one_of("shape", o.shape, {"linear", "cosine", "sqrt"}, "how it decays; sqrt: 1 - sqrt(progress)");
  describe_final_factor(v, o.final_factor);
}

// How many of `total` updates the decay takes, of which `available` are not warm-up.
std::int64_t decay_length(const WsdOptions& o, std::int64_t total, std::int64_t available) {
  constexpr double kShare = 0.1;
  if (o.decay_steps && o.decay_fraction) {
    throw SettingError("lr_scheduler.decay_fraction",
                       concat("is ", shortest(*o.decay_fraction), " and lr_scheduler.decay_steps is ",
                              *o.decay_steps, "; expected one of the two"));
  }
  const double share = o.decay_fraction.value_or(kShare) * static_cast<double>(total);
  const std::int64_t length = o.decay_steps.value_or(std::max<std::int64_t>(std::llround(share), 1));
  if (length <= available) return length;
  if (!o.decay_steps && !o.decay_fraction) return available;
  throw SettingError(o.decay_steps ? "lr_scheduler.decay_steps" : "lr_scheduler.decay_fraction",
                     concat("asks for a decay of ", length, " steps, and of ", total, " steps ",
                            o.warmup_steps, " are warm-up; expected at most ", available));
}

// Source: Hu et al. 2024, "MiniCPM" (warm-up, stable, decay); the shape sqrt: Haegele et al. 2024.
Schedule build_wsd(const WsdOptions& options, const ScheduleContext& context) {
  const std::int64_t total = horizon(options.total_steps, context);
  const std::int64_t available = std::max<std::int64_t>(total - options.warmup_steps, 1);
  const std::int64_t length = decay_length(options, total, available);
  double (*shape)(double) = options.shape == WsdOptions::Shape::kLinear   ? falling_line
                            : options.shape == WsdOptions::Shape::kCosine ? falling_cosine
                                                                          : falling_sqrt;
  const double last = options.final_factor;
  return with_warmup(options.warmup_steps, [=](std::int64_t applied) {
    const auto into_decay = static_cast<double>(applied - (available - length));
    const double progress = std::clamp(into_decay / static_cast<double>(length), 0.0, 1.0);
    return last + (1 - last) * shape(progress);
  });
}

struct OneCycleOptions {
  std::optional<std::int64_t> total_steps;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
};

void describe(recipe::Visitor& v, OneCycleOptions& o) {
  v.integer("total_steps", o.total_steps, {1, 1e12}, "steps",
            "length of the cycle; auto: the smallest step limit of the recipe");
  v.number("pct_start", o.pct_start, {.min = 0, .max = 1, .max_open = true}, "",
           "share of the cycle that rises");
  v.number("div_factor", o.div_factor, {1, 1e9}, "", "the first learning rate is the peak divided by this");
  v.number("final_div_factor", o.final_div_factor, {1, 1e9}, "",
           "the last learning rate is the first one divided by this");
}

// Source: Smith & Topin 2018; two phases along half a cosine each and counted as in PyTorch's OneCycleLR, in
// which update number pct_start * total_steps has the peak and the last one the lowest value.
Schedule build_one_cycle(const OneCycleOptions& options, const ScheduleContext& context) {
  const auto total = static_cast<double>(horizon(options.total_steps, context));
  const double top = options.pct_start * total - 1;
  const double first = 1 / options.div_factor;
  const double last = first / options.final_div_factor;
  return [=](std::int64_t applied) {
    const auto at = static_cast<double>(applied);
    if (at < top) return 1 - (1 - first) * falling_cosine(at / top);
    // Where there is no rise the first update has the peak.
    const double begin = std::max(top, 0.0);
    const double left = std::max(total - 1 - begin, 1e-9);  // above 0 in a cycle of one update, too
    const double progress = std::min((at - begin) / left, 1.0);
    return last + (1 - last) * falling_cosine(progress);
  };
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
    throw SettingError("lr_scheduler.every",
                       "is a time; expected steps (500) or epochs (30ep), so that the learning rate does not "
                       "depend on the speed of the machine");
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
ScheduleComponent polynomial() {
  return recipe::component("polynomial", "falls as a power of what is left of the way", build_polynomial);
}
ScheduleComponent inverse_sqrt() {
  return recipe::component("inverse_sqrt", "falls as the inverse root of the steps", build_inverse_sqrt);
}
ScheduleComponent wsd() {
  return recipe::component("wsd", "warm-up, a stable stretch at the peak, and a decay at the end", build_wsd);
}
ScheduleComponent one_cycle() {
  return recipe::component("one_cycle", "rises to the peak and falls far below its beginning",
                           build_one_cycle);
}

}  // namespace gputrain::optim
