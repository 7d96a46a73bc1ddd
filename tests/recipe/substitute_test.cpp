#include "recipe/substitute.h"

#include "base/text.h"
#include "recipe/read.h"
#include "support/catch.h"

#include <cstdlib>
#include <map>

using namespace gputrain::recipe;

namespace {

using Variables = std::map<std::string, std::string>;

struct Substituted {
  Node root;
  std::vector<Problem> problems;

  const Node& at(const std::string& path) const {
    const Node* node = find_path(root, path);
    REQUIRE(node != nullptr);
    return *node;
  }
};

Substituted substituted(const std::string& text, const Variables& variables = {}) {
  const std::map<std::string, std::string> defaults{
      {"seed", "1"}, {"optimizer.lr", "0.1"}, {"epochs", "~"}, {"betas", "[0.9, 0.95]"}, {"device", ""}};
  const auto look_up = [](const std::map<std::string, std::string>& map, const std::string& key) {
    const auto found = map.find(key);
    return found != map.end() ? std::optional(found->second) : std::nullopt;
  };
  Document document = read_text(text, "a.yaml");
  REQUIRE(text_of(document.problems).empty());
  Substituted result{std::move(document.root), {}};
  substitute(
      result.root, [&](const std::string& path) { return look_up(defaults, path); },
      [&](const std::string& variable) { return look_up(variables, variable); }, result.problems);
  return result;
}

std::string problems_with(const std::string& text, const Variables& variables = {}) {
  return text_of(substituted(text, variables).problems);
}

// The scalar that "x: <written>" becomes.
std::string text_for(const std::string& written, const Variables& variables = {}) {
  const Substituted result = substituted("x: " + written + "\n", variables);
  CHECK(text_of(result.problems).empty());
  CHECK(result.at("x").kind == Node::Kind::kScalar);
  return result.at("x").scalar;
}

std::string problem_for(const std::string& written, const Variables& variables = {}) {
  return problems_with("x: " + written + "\n", variables);
}

}  // namespace

TEST_CASE("substitute: a variable is put in, alone or within text", "[recipe]") {
  CHECK(text_for("${env:X}", {{"X", "5"}}) == "5");
  CHECK(text_for("run-${env:X}-${env:Y}.yaml", {{"X", "5"}, {"Y", "b"}}) == "run-5-b.yaml");
  CHECK(text_for("\"${env:X}\"", {{"X", "a b"}}) == "a b");
  CHECK(text_for("${ env:X }", {{"X", "5"}}) == "5");
  CHECK(text_for("${env:X}", {{"X", ""}}).empty());
}

TEST_CASE("substitute: the value of a variable is data, never syntax", "[recipe]") {
  for (const std::string value : {"1e-4", "a: b", "[1,2]", "{a: 1}", "~", "null", "'q'", "# c", "${env:X}",
                                  "$${", "${seed}", "a\nb", "\xC3\xA9"}) {
    CHECK(text_for("${env:X}", {{"X", value}}) == value);
    CHECK(text_for("<${env:X}>", {{"X", value}}) == "<" + value + ">");
  }
}

TEST_CASE("substitute: what stands for a whole value is plain, within quotes too", "[recipe]") {
  const Substituted result =
      substituted("a: \"${env:X}\"\nb: \"${env:Y,1e-4}\"\nc: '1${env:X}'\nd: 1${env:X}\n", {{"X", "2"}});
  CHECK(!result.at("a").quoted);
  CHECK(!result.at("b").quoted);
  CHECK(result.at("c").quoted);
  CHECK(!result.at("d").quoted);
  CHECK(result.at("d").scalar == "12");
}

TEST_CASE("substitute: a default holds where the variable is not set", "[recipe]") {
  CHECK(text_for("${env:X,d}") == "d");
  CHECK(text_for("${env:X, a, b }") == "a, b");
  CHECK(text_for("${env:X,d}", {{"X", "5"}}) == "5");
  CHECK(text_for("${env:X,d}", {{"X", ""}}).empty());
  CHECK(text_for("${env:X,}").empty());
  CHECK(text_for("a${env:X,}b") == "ab");
  CHECK(text_for("a${env:X,~}b") == "a~b");
  CHECK(text_for("a${env:X,null}b") == "anullb");
  CHECK(substituted("x: ${env:X,~}\n").at("x").kind == Node::Kind::kNull);
  CHECK(substituted("x: \"${env:X,null}\"\n").at("x").kind == Node::Kind::kNull);
}

