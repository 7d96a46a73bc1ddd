// Any bytes as a safetensors file: loaded, or refused with an Error, and nothing else.

#include "base/error.h"
#include "state/safetensors.h"

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace gputrain;

// The last byte says how many bytes of data stand behind the header.
void parse_as_header(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto data_bytes = static_cast<unsigned char>(bytes.back());
  try {
    std::uint64_t covered = 0;
    for (const state::TensorEntry& entry :
         state::parse_safetensors_header(bytes.substr(0, bytes.size() - 1), data_bytes, "fuzz").entries) {
      if (entry.begin != covered) std::abort();
      covered = entry.end;
    }
    if (covered != data_bytes) std::abort();
  } catch (const Error&) {
  }
}

void load_as_file(std::string_view bytes) {
  const int descriptor = ::memfd_create("fuzz", 0);
  if (descriptor < 0) std::abort();
  if (::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  try {
    state::load_safetensors("/proc/self/fd/" + std::to_string(descriptor));
  } catch (const Error&) {
  }
  ::close(descriptor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  parse_as_header(bytes);
  load_as_file(bytes);
  return 0;
}
