#pragma once

#include "nn/named_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gputrain::state {

using nn::NamedTensors;
using Metadata = std::map<std::string, std::string>;

// Writes a safetensors file aside and renames it, so that `path` is never half-written.
// Values are written in logical (contiguous) order whatever the strides; tensors on a GPU are copied
// to the host first. In the file, wider element types come first, then names in order, as the
// safetensors package does it, which keeps every tensor aligned.
// Throws Error(kFileSystem): disk, element type without a name in the format, name given twice.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});

struct Safetensors {
  std::map<std::string, at::Tensor> tensors;  // on the CPU, contiguous
  Metadata metadata;
};

// Reads a file written by anyone: every length, offset, shape and type is checked before memory is taken.
// Throws Error(kFileSystem) that names the file and what is wrong with it.
Safetensors load_safetensors(const std::filesystem::path& path);

// One tensor as the header describes it.
struct TensorEntry {
  std::string name;
  at::ScalarType dtype = at::ScalarType::Undefined;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of the data
  Metadata metadata;
};

// Checks a header's JSON against the size of the data behind it; `source` names the file in errors.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& source);

}  // namespace gputrain::state
