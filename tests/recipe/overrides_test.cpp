#include "recipe/overrides.h"

#include "recipe/read.h"
#include "support/catch.h"

using namespace gputrain::recipe;

namespace {

const ComponentNames kComponents{{"model", ""}, {"optimizer", "sgd"}};

constexpr const char* kTiny = "max_steps: 1\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n";

struct Changed {
  Node root;
  std::vector<Problem> problems;
  std::vector<std::string> notices;

  std::string value(const std::string& path) const {
    const Node* node = find_path(root, path);
    return node != nullptr ? node->scalar : "(absent)";
  }
  std::vector<std::string> keys_of(const std::string& path) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : find_path(root, path)->map) keys.push_back(key.scalar);
    return keys;
  }
};

Changed changed(const std::vector<std::string>& arguments, const std::string& text = kTiny) {
  Changed result;
  result.root = read_text(text, "a.yaml").root;
  apply_overrides(result.root, arguments, kComponents, result.problems, result.notices);
  return result;
}

std::string problems_with(const std::vector<std::string>& arguments, const std::string& text = kTiny) {
  return text_of(changed(arguments, text).problems);
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("overrides: arguments win over the recipe, the last of them over the others", "[recipe]") {
  const Changed result =
      changed({"max-steps=3", "max_steps=4", "optimizer.lr=1e-3", "logging.csv=true", "name=a=b"});
  CHECK(result.problems.empty());
  CHECK(result.notices.empty());
  CHECK(result.value("max_steps") == "4");
  CHECK(result.value("optimizer.lr") == "1e-3");
  CHECK(result.value("optimizer.momentum") == "0.9");
  CHECK(result.value("logging.csv") == "true");
  CHECK(result.value("name") == "a=b");
  CHECK(origin_of(result.root, "max_steps").text() == "argument max_steps=4");
}

TEST_CASE("overrides: a map merges with what is there, a list or null replaces it", "[recipe]") {
  const Changed result =
      changed({"optimizer={lr: 0.2, eps: 1}", "a=[3]", "b=~"}, kTiny + std::string("a: [1, 2]\nb: 1\n"));
  CHECK(result.problems.empty());
  CHECK(result.keys_of("optimizer") == Strings{"name", "lr", "momentum", "eps"});
  CHECK(result.value("optimizer.lr") == "0.2");
  CHECK(find_path(result.root, "a")->list.size() == 1);
  CHECK(find_path(result.root, "b")->kind == Node::Kind::kNull);
}

TEST_CASE("overrides: a key that is null in the recipe takes keys of its own", "[recipe]") {
  const Changed result = changed({"logging.csv=true"}, "logging: ~\n");
  CHECK(result.problems.empty());
  CHECK(result.value("logging.csv") == "true");
}

TEST_CASE("overrides: a key is deleted, with all it holds", "[recipe]") {
  const Changed result = changed({"~optimizer.lr", "~max-steps"});
  CHECK(result.problems.empty());
  CHECK(result.keys_of("optimizer") == Strings{"name", "momentum"});
  CHECK(result.value("max_steps") == "(absent)");
  CHECK(changed({"~optimizer"}).root.find("optimizer") == nullptr);
}

TEST_CASE("overrides: arguments are applied one after the other", "[recipe]") {
  CHECK(changed({"~max_steps", "max_steps=2"}).value("max_steps") == "2");
  CHECK(changed({"max_steps=2", "~max_steps"}).value("max_steps") == "(absent)");
}

TEST_CASE("overrides: mistakes name the argument", "[recipe]") {
  const std::string expected = ": expected key=value, key.sub=value or ~key";
  for (const std::string argument : {"seed", "=1", "~", "", "a..b=1", ".a=1", "a.=1", "a b=1"}) {
    // Without any text there is no argument to name.
    const std::string place = argument.empty() ? "" : "argument " + argument + ": ";
    CHECK(problems_with({argument}) == place + expected.substr(2));
  }
  CHECK(problems_with({"max_steps.a=1"}) ==
        "argument max_steps.a=1: max_steps in a.yaml:1:12 is not a map of keys");
  CHECK(problems_with({"optimizer.lr.a.b=1"}) ==
        "argument optimizer.lr.a.b=1: optimizer.lr in a.yaml:2:28 is not a map of keys");
  CHECK(problems_with({"seed=[1"}) == "argument seed=[1: the closing ] of a list is missing");
}

TEST_CASE("overrides: a map given for a key replaces what is no map", "[recipe]") {
  CHECK(changed({"max_steps={a: 1}"}).value("max_steps.a") == "1");
}

TEST_CASE("overrides: what the recipe does not set cannot be deleted", "[recipe]") {
  CHECK(problems_with({"~seed"}) == "argument ~seed: the recipe does not set seed");
  CHECK(problems_with({"~max_stesp"}) ==
        "argument ~max_stesp: the recipe does not set max_stesp; did you mean max_steps?");
  CHECK(problems_with({"~momentum"}) ==
        "argument ~momentum: the recipe does not set momentum; did you mean optimizer.momentum?");
  CHECK(problems_with({"~momentm"}) ==
        "argument ~momentm: the recipe does not set momentm; did you mean optimizer.momentum?");
  CHECK(problems_with({"~optimizer.mometnum"}) ==
        "argument ~optimizer.mometnum: the recipe does not set optimizer.mometnum; did you mean "
        "optimizer.momentum?");
}

TEST_CASE("overrides: what went with a component's old name may be deleted too", "[recipe]") {
  const Changed result = changed({"optimizer.name=adamw", "~optimizer.momentum"});
  CHECK(text_of(result.problems).empty());
  CHECK(result.keys_of("optimizer") == Strings{"name"});
  CHECK_THAT(problems_with({"optimizer.name=adamw", "~optimizer.eps"}),
             ContainsSubstring("argument ~optimizer.eps: the recipe does not set optimizer.eps"));
}

TEST_CASE("overrides: bases are not for arguments", "[recipe]") {
  for (const std::string argument : {"base=b.yaml", "base=[b.yaml]", "~base", "base.x=1"}) {
    CHECK(problems_with({argument}) ==
          "argument " + argument + ": bases belong in a recipe file; change its key base");
  }
  CHECK(problems_with({"model.base=b.yaml"}).empty());
}

TEST_CASE("overrides: keys nest 64 deep and no deeper", "[recipe]") {
  std::string path = "a";
  for (int i = 1; i < 64; ++i) path += ".a";
  CHECK(problems_with({path + "=1"}).empty());
  CHECK(problems_with({path + ".a=1"}) == "argument " + path + ".a=1: the key is nested more than 64 deep");
}

TEST_CASE("overrides: a name is applied first, wherever it stands", "[recipe]") {
  const Changed result = changed({"optimizer.lr=0.2", "optimizer.name=adamw"});
  CHECK(result.problems.empty());
  CHECK(result.value("optimizer.name") == "adamw");
  CHECK(result.keys_of("optimizer") == Strings{"name", "lr"});
  CHECK(result.value("optimizer.lr") == "0.2");
  CHECK(result.notices ==
        Strings{"argument optimizer.name=adamw: the settings of sgd are left out: momentum"});
}

TEST_CASE("overrides: a name in a map works as one by itself", "[recipe]") {
  const Changed result = changed({"optimizer.eps=2", "optimizer={name: adamw, lr: 0.3}"});
  CHECK(result.problems.empty());
  CHECK(result.value("optimizer.name") == "adamw");
  CHECK(result.value("optimizer.lr") == "0.3");
  CHECK(result.value("optimizer.eps") == "2");
  CHECK(result.value("optimizer.momentum") == "(absent)");
  CHECK(result.notices ==
        Strings{"argument optimizer={name: adamw, lr: 0.3}: the settings of sgd are left out: momentum"});
  CHECK(changed({"optimizer.lr=5", "optimizer={name: sgd, lr: 6}"}).value("optimizer.lr") == "6");
}

TEST_CASE("overrides: of several names the last holds, and settings given with others are left out",
          "[recipe]") {
  const Changed back = changed({"optimizer.name=adamw", "optimizer.name=sgd"});
  CHECK(back.notices.empty());
  CHECK(back.keys_of("optimizer") == Strings{"name", "lr", "momentum"});
  const Changed other = changed({"optimizer={name: adamw, eps: 1}", "optimizer.lr=7", "optimizer.name=sgd"});
  CHECK(other.value("optimizer.eps") == "(absent)");
  CHECK(other.value("optimizer.lr") == "7");
  CHECK(other.value("optimizer.name") == "sgd");
  CHECK(other.notices == Strings{"argument optimizer.name=sgd: the settings of adamw are left out: eps"});
}

TEST_CASE("overrides: a component that is deleted can be named anew", "[recipe]") {
  const Changed result = changed({"~optimizer", "optimizer.name=adamw"});
  CHECK(result.problems.empty());
  CHECK(result.keys_of("optimizer") == Strings{"name"});
  CHECK(result.value("optimizer.name") == "adamw");
}

TEST_CASE("overrides: a component that keeps its name keeps its settings", "[recipe]") {
  const std::string unnamed = "optimizer: {lr: 0.1}\nmodel: {hidden: 8}\n";
  CHECK(changed({"optimizer.name=sgd"}, unnamed).value("optimizer.lr") == "0.1");
  CHECK(changed({"optimizer.name=adamw"}, unnamed).value("optimizer.lr") == "(absent)");
  CHECK(changed({"model.name=mlp"}, unnamed).value("model.hidden") == "8");
}

TEST_CASE("overrides: a word that turns something off does so over what is there", "[recipe]") {
  const auto value_of = [](const char* path, const std::vector<std::string>& arguments,
                           const std::string& recipe = kTiny) {
    const Changed result = changed(arguments, recipe);
    CHECK(text_of(result.problems).empty());
    return result.value(path);
  };
  CHECK(value_of("ema.decay", {"model_ema=false"}, "ema: 0.9\n") == "0");
  CHECK(value_of("ema.decay", {"model_ema=false"}, "ema: {decay: 0.9, warmup: true}\n") == "0");
  CHECK(value_of("ema.decay", {"ema=0.9", "model_ema=false"}) == "0");
  CHECK(value_of("precision", {"amp=false"}, "precision: bf16-mixed\n") == "fp32");
  CHECK(value_of("precision", {"precision=bf16-mixed", "amp=false"}) == "fp32");
  CHECK(value_of("precision", {"amp=false", "precision=bf16-mixed"}) == "bf16-mixed");
}

TEST_CASE("overrides: words that are read together are so in any order", "[recipe]") {
  const auto decay = [](const std::vector<std::string>& arguments) {
    return changed(arguments, "seed: 1\n").value("ema.decay");
  };
  CHECK(decay({"model_ema=false", "model_ema_decay=0.99"}) == "0");
  CHECK(decay({"model_ema_decay=0.99", "model_ema=false"}) == "0");
  CHECK(decay({"model_ema=true", "model_ema_decay=0.99"}) == "0.99");
  CHECK(decay({"model_ema_decay=0.99", "model_ema=true"}) == "0.99");
  CHECK(decay({"model_ema=false", "model_ema=true", "model_ema_decay=0.99"}) == "0.99");
  CHECK(changed({"amp=true", "amp_dtype=bfloat16"}).value("precision") == "bf16-mixed");
  CHECK(text_of(changed({"val_check_interval=0.25", "check_val_every_n_epoch=2"}).problems) ==
        "argument check_val_every_n_epoch=2: check_val_every_n_epoch is 2; expected 1 beside "
        "val_check_interval: 0.25 (read as in Lightning)");
}

TEST_CASE("overrides: words of other tools are read as ours, with a notice", "[recipe]") {
  const Changed result = changed({"lr=0.2", "accum-steps=4", "optimizer=adamw_torch"});
  CHECK(text_of(result.problems).empty());
  CHECK(result.value("optimizer.lr") == "0.2");
  CHECK(result.value("gradient_accumulation_steps") == "4");
  CHECK(result.value("optimizer.name") == "adamw");
  CHECK(result.notices ==
        Strings{"argument lr=0.2: read `lr` as `optimizer.lr`",
                "argument accum-steps=4: read `accum_steps` as `gradient_accumulation_steps`",
                "argument optimizer=adamw_torch: read `optimizer: adamw_torch` as `optimizer: {name: adamw}`",
                "argument optimizer=adamw_torch: the settings of sgd are left out: momentum"});
  CHECK(changed({"~lr"}).keys_of("optimizer") == Strings{"name", "momentum"});
}
