#pragma once

#include "data/data_set.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

namespace gputrain::data {

// What turns a byte of an image into what the model reads: byte * scale + shift, per channel.
struct Normalisation {
  std::vector<float> scale;
  std::vector<float> shift;
};

// Maps a byte b to (b / 255 - mean) / std. mean, std: one value per channel; std above 0.
Normalisation normalisation(const std::vector<double>& mean, const std::vector<double>& std);

// A split whose images all lie in the memory of the device as bytes; a batch is picked and normalised by one
// kernel, and only the ids travel to the device.
class ImageStore : public Split {
 public:
  // images: uint8 [stored, height, width, channels], contiguous. labels: uint8 or int64 [stored], contiguous.
  // Both on one device. Sample i shows image i % stored; `samples` is at least 1, and so is stored.
  // channels_last: memory order of the batches.
  ImageStore(at::Tensor images, at::Tensor labels, const Normalisation& normalisation, std::int64_t samples,
             bool channels_last = true);

  std::int64_t size() const override { return samples_; }
  nn::Batch batch(const std::vector<std::int64_t>& sample_ids) override;
  std::int64_t targets(const std::vector<std::int64_t>& sample_ids) const override;
  std::vector<at::Tensor> held() const override { return {images_, labels_, scale_, shift_}; }

 private:
  at::Tensor image_ids(const std::vector<std::int64_t>& sample_ids) const;

  at::Tensor images_;
  at::Tensor labels_;
  at::Tensor scale_;  // float32 [channels]
  at::Tensor shift_;  // float32 [channels]
  std::int64_t samples_;
  bool channels_last_;
};

}  // namespace gputrain::data