TEST_CASE("substitute: a variable that is not set is a problem that names both ways out", "[recipe]") {
  CHECK(
      problems_with("seed: 1\npath: ${env:DATA}/x\n") ==
      "a.yaml:2:7: the environment variable DATA is not set; set it, or give a default: ${env:DATA,default}");
}

TEST_CASE("substitute: bytes that no recipe may hold are refused in variables too", "[recipe]") {
  CHECK(problem_for("${env:X}", {{"X", "a\xFF"}}) ==
        "a.yaml:1:4: the environment variable X holds byte 0xff is not UTF-8");
  CHECK(problem_for("a ${env:X}", {{"X", "\x1B[0m"}}) ==
        "a.yaml:1:4: the environment variable X holds byte 0x1b is a control character");
}

TEST_CASE("substitute: other dollars are text, and $${ writes ${", "[recipe]") {
  CHECK(text_for("$X and $(Y) cost 5$") == "$X and $(Y) cost 5$");
  CHECK(text_for("$${env:X}") == "${env:X}");
  CHECK(text_for("a $${ b ${env:X}", {{"X", "5"}}) == "a ${ b 5");
  CHECK(text_for("$$${env:X}", {{"X", "5"}}) == "$${env:X}");
  CHECK(text_for("$$") == "$$");
}

TEST_CASE("substitute: keys are not searched", "[recipe]") {
  const Substituted result = substituted("\"${env:X}\": 1\n");
  CHECK(result.problems.empty());
  CHECK(result.root.map[0].key.scalar == "${env:X}");
}

TEST_CASE("substitute: values in lists and maps are searched", "[recipe]") {
  const Substituted result = substituted("a: [{b: \"${env:X}\"}, [\"${env:X}\"]]\n", {{"X", "5"}});
  CHECK(result.at("a").list[0].find("b")->scalar == "5");
  CHECK(result.at("a").list[1].list[0].scalar == "5");
}

TEST_CASE("substitute: a key of the recipe is put in, wherever it stands", "[recipe]") {
  const Substituted result =
      substituted("name: ${model.name}-${epochs}\nmodel: {name: mlp}\nepochs: 5\nother: ${model.name}\n");
  CHECK(result.problems.empty());
  CHECK(result.at("name").scalar == "mlp-5");
  CHECK(result.at("other").scalar == "mlp");
  CHECK(text_for("\"${micro-batch}\"\nmicro_batch: 2") == "2");
}

TEST_CASE("substitute: a key that stands for a whole value gives all it holds", "[recipe]") {
  const Substituted result = substituted("a: ${b}\nb: {c: [1, \"${d}\"]}\nd: ~\ne: ${d}\nf: ${g}\ng: 'q'\n");
  CHECK(result.problems.empty());
  REQUIRE(result.at("a.c").list.size() == 2);
  CHECK(result.at("a.c").list[0].scalar == "1");
  CHECK(result.at("a.c").list[1].kind == Node::Kind::kNull);
  CHECK(result.at("e").kind == Node::Kind::kNull);
  CHECK(result.at("f").quoted);
}

TEST_CASE("substitute: references lead through references", "[recipe]") {
  const Substituted result = substituted(
      "a: ${b}\nb: <${c}>\nc: ${env:X}\nd: ${e.x}\ne: ${f}\nf: {x: 1, y: \"${f.x}2\"}\ng: ${e.y}\n",
      {{"X", "5"}});
  CHECK(result.problems.empty());
  CHECK(result.at("a").scalar == "<5>");
  CHECK(result.at("d").scalar == "1");
  CHECK(result.at("g").scalar == "12");
}

TEST_CASE("substitute: what was put in is not searched again", "[recipe]") {
  const Substituted result = substituted("a: ${b}\nb: {c: \"$${env:X}\"}\nd: ${a.c}\ne: ${a}\nf: ${e.c}\n");
  CHECK(result.problems.empty());
  CHECK(result.at("a.c").scalar == "${env:X}");
  CHECK(result.at("d").scalar == "${env:X}");
  CHECK(result.at("f").scalar == "${env:X}");
}

