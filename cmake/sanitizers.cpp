// What the sanitizers are told; part of every program that is built with them (GPUTRAIN_SANITIZE).

// Memory that cannot be had is an exception here too: out-of-memory is among what is tested.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
