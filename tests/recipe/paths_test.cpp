#include "recipe/paths.h"

#include "support/catch.h"

using namespace gputrain::recipe;

TEST_CASE("paths: a path is split at its last dot, and joined again", "[recipe]") {
  CHECK(split_path("a.b.c") == std::pair<std::string, std::string>("a.b", "c"));
  CHECK(split_path("seed") == std::pair<std::string, std::string>("", "seed"));
  CHECK(last_part("logging.log_every") == "log_every");
  CHECK(join_path("a.b", "c") == "a.b.c");
  CHECK(join_path("", "seed") == "seed");
}

TEST_CASE("paths: words with dots between them", "[recipe]") {
  for (const char* path : {"seed", "a.b", "micro-batch_size", "betas2"}) CHECK(is_path(path));
  for (const char* path : {"", ".", "a.", ".a", "a..b", "a b", "a=b"}) CHECK_FALSE(is_path(path));
}

TEST_CASE("paths: what is meant has the same last part, else is similar", "[recipe]") {
  const std::vector<std::string> paths{"seed", "optimizer", "optimizer.lr", "optimizer.momentum"};
  CHECK(nearest_path(paths, "lr") == "optimizer.lr");
  CHECK(nearest_path(paths, "sed") == "seed");
  CHECK(nearest_path(paths, "momentm") == "optimizer.momentum");
  CHECK(nearest_path(paths, "zzz").empty());
}
