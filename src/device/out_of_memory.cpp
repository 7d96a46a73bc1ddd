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

// The same, with a number of bytes in a unit that people read.
std::string readable_size_after(const std::string& text, const std::string& before) {
  const std::string size = size_after(text, before);
  const bool plain = size.size() > 6 && size.compare(size.size() - 6, 6, " bytes") == 0;
  return plain ? format_bytes(std::strtoll(size.c_str(), nullptr, 10)) : size;
}

std::string asked_for(const std::string& text) {
  const std::string bytes = readable_size_after(text, "you tried to allocate ");
  return !bytes.empty() ? bytes : readable_size_after(text, "Tried to allocate ");
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

// The size that stands before `after` in LibTorch's text: "4.50 GiB allowed; ".
std::string size_before(const std::string& text, const std::string& after) {
  const std::size_t end = text.find(after);
  if (end == std::string::npos || end == 0) return "";
  const std::size_t space = text.rfind(' ', end - 1);
  if (space == std::string::npos || space == 0) return "";
  const std::size_t begin = text.rfind(' ', space - 1);
  return begin == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

// "memory.limit is 2.0 GiB, which leaves 1.20 GiB to tensors": the rest is what the process holds beside
// them.
std::string limit_text(std::int64_t limit, const std::string& found) {
  const std::string on_cpu = readable_size_after(found, "memory.limit leaves ");
  const std::string left = on_cpu.empty() ? size_before(found, " allowed;") : on_cpu;
  return concat("memory.limit is ", format_bytes(limit),
                left.empty() ? "" : concat(", which leaves ", left, " to tensors"));
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

std::string describe_out_of_memory(const std::exception& error, at::Device device,
                                   std::optional<std::int64_t> limit) {
  const std::string found = plain_text(error);
  const bool on_host = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                       found.find("DefaultCPUAllocator") != std::string::npos;
  const at::Device where = on_host ? at::Device(at::kCPU) : device;
  const std::string asked = asked_for(found);
  const AllocatorCounts counts = memory_source(where)->counts();
  std::string text = concat("out of memory on ", where.str(), ": ");
  if (!asked.empty()) text += concat(asked, " were asked for, ");
  text += limit && where == device ? limit_text(*limit, found) : free_text(where);
  // Since it failed, what the step had made has been freed.
  const std::string held = readable_size_after(found, "Of the allocated memory ");
  if (!held.empty()) {
    text += concat("; tensors held ", held);
  } else if (counts.allocated) {
    text += concat("; tensors hold ", format_bytes(*counts.allocated));
  }
  if (counts.reserved) text += concat(", the allocator has reserved ", format_bytes(*counts.reserved));
  return text;
}

}  // namespace gputrain::device
