// What the sanitizers are told; part of every program that is built with them (GPUTRAIN_SANITIZE).
namespace {

// Memory that cannot be had is an exception here too: out-of-memory is among what is tested.
constexpr const char* kOptions = "allocator_may_return_null=1";

// libgomp is not built for the thread sanitizer, which does not see its barriers: what one thread of
// LibTorch's and oneDNN's parallel loops wrote before a barrier and another reads after it looks like a race.
constexpr const char* kSuppressions = "race:at::internal::invoke_parallel\nrace:dnnl::\n";

}  // namespace

extern "C" {
const char* __asan_default_options() {
  return kOptions;
}
const char* __tsan_default_options() {
  return kOptions;
}
const char* __tsan_default_suppressions() {
  return kSuppressions;
}
}