TEST_CASE("substitute: a list or map within text is refused", "[recipe]") {
  CHECK(problems_with("a: x ${b}\nb: [1]\nc: x ${d} ${e}\nd: {f: 1}\ne: ~\n") ==
        "a.yaml:1:4: ${b} is a list; expected one value within text\n"
        "a.yaml:3:4: ${d} is a map; expected one value within text\n"
        "a.yaml:3:4: ${e} is null; expected one value within text");
}

TEST_CASE("substitute: a value has the origin of the place where it is put in", "[recipe]") {
  const Substituted result =
      substituted("a: ${env:X}\nb: ${c}\nc: {d: 1}\ne: ${seed}\nf: ${betas}\n", {{"X", "5"}});
  CHECK(result.at("a").origin.text() == "a.yaml:1:4");
  CHECK(result.at("b").origin.text() == "a.yaml:2:4");
  CHECK(result.at("b.d").origin.text() == "a.yaml:3:8");
  CHECK(result.at("e").origin.text() == "a.yaml:4:4");
  CHECK(result.at("f").list[1].origin.text() == "a.yaml:5:4");
}

TEST_CASE("substitute: a key that is not written has its default", "[recipe]") {
  CHECK(text_for("${optimizer.lr}") == "0.1");
  CHECK(text_for("lr${optimizer.lr}") == "lr0.1");
  CHECK(text_for("${device}").empty());
  const Substituted result =
      substituted("a: ${epochs}\nb: ${betas}\noptimizer: {eps: 1}\nc: ${optimizer.lr}\n");
  CHECK(result.problems.empty());
  CHECK(result.at("a").kind == Node::Kind::kNull);
  CHECK(result.at("b").list.size() == 2);
  CHECK(result.at("c").scalar == "0.1");
}

TEST_CASE("substitute: a key that is neither written nor known is refused with the nearest one", "[recipe]") {
  CHECK(problems_with("max_steps: 1\na: ${max_stesp}\n") ==
        "a.yaml:2:4: the recipe does not set max_stesp; did you mean ${max_steps}?");
  CHECK(problems_with("optimizer: {momentum: 1}\na: ${momentum}\n") ==
        "a.yaml:2:4: the recipe does not set momentum; did you mean ${optimizer.momentum}?");
  CHECK(problem_for("${something.else}") ==
        "a.yaml:1:4: the recipe does not set something.else, and it has no default");
  CHECK(problems_with("max_steps: 1\na: ${max_steps.x.y}\n") ==
        "a.yaml:2:4: the recipe does not set max_steps.x.y; did you mean ${max_steps}?");
}

TEST_CASE("substitute: forms of other tools are told the form of this one", "[recipe]") {
  CHECK(problem_for("${HOME}/x") == "a.yaml:1:4: the recipe does not set HOME; did you mean ${env:HOME}?");
  CHECK(problem_for("${my_data}", {{"my_data", "5"}}) ==
        "a.yaml:1:4: the recipe does not set my_data; did you mean ${env:my_data}?");
  CHECK(problem_for("${X:-d}") == "a.yaml:1:4: ${X:-d} is not read; write ${env:X,d}");
  CHECK(problem_for("${env:X:-d}") == "a.yaml:1:4: ${env:X:-d} is not read; write ${env:X,d}");
  CHECK(problem_for("${oc.env:X,d}") == "a.yaml:1:4: ${oc.env:X,d} is not read; write ${env:X,d}");
  CHECK(problem_for("${oc.env:X}") == "a.yaml:1:4: ${oc.env:X} is not read; write ${env:X}");
  const std::string forms =
      " is not read; expected ${env:VAR}, ${env:VAR,default} or ${key.sub}; $${ is the text ${";
  for (const std::string form : {"${}", "${now:%Y}", "${env:}", "${env:1}", "${seed,1}", "${a b}"}) {
    CHECK(problem_for(gputrain::concat('<', form, '>')) == gputrain::concat("a.yaml:1:4: ", form, forms));
  }
}

TEST_CASE("substitute: braces must close, and do not nest", "[recipe]") {
  CHECK(problem_for("a ${env:X") == "a.yaml:1:4: the } of ${env:X is missing; $${ is the text ${");
  CHECK(problem_for("${") == "a.yaml:1:4: the } of ${ is missing; $${ is the text ${");
  CHECK(problem_for("${env:X,${env:Y}}") ==
        "a.yaml:1:4: ${env:X,${env:Y} holds another ${; expected plain text in it");
}

