#pragma once

// ATen defines a CHECK of its own; where LibTorch is in sight it has to come, and go, before Catch2's.
#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#undef CHECK
#endif

// One include for Catch2 2.13 (Debian 12, Ubuntu 22.04) and 3 (Debian 13, Ubuntu 24.04).
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif

#include <cstdio>

// Reports the running case as skipped, never as passed: CTest recognises the line. Catch2 2.13 has no SKIP.
#ifdef SKIP
#define GPUTRAIN_END_CASE(why) SKIP(why)
#else
#define GPUTRAIN_END_CASE(why) return
#endif
#define GPUTRAIN_SKIP(why)                           \
  do {                                               \
    std::printf("gputrain-test-skipped: %s\n", why); \
    std::fflush(stdout);                             \
    GPUTRAIN_END_CASE(why);                          \
  } while (false)
