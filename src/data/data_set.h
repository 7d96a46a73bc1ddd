#pragma once

#include "nn/batch.h"
#include "recipe/component.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::data {

// The training or the validation samples of a data set, numbered 0 .. size() - 1. Never empty.
// A sample has any number of targets, also none.
class Split {
 public:
  virtual ~Split() = default;

  virtual std::int64_t size() const = 0;

  // The samples of these numbers, in this order, on the device of the DataContext; numbers may repeat.
  // Images: input float32 [ids, C, H, W], in the memory order of the DataContext; target int64 [ids].
  // Sequences: input int64 [ids, positions]; target int64 [ids, positions].
  // Throws std::out_of_range for a number outside the split. On a GPU nothing waits for the device: the work
  // is queued on the current stream.
  virtual nn::Batch batch(const std::vector<std::int64_t>& sample_ids) = 0;

  // How many targets of these samples enter the loss: those that are not the data set's ignore_index. Host
  // only, so that a window's count is known before its first backward pass.
  virtual std::int64_t targets(const std::vector<std::int64_t>& sample_ids) const = 0;

  // Tensors that it keeps for its batches in the memory of the device, for the account of memory.
  virtual std::vector<at::Tensor> held() const { return {}; }
};

struct DataSet {
  std::vector<std::int64_t> sample_shape;  // images: channels, height, width; sequences of tokens: positions
  std::int64_t num_classes = 0;            // labels, and tokens, are 0 .. num_classes - 1
  // Targets of this value are none: no loss, no metric, not counted. Absent: every target is one.
  std::optional<std::int64_t> ignore_index;
  std::string unit = "img";  // of throughput: img, tok, frame
  std::unique_ptr<Split> train;
  std::unique_ptr<Split> validation;  // null: the recipe names none
  std::vector<std::string> notices;  // what the user should know once: values found for `auto` and their like
};

struct DataContext {
  c10::Device device;         // where batches are made
  std::uint64_t seed;         // the recipe's; each use derives its own
  bool channels_last = true;  // memory order of the batches
};

using DataComponent = recipe::Component<DataSet, const DataContext&>;

// Throws Error(kData) when no sample of a split has a target: no window could ever be applied, no mean taken.
void check_targets(const DataSet& set);

// Every kind of data set a recipe can name under `data`. Names that begin with `testing.` are seams for tests
// and left out of lists for users. Building one throws Error(kData) with the file, what was found and what is
// expected.
const std::vector<DataComponent>& all_data_sets();

}  // namespace gputrain::data
