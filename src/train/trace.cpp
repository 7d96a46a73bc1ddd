#include "train/trace.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "device/generators.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <sstream>

namespace gputrain::train {
namespace {

std::string hex(std::uint64_t hash) {
  std::ostringstream out;
  out << std::hex << hash;
  return out.str();
}

}  // namespace

std::uint64_t hash_tensors(const nn::NamedTensors& tensors) {
  std::uint64_t hash = hash_bytes("");
  for (const auto& [name, value] : tensors) {
    const at::Tensor values = value.detach().cpu().contiguous();
    hash = hash_bytes(name, hash);
    for (const std::int64_t extent : values.sizes()) hash = mix(hash, static_cast<std::uint64_t>(extent));
    hash = mix(hash, static_cast<std::uint64_t>(values.scalar_type()));
    hash = hash_bytes({static_cast<const char*>(values.const_data_ptr()), values.nbytes()}, hash);
  }
  return hash;
}

Trace::Trace(const std::filesystem::path& path) : path_(path), out_(path) {
  write("");
}

void Trace::micro_batch(const data::Window& window, std::int64_t window_number, std::size_t micro,
                        const nn::Batch& batch) {
  const bool channels_last = batch.input.is_contiguous(at::MemoryFormat::ChannelsLast);
  write(nlohmann::json{{"kind", "micro_batch"},
                       {"window", window_number},
                       {"micro", micro},
                       {"epoch", window.epoch},
                       {"sample_ids", batch.sample_ids},
                       {"targets", batch.targets},
                       {"channels_last", channels_last}}
            .dump() +
        "\n");
}

void Trace::update(const StepRecord& record, const nn::NamedTensors& parameters,
                   const nn::NamedTensors& buffers, at::Device device) {
  const std::vector<std::uint8_t> generators = device::generator_state(device);
  const std::string_view bytes(reinterpret_cast<const char*>(generators.data()), generators.size());
  write(nlohmann::json{
            {"kind", "update"},
            {"window", record.window},
            {"step", record.step},
            {"samples_total", record.samples_total},
            {"learning_rate", record.learning_rate},
            {"skipped", record.skipped},
            {"loss_scale", record.loss_scale ? nlohmann::json(*record.loss_scale) : nlohmann::json()},
            {"grad_norm", record.grad_norm},
            {"loss_sum", record.loss * static_cast<double>(record.targets)},
            {"targets", record.targets},
            {"parameters", hex(hash_tensors(parameters))},
            {"buffers", hex(hash_tensors(buffers))},
            {"generators", hex(hash_bytes(bytes))}}
            .dump() +
        "\n");
}

void Trace::write(const std::string& line) {
  out_ << line << std::flush;
  if (!out_) {
    throw Error(ExitCode::kFileSystem,
                concat(path_.string(), ": the trace cannot be written: ", std::strerror(errno)));
  }
}

}  // namespace gputrain::train
