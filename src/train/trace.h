#pragma once

#include "data/order.h"
#include "nn/batch.h"
#include "nn/named_tensors.h"
#include "train/records.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace gputrain::train {

// What `logging.trace` writes, for tests: one JSON line per micro-batch and per update (docs/testing.md lists
// the fields). Hashing copies every parameter to the host, so a traced run is slow.
// Throws Error(kFileSystem) naming the file when it cannot be written.
class Trace {
 public:
  explicit Trace(const std::filesystem::path& path);

  void micro_batch(const data::Window& window, std::int64_t window_number, std::size_t micro,
                   const nn::Batch& batch);
  // `parameters` and `buffers` of the model, after the update.
  void update(const StepRecord& record, const nn::NamedTensors& parameters, const nn::NamedTensors& buffers,
              at::Device device);

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream out_;
};

// Hash of names, shapes, types and values, whatever the device and the order in memory.
std::uint64_t hash_tensors(const nn::NamedTensors& tensors);

}  // namespace gputrain::train
