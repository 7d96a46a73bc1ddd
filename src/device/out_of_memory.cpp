#include "base/text.h"
#include "base/units.h"
#include "device/cuda_facts.h"
#include "device/machine.h"
#include "device/memory.h"
#include "device/memory_source.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <string>

namespace gputrain::device {
namespace {

// How errors of the general kind say it: LibTorch's CPU allocator, the CUDA runtime, cuBLAS, cuDNN.
constexpr std::array kMarks = {"DefaultCPUAllocator: can't allocate memory", "CUDA error: out of memory",
                               "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"};

// The size that follows `before` in LibTorch's text: "Tried to allocate 13.00 GiB.", "allocate 4096 bytes."
std::string size_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t from = at + before.size();
  const std::size_t space = text.find(' ', from);
  if (space == std::string::npos) return "";
  return text.substr(from, text.find_first_of(" .,\n", space + 1) - from);
}

std::string asked_for(const std::string& text) {
  const std::string bytes = size_after(text, "you tried to allocate ");
  const bool plain = bytes.size() > 6 && bytes.compare(bytes.size() - 6, 6, " bytes") == 0;
  if (plain) return format_bytes(std::strtoll(bytes.c_str(), nullptr, 10));
  return size_after(text, "Tried to allocate ");
}

std::string free_text(at::Device device) {
  if (device.is_cpu()) {
    const MachineMemory memory = machine_memory();
    return concat(format_bytes(memory.available), " of ", format_bytes(memory.total), " are free");
  }
  const std::optional<Capacity> memory = query_gpu_memory(device.index());
  if (!memory) return "free memory is unknown";
  return concat(format_bytes(memory->free), " of ", format_bytes(memory->total), " are free");
}

}  // namespace

std::string plain_text(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  const std::string text = error.what();
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const char* mark) { return text.find(mark) != std::string::npos; });
}

std::string describe_out_of_memory(const std::exception& error, at::Device device) {
  const std::string found = plain_text(error);
  const bool on_host = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                       found.find("DefaultCPUAllocator") != std::string::npos;
  const at::Device where = on_host ? at::Device(at::kCPU) : device;
  const std::string asked = asked_for(found);
  const AllocatorCounts counts = memory_source(where)->counts();
  std::string text = concat("out of memory on ", where.str(), ": ");
  if (!asked.empty()) text += concat(asked, " were asked for, ");
  text += free_text(where);
  if (counts.allocated) text += concat("; tensors hold ", format_bytes(*counts.allocated));
  if (counts.reserved) text += concat(", the allocator has reserved ", format_bytes(*counts.reserved));
  return text;
}

}  // namespace gputrain::device
