#include "data/faulty_split.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/text.h"

#include <utility>

namespace gputrain::data {
namespace {

class FaultySplit : public Split {
 public:
  FaultySplit(std::unique_ptr<Split> split, const char* phase) : split_(std::move(split)), phase_(phase) {}

  std::int64_t size() const override { return split_->size(); }
  std::int64_t targets(const std::vector<std::int64_t>& sample_ids) const override {
    return split_->targets(sample_ids);
  }
  std::vector<at::Tensor> held() const override { return split_->held(); }
  nn::Batch batch(const std::vector<std::int64_t>& sample_ids) override {
    for (const std::int64_t id : sample_ids) {
      if (fault_at(FaultKind::kLoad, {.item = id, .phase = phase_}) == nullptr) continue;
      throw Error(ExitCode::kData,
                  concat("sample ", id, " of the ", phase_, " data: cannot be read, as GPUTRAIN_FAULT asks"));
    }
    return split_->batch(sample_ids);
  }

 private:
  std::unique_ptr<Split> split_;
  const char* phase_;
};

}  // namespace

std::unique_ptr<Split> with_faults(std::unique_ptr<Split> split, const char* phase) {
  if (split == nullptr || !asks_for(FaultKind::kLoad)) return split;
  return std::make_unique<FaultySplit>(std::move(split), phase);
}

}  // namespace gputrain::data
