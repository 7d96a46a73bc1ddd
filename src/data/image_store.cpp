#include "data/image_store.h"

#include "data/sample_id.h"
#include "device/current_stream.h"
#include "kernels/image_batch.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <utility>

namespace gputrain::data {
namespace {

at::Tensor to_device(const std::vector<float>& values, at::Device device) {
  at::Tensor host = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<float>());
  return host.to(device);
}

template <class Label>
void gather_labels(const at::Tensor& labels, const at::Tensor& ids, at::Tensor& out) {
  const Label* from = labels.const_data_ptr<Label>();
  const auto* picked = ids.const_data_ptr<std::int64_t>();
  auto* to = out.mutable_data_ptr<std::int64_t>();
  if (ids.is_cuda()) {
    kernels::gather_labels_cuda(from, picked, ids.numel(), to, device::current_stream(ids.device()));
  } else {
    kernels::gather_labels_cpu(from, picked, ids.numel(), to);
  }
}

void gather_images(const kernels::ImageGather& gather, at::Device device) {
  if (device.is_cuda()) {
    kernels::gather_images_cuda(gather, device::current_stream(device));
  } else {
    kernels::gather_images_cpu(gather);
  }
}

}  // namespace

Normalisation normalisation(const std::vector<double>& mean, const std::vector<double>& std) {
  Normalisation result;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    result.scale.push_back(static_cast<float>(1 / (255 * std[c])));
    result.shift.push_back(static_cast<float>(-mean[c] / std[c]));
  }
  return result;
}

ImageStore::ImageStore(at::Tensor images, at::Tensor labels, const Normalisation& normalisation,
                       std::int64_t samples, bool channels_last)
    : images_(std::move(images)),
      labels_(std::move(labels)),
      scale_(to_device(normalisation.scale, images_.device())),
      shift_(to_device(normalisation.shift, images_.device())),
      samples_(samples),
      channels_last_(channels_last) {}

nn::Batch ImageStore::batch(const std::vector<std::int64_t>& sample_ids) {
  const c10::DeviceGuard guard(images_.device());
  const auto count = static_cast<std::int64_t>(sample_ids.size());
  const std::int64_t height = images_.size(1);
  const std::int64_t width = images_.size(2);
  const std::int64_t channels = images_.size(3);
  const at::Tensor ids = image_ids(sample_ids);  // [count], int64, on the device

  nn::Batch batch;
  batch.input = at::empty({count, channels, height, width}, images_.options().dtype(at::kFloat),
                          at::MemoryFormat::ChannelsLast);
  batch.target = at::empty({count}, ids.options());
  batch.sample_ids = sample_ids;
  batch.targets = count;

  kernels::ImageGather gather;
  gather.images = images_.const_data_ptr<std::uint8_t>();
  gather.ids = ids.const_data_ptr<std::int64_t>();
  gather.scale = scale_.const_data_ptr<float>();
  gather.shift = shift_.const_data_ptr<float>();
  gather.out = batch.input.mutable_data_ptr<float>();
  gather.count = count;
  gather.pixels = height * width;
  gather.channels = channels;
  gather_images(gather, images_.device());
  if (!channels_last_) batch.input = batch.input.contiguous();
  if (labels_.scalar_type() == at::kByte) {
    gather_labels<std::uint8_t>(labels_, ids, batch.target);
  } else {
    gather_labels<std::int64_t>(labels_, ids, batch.target);
  }
  return batch;
}

std::int64_t ImageStore::targets(const std::vector<std::int64_t>& sample_ids) const {
  return static_cast<std::int64_t>(sample_ids.size());
}

// The pinned buffer comes from LibTorch's caching host allocator, which hands it out again only after the
// copy that reads it has ended.
at::Tensor ImageStore::image_ids(const std::vector<std::int64_t>& sample_ids) const {
  const bool pinned = images_.is_cuda();
  at::Tensor ids = at::empty({static_cast<std::int64_t>(sample_ids.size())},
                             at::TensorOptions(at::kLong).pinned_memory(pinned));
  auto* to = ids.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t id : sample_ids) {
    check_sample_id(id, samples_);
    *to++ = id % images_.size(0);
  }
  return ids.to(images_.device(), /*non_blocking=*/true);
}

}  // namespace gputrain::data
