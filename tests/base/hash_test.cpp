#include "base/hash.h"

#include "support/catch.h"

#include <set>

using namespace gputrain;

TEST_CASE("hash: FNV-1a gives the published values", "[base]") {
  CHECK(hash_bytes("") == 0xcbf29ce484222325U);
  CHECK(hash_bytes("a") == 0xaf63dc4c8601ec8cU);
  CHECK(hash_bytes("foobar") == 0x85944171f73967e8U);
  CHECK(hash_bytes("bar", hash_bytes("foo")) == hash_bytes("foobar"));
}

TEST_CASE("hash: splitmix64 gives the published values", "[base]") {
  CHECK(splitmix64(0) == 0xe220a8397b1dcdafU);
  CHECK(splitmix64(0x9e3779b97f4a7c15U) == 0x6e789e6aa1b965f4U);
}

TEST_CASE("hash: mix tells apart neighbouring and exchanged numbers", "[base]") {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t a = 0; a < 64; ++a) {
    for (std::uint64_t b = 0; b < 64; ++b) seeds.insert(mix(a, b));
  }
  CHECK(seeds.size() == 64 * 64);
  CHECK(mix(1, 2) != mix(2, 1));
}
