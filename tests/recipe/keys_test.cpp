#include "recipe/keys.h"

#include "recipe/recipe.h"
#include "support/catch.h"

#include <algorithm>

using namespace gputrain::recipe;

namespace {

const std::vector<Key>& recipe_keys() {
  static const std::vector<Key> all = keys([](Visitor& v) {
    static Recipe defaults;
    describe(v, defaults);
  });
  return all;
}

struct Item {
  std::vector<std::string> match = {"a: b", "*"};
  std::optional<double> scale;
};

void describe(Visitor& v, Item& o) {
  v.texts("match", o.match, "which");
  v.number("scale", o.scale, Range{0, 1}, "", "how much");
}

const Key& key(const std::string& path) {
  const auto& all = recipe_keys();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Key& one) { return one.path == path; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("keys: each has its path, default and unit", "[recipe]") {
  CHECK(key("logging.log_every").value == "10");
  CHECK(key("logging.log_every").unit == "steps");
  CHECK(key("validation.every").value == "1ep");
  CHECK(key("optimizer").value == "sgd");
  CHECK(key("max_time").value == "~");
  CHECK(key("cpu").type == Key::Type::kSection);
}

TEST_CASE("keys: what may be written is told in words", "[recipe]") {
  CHECK(type_text(key("seed")) == "integer, seed >= 0");
  CHECK(type_text(key("max_grad_norm")) == "number, max_grad_norm > 0, or ~");
  CHECK(type_text(key("micro_batch_size")) == "integer, 1 <= micro_batch_size <= 1000000000, or auto");
  CHECK(type_text(key("logging.csv")) == "true or false");
  CHECK(type_text(key("logging.progress")) == "true or false, or auto");
  CHECK(type_text(key("device")) == "cpu, cuda or cuda:N, or auto");
  CHECK(type_text(key("precision")) == "auto, fp32, tf32, fp16-mixed, bf16-mixed, fp16-true or bf16-true");
  CHECK(type_text(key("max_time")) == "duration, as in 90s, 30min or 2h, or ~");
  CHECK(type_text(key("memory.limit")) == "bytes, as in 500MB or 11.5GiB, or ~");
  CHECK(type_text(key("model")) == "map with a name");
}

TEST_CASE("keys: a list of maps has a value, and the keys of its items", "[recipe]") {
  std::vector<Item> items(2);
  items[1] = {{}, 0.5};
  const std::vector<Key> all = keys([&](Visitor& v) { v.maps("items", items, "things"); }, "optimizer");
  REQUIRE(all.size() == 1);
  CHECK(all[0].path == "optimizer.items");
  CHECK(all[0].type == Key::Type::kMaps);
  CHECK(all[0].value == R"([{match: ["a: b", "*"], scale: auto}, {match: [], scale: 0.5}])");
  CHECK(type_text(all[0]) == "list of maps");
  REQUIRE(all[0].item_keys.size() == 2);
  CHECK(all[0].item_keys[0].path == "match");
  CHECK(all[0].item_keys[0].value == R"(["a: b", "*"])");
  CHECK(type_text(all[0].item_keys[0]) == "text or list of texts");
  CHECK(type_text(all[0].item_keys[1]) == "number, 0 <= scale <= 1, or auto");
}

TEST_CASE("keys: every key says what it means", "[recipe]") {
  for (const Key& one : recipe_keys()) {
    CAPTURE(one.path);
    CHECK(!one.meaning.empty());
  }
}
