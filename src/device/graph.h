#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace gputrain::device {

struct GraphParts;

// Work of a GPU that was recorded once and is given to it again in one call (CUDA graph). Every address is
// recorded: what the work reads and writes must stay where it is, and tensors that it makes and somebody
// holds are written anew by each replay. Host code of the work runs once, at the recording.
// Source: CUDA programming guide, CUDA graphs; at::cuda::CUDAGraph.
class Graph {
 public:
  // `sharing`: a graph whose memory this one may use, too: for graphs of which one runs at a time and whose
  // temporary values do not outlive their run. May be null.
  explicit Graph(c10::Device device, const Graph* sharing = nullptr);
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // Runs `work` on a stream of its own so that the device records it and does not do it. Everything that it
  // needs (cuDNN, random generators, cached choices) has to have been used before. Waits for the device,
  // gives cached memory back to it first, and resets the allocator's peaks. Throws what `work` throws, and
  // c10::Error for what cannot be recorded; the device is as before then. Throws Error(kUsage) in a build
  // without CUDA.
  void capture(const std::function<void()>& work);

  // Queues the work on the current stream, with the random generators as they are now.
  void replay();

  // What the work takes while it runs beyond what is held afterwards. The allocator does not count it.
  std::int64_t temporary_bytes() const;

 private:
  std::unique_ptr<GraphParts> parts_;
};

// What this thread gives to `device` now is recorded (Graph::capture) and not done.
bool is_recording(c10::Device device);

}  // namespace gputrain::device
