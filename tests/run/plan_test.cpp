#include "run/plan.h"

#include "support/catch.h"
#include "support/paths.h"

#include <chrono>

using namespace gputrain;

TEST_CASE("plan: reading and checking a recipe takes less than a tenth of a second", "[run]") {
  const auto start = std::chrono::steady_clock::now();
  const run::Plan plan = run::read_plan(testing::source_path() + "/configs/fashion-adamw.yaml", {"seed=2"});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(plan.problems.empty());
  CHECK(seconds < 0.1);
}

TEST_CASE("plan: how it is logged and where it runs do not make another run, what is trained does", "[run]") {
  const std::string recipe = testing::source_path() + "/configs/quickstart.yaml";
  const std::string identity = run::read_plan(recipe, {}).identity();
  CHECK(run::read_plan(recipe, {"name=x", "output_dir=y", "device=cpu", "logging.csv=true", "cpu.threads=1"})
            .identity() == identity);
  CHECK(run::read_plan(recipe, {"optimizer.lr=0.02"}).identity() != identity);
  CHECK(run::read_plan(recipe, {"seed=2"}).identity() != identity);
}
