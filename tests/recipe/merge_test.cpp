#include "recipe/merge.h"

#include "recipe/read.h"
#include "support/catch.h"

using namespace gputrain::recipe;

namespace {

const ComponentNames kComponents{{"model", ""}, {"optimizer", "sgd"}, {"lr_scheduler", "constant"}};

struct Merged {
  Node root;
  std::vector<std::string> notices;
};

Merged merged(const std::string& base, const std::string& overlay) {
  Merged result{read_text(base, "base.yaml").root, {}};
  merge(result.root, read_text(overlay, "a.yaml").root, kComponents, result.notices);
  return result;
}

// "optimizer" of what was merged: "name=adamw lr=1".
std::string settings(const Merged& result, const std::string& component = "optimizer") {
  std::string text;
  for (const auto& [key, value] : result.root.find(component)->map) {
    text += (text.empty() ? "" : " ") + key.scalar + "=" + value.scalar;
  }
  return text;
}

}  // namespace

TEST_CASE("merge: maps merge key by key, whichever way their keys are spelt", "[recipe]") {
  const Merged result = merged("seed: 1\nlogging: {log-every: 5, csv: true}\n",
                               "logging: {log_every: 7, jsonl: false}\nname: x\n");
  CHECK(result.root.map.size() == 3);
  CHECK(find_path(result.root, "logging")->map.size() == 3);
  CHECK(find_path(result.root, "logging.log_every")->scalar == "7");
  CHECK(find_path(result.root, "logging.csv")->scalar == "true");
  CHECK(origin_of(result.root, "logging.log_every").text() == "a.yaml:1:22");
  CHECK(origin_of(result.root, "logging.csv").text() == "base.yaml:2:30");
  CHECK(origin_of(result.root, "seed").text() == "base.yaml:1:7");
  CHECK(result.notices.empty());
}

TEST_CASE("merge: lists, scalars and null replace what stood there", "[recipe]") {
  const Merged result =
      merged("a: [1, 2]\nb: {c: 1}\nd: 1\ne: {f: 1}\ng: 1\n", "a: [3]\nb: 2\nd: {x: 1}\ne: ~\ng: null\n");
  CHECK(find_path(result.root, "a")->list.size() == 1);
  CHECK(find_path(result.root, "b")->scalar == "2");
  CHECK(find_path(result.root, "d.x")->scalar == "1");
  CHECK(find_path(result.root, "e")->kind == Node::Kind::kNull);
  CHECK(find_path(result.root, "g")->kind == Node::Kind::kNull);
}

TEST_CASE("merge: a component whose name changes loses the settings of the old one", "[recipe]") {
  const Merged result = merged("optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n",
                               "seed: 1\noptimizer:\n  eps: 1e-8\n  name: adamw\n");
  CHECK(settings(result) == "name=adamw eps=1e-8");
  CHECK(result.notices ==
        std::vector<std::string>{"a.yaml:4:9: the settings of sgd are left out: lr and momentum"});
}

TEST_CASE("merge: settings that the overlay gives again are not told of", "[recipe]") {
  const Merged some = merged("lr_scheduler: {name: cosine, warmup-steps: 3, final_factor: 0}\n",
                             "lr_scheduler: {name: linear, warmup_steps: 3}\n");
  CHECK(settings(some, "lr_scheduler") == "name=linear warmup_steps=3");
  CHECK(some.notices ==
        std::vector<std::string>{"a.yaml:1:22: the settings of cosine are left out: final_factor"});
  const Merged all = merged("lr_scheduler: {name: cosine, warmup_steps: 3}\n",
                            "lr_scheduler: {name: linear, warmup_steps: 5}\n");
  CHECK(settings(all, "lr_scheduler") == "name=linear warmup_steps=5");
  CHECK(all.notices.empty());
}

TEST_CASE("merge: a component without a name has its default one", "[recipe]") {
  CHECK(settings(merged("optimizer: {lr: 0.1}\n", "optimizer: {name: sgd}\n")) == "lr=0.1 name=sgd");
  const Merged other = merged("lr-scheduler: {warmup_steps: 3}\n", "lr_scheduler: {name: cosine}\n");
  CHECK(settings(other, "lr_scheduler") == "name=cosine");
  CHECK(other.notices ==
        std::vector<std::string>{"a.yaml:1:22: the settings of constant are left out: warmup_steps"});
}

TEST_CASE("merge: settings that wait for a name are kept when it comes", "[recipe]") {
  const Merged result = merged("model: {hidden: 8}\n", "model: {name: mlp}\n");
  CHECK(settings(result, "model") == "hidden=8 name=mlp");
  CHECK(result.notices.empty());
}

TEST_CASE("merge: nothing is told of a component that had no settings, or keeps its name", "[recipe]") {
  CHECK(merged("optimizer: {name: sgd}\n", "optimizer: {name: adamw}\n").notices.empty());
  CHECK(merged("optimizer: ~\n", "optimizer: {name: adamw}\n").notices.empty());
  CHECK(merged("seed: 1\n", "optimizer: {name: adamw}\n").notices.empty());
  const Merged same = merged("optimizer: {name: adamw, lr: 1}\n", "optimizer: {name: adamw, eps: 2}\n");
  CHECK(same.notices.empty());
  CHECK(settings(same) == "name=adamw lr=1 eps=2");
  CHECK(settings(merged("optimizer: {name: adamw, lr: 1}\n", "optimizer: {lr: 2}\n")) == "name=adamw lr=2");
}

TEST_CASE("merge: maps of many keys merge in no time", "[recipe]") {
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  CHECK(merged(many, many).root.map.size() == 40'000);
}