TEST_CASE("substitute: all problems are told, each once, and the values stay as written", "[recipe]") {
  const Substituted result =
      substituted("a: ${env:X} ${env:Y}\nb: ${a}\nc: [\"${b}\"]\nd: ${c}\ne: ${seed}\n");
  CHECK(text_of(result.problems) ==
        "a.yaml:1:4: the environment variable X is not set; set it, or give a default: ${env:X,default}\n"
        "a.yaml:1:4: the environment variable Y is not set; set it, or give a default: ${env:Y,default}");
  CHECK(result.at("b").scalar == "${a}");
  CHECK(result.at("d").scalar == "${c}");
  CHECK(result.at("e").scalar == "1");
}

TEST_CASE("substitute: references that lead back are refused with the way they take", "[recipe]") {
  CHECK(problems_with("a: ${b}\nb: x${c}\nc: ${a}\n") ==
        "a.yaml:1:4: ${b} leads back here: a -> b -> c -> a");
  CHECK(problems_with("a: ${a}\n") == "a.yaml:1:4: ${a} leads back here: a -> a");
  CHECK(problems_with("x: ${a}\na: ${b}\nb: ${a}\n") == "a.yaml:2:4: ${b} leads back here: a -> b -> a");
  CHECK(problems_with("a: {b: \"${a}\"}\n") == "a.yaml:1:8: ${a} leads back here: a -> a");
  CHECK(problems_with("a: {b: \"${c}\"}\nc: [\"${a}\"]\n") ==
        "a.yaml:1:8: ${c} leads back here: a -> c -> a");
  CHECK(problems_with("a: {b: \"${a.c}\", c: 1}\n").empty());
}

TEST_CASE("substitute: references lead on at most 64 times", "[recipe]") {
  const auto chain = [](int length) {
    std::string text;
    for (int i = 0; i < length; ++i)
      text += "k" + std::to_string(i) + ": ${k" + std::to_string(i + 1) + "}\n";
    return text + "k" + std::to_string(length) + ": 1\n";
  };
  CHECK(problems_with(chain(64)).empty());
  CHECK(problems_with(chain(65)) == "a.yaml:65:6: more than 64 references lead from one to the next");
}

TEST_CASE("substitute: references cannot fill the memory", "[recipe]") {
  std::string values = "k0: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  std::string bytes = "k0: 0123456789\n";
  std::string levels = "k0: 1\n";
  for (int i = 1; i < 62; ++i) {
    const std::string key = "k" + std::to_string(i) + ": ";
    const std::string before = "${k" + std::to_string(i - 1) + "}";
    values += gputrain::concat(key, "[\"", before, "\", \"", before, "\"]\n");
    bytes += gputrain::concat(key, before, before, '\n');
    levels += gputrain::concat(key, "[[\"", before, "\"]]\n");
  }
  CHECK(problems_with(values) == "a.yaml:14:7: what ${...} puts in comes to more than 100000 values");
  CHECK(problems_with(bytes) == "a.yaml:17:6: what ${...} puts in comes to more than 1.0 MiB of text");
  CHECK(problems_with(levels) ==
        "a.yaml:33:8: with what ${...} puts in, lists and maps are nested more than 64 deep");
}

TEST_CASE("substitute: many references and many mistakes take no time", "[recipe]") {
  std::string good = "x0: 1\n";
  std::string bad;
  for (int i = 1; i < 30'000; ++i) {
    good += "x" + std::to_string(i) + ": ${x" + std::to_string(i - 1) + "}\n";
    bad += "some_key_" + std::to_string(i) + ": ${same_key_" + std::to_string(i) + "}\n";
  }
  const Substituted result = substituted(good);
  CHECK(result.problems.empty());
  CHECK(result.at("x29999").scalar == "1");
  CHECK(substituted(bad).problems.size() == 29'999);
}

TEST_CASE("substitute: the process has its own variables", "[recipe]") {
  setenv("GPUTRAIN_TEST_VARIABLE", "5", 1);
  CHECK(process_environment()("GPUTRAIN_TEST_VARIABLE").value_or("") == "5");
  unsetenv("GPUTRAIN_TEST_VARIABLE");
  CHECK(!process_environment()("GPUTRAIN_TEST_VARIABLE"));
}
