#include "base/error.h"
#include "base/text.h"
#include "objectives/components.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/topk.h>

#include <algorithm>

namespace gputrain::objectives {
namespace {

constexpr std::int64_t kTopK = 5;

constexpr std::int64_t kDefaultIgnoreIndex = -100;

struct CrossEntropyOptions {
  double label_smoothing = 0;
  std::int64_t ignore_index = kDefaultIgnoreIndex;
};

void describe(recipe::Visitor& v, CrossEntropyOptions& o) {
  v.number("label_smoothing", o.label_smoothing, {.min = 0, .max = 1, .max_open = true}, "",
           "share of each target spread evenly over all classes");
  v.integer("ignore_index", o.ignore_index, {-1e9, 1e9}, "",
            "targets of this value enter neither loss nor metrics; inactive with data that marks none so, as "
            "images");
}

// Targets are counted by the data set, on the host, before anything is computed; what they are summed over
// must be the same ones.
void check_ignore_index(std::int64_t ignore_index, const ObjectiveContext& context) {
  if (context.ignore_index && *context.ignore_index != ignore_index) {
    throw SettingError("objective.ignore_index",
                       concat("is ", ignore_index, ", the data marks targets to be ignored by ",
                              *context.ignore_index, "; expected ", *context.ignore_index));
  }
  if (!context.ignore_index && ignore_index >= 0 && ignore_index < context.num_classes) {
    throw SettingError("objective.ignore_index",
                       concat("is ", ignore_index, ", which is one of the data's ", context.num_classes,
                              " classes, and the data counts its samples as targets; expected a value that "
                              "is no class, as ",
                              kDefaultIgnoreIndex));
  }
}

// Source: Szegedy et al. 2016, section 7, for label smoothing; as PyTorch's cross_entropy with reduction
// "sum". output: logits [batch, classes], or one row per position [batch, positions, classes], classes last
// in either; target: class numbers, or ignore_index, int64, of output's shape without the classes.
class CrossEntropy : public Objective {
 public:
  CrossEntropy(const CrossEntropyOptions& options, const ObjectiveContext& context)
      : label_smoothing_(options.label_smoothing),
        ignore_index_(options.ignore_index),
        is_ignoring_(context.ignore_index),
        metrics_{"accuracy"} {
    check_ignore_index(ignore_index_, context);
    if (context.num_classes > kTopK) metrics_.emplace_back("top5");
  }

  at::Tensor loss_sum(const at::Tensor& output, const at::Tensor& target) const override {
    return at::cross_entropy_loss(rows(output), target.flatten(), /*weight=*/{}, at::Reduction::Sum,
                                  ignore_index_, label_smoothing_);
  }

  at::Tensor metric_sums(const at::Tensor& output, const at::Tensor& target) const override {
    const bool with_top5 = metrics_.size() > 1;
    const at::Tensor label = target.flatten().unsqueeze(1);  // [rows, 1]
    const at::Tensor best =
        std::get<1>(at::topk(rows(output), with_top5 ? kTopK : 1, /*dim=*/1));  // [rows, k]
    const at::Tensor hits = best.eq(label).logical_and(label.ne(ignore_index_)).to(at::kFloat).sum(0);  // [k]
    if (!with_top5) return hits;
    return at::cat({hits.slice(0, 0, 1), hits.sum().unsqueeze(0)});
  }

  const std::vector<std::string>& metrics() const override { return metrics_; }

  std::vector<std::string> inactive() const override {
    if (is_ignoring_ || ignore_index_ == kDefaultIgnoreIndex) return {};
    return {"ignore_index (this data marks no targets to be ignored)"};
  }

 private:
  static at::Tensor rows(const at::Tensor& output) { return output.flatten(0, -2); }

  double label_smoothing_;
  std::int64_t ignore_index_;
  bool is_ignoring_;  // the data
  std::vector<std::string> metrics_;
};

std::unique_ptr<Objective> build(const CrossEntropyOptions& options, const ObjectiveContext& context) {
  return std::make_unique<CrossEntropy>(options, context);
}

}  // namespace

ObjectiveComponent cross_entropy() {
  return recipe::component("cross_entropy", "classification: negative log-likelihood of the right class",
                           build);
}

}  // namespace gputrain::objectives
