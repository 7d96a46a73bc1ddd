#include "recipe/catalogue.h"

#include "support/catch.h"

#include <algorithm>

using namespace gputrain::recipe;

namespace {

Catalogue with_kinds() {
  Catalogue catalogue = recipe_catalogue();
  Key lr;
  lr.path = "optimizer.lr";
  catalogue.kinds["optimizer"] = {{"sgd", "", {lr}}, {"adamw", "", {lr}}, {"testing.none", "", {lr}}};
  return catalogue;
}

}  // namespace

TEST_CASE("catalogue: kinds for tests are found and not shown", "[recipe]") {
  const Catalogue catalogue = with_kinds();
  CHECK(catalogue.find_kind("optimizer", "testing.none") != nullptr);
  CHECK(catalogue.shown_kinds("optimizer").size() == 2);
  CHECK(catalogue.shown_kinds("no such component").empty());
  for (const KnownKey& known : catalogue.known()) CHECK(known.kind != "testing.none");
}

TEST_CASE("catalogue: a component's name is one of its kinds", "[recipe]") {
  const Key name = with_kinds().name_key("optimizer");
  CHECK(name.path == "optimizer.name");
  CHECK(name.value == "sgd");
  CHECK(name.meaning == "kind of optimizer");
  CHECK(type_text(name) == "sgd or adamw");
}
