#include "base/error.h"
#include "device/graph.h"

namespace gputrain::device {

struct GraphParts {};

Graph::Graph(c10::Device, const Graph*) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::capture(const std::function<void()>&) {
  throw Error(ExitCode::kUsage, "this gputrain was built without CUDA and has no graphs of a GPU");
}

void Graph::replay() {}

std::int64_t Graph::temporary_bytes() const {
  return 0;
}

bool is_recording(c10::Device) {
  return false;
}

}  // namespace gputrain::device
