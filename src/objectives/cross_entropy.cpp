#include "objectives/components.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/topk.h>

#include <algorithm>

namespace gputrain::objectives {
namespace {

constexpr std::int64_t kTopK = 5;

struct CrossEntropyOptions {
  double label_smoothing = 0;
};

void describe(recipe::Visitor& v, CrossEntropyOptions& o) {
  v.number("label_smoothing", o.label_smoothing, {.min = 0, .max = 1, .max_open = true}, "",
           "share of each target spread evenly over all classes");
}

// Source: Szegedy et al. 2016, section 7, for label smoothing; as PyTorch's cross_entropy.
// output: logits [batch, classes]; target: class numbers [batch], int64.
class CrossEntropy : public Objective {
 public:
  CrossEntropy(const CrossEntropyOptions& options, const ObjectiveContext& context)
      : label_smoothing_(options.label_smoothing), metrics_{"accuracy"} {
    if (context.num_classes > kTopK) metrics_.emplace_back("top5");
  }

  at::Tensor loss_sum(const at::Tensor& output, const at::Tensor& target) const override {
    return at::cross_entropy_loss(output, target, /*weight=*/{}, at::Reduction::Sum, /*ignore_index=*/-100,
                                  label_smoothing_);
  }

  at::Tensor metric_sums(const at::Tensor& output, const at::Tensor& target) const override {
    const bool with_top5 = metrics_.size() > 1;
    const at::Tensor best = std::get<1>(at::topk(output, with_top5 ? kTopK : 1, /*dim=*/1));  // [batch, k]
    const at::Tensor hits = best.eq(target.unsqueeze(1)).to(at::kFloat).sum(0);               // [k]
    if (!with_top5) return hits;
    return at::cat({hits.slice(0, 0, 1), hits.sum().unsqueeze(0)});
  }

  const std::vector<std::string>& metrics() const override { return metrics_; }

 private:
  double label_smoothing_;
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
