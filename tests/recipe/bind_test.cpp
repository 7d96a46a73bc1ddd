#include "recipe/bind.h"

#include "recipe/read.h"
#include "support/catch.h"

#include <filesystem>

using namespace gputrain::recipe;

namespace {

enum class Colour { kRed, kGreen, kBlue };

struct Group {
  std::vector<std::string> match;
  double lr_scale = 1;
};

void describe(Visitor& v, Group& o) {
  v.texts("match", o.match, "");
  v.number("lr_scale", o.lr_scale, Range{0, 10}, "", "");
}

struct Options {
  double lr = 0.5;
  std::optional<double> scale = 2.0;
  std::int64_t steps = 7;
  std::optional<std::int64_t> workers = 3;
  bool flag = false;
  std::optional<bool> fast = true;
  std::string word = "w";
  std::optional<std::string> trace = "t";
  std::optional<std::string> path = "p";
  std::optional<std::vector<double>> mean = std::vector<double>{0.5};
  std::vector<std::int64_t> layers = {1};
  std::optional<double> time = 1.0;
  std::optional<std::int64_t> room = 1;
  std::optional<std::int64_t> epochs = 1;
  std::optional<double> norm = 1.0;
  Interval every{1, Interval::Unit::kEpochs};
  Colour colour = Colour::kRed;
  std::int64_t depth = 1;
  Choice model{"mlp", {}};
  std::vector<std::string> names = {"n"};
  std::vector<Group> groups = {{{"g"}, 3}};
};

void describe(Visitor& v, Options& o) {
  v.number("lr", o.lr, Range{0, 1, true}, "per step", "");
  v.number("scale", o.scale, Range{0, 10, false, true}, "", "");
  v.integer("steps", o.steps, Range{1, kNoLimit}, "steps", "");
  v.integer("workers", o.workers, Range{0, 64}, "", "");
  v.boolean("flag", o.flag, "");
  v.boolean("fast", o.fast, "");
  v.text("word", o.word, "");
  v.text("trace", o.trace, "");
  v.path("path", o.path, "");
  v.numbers("mean", o.mean, Range{0, 1}, "", "");
  v.integers("layers", o.layers, Range{1, 9}, "", "");
  v.duration("time", o.time, "");
  v.bytes("room", o.room, "");
  v.count("epochs", o.epochs, Range{1, kNoLimit}, "", "");
  v.limit("norm", o.norm, Range{0, kNoLimit, true}, "", "");
  v.interval("every", o.every, "");
  v.one_of("colour", o.colour, {"red", "green", "blue"}, "");
  v.section("inner", "", [&](Visitor& s) { s.integer("depth", o.depth, Range{1, 3}, "", ""); });
  v.component("model", o.model, "");
  v.texts("names", o.names, "");
  v.maps("groups", o.groups, "");
}

struct Result {
  Options options;
  std::string problems;
};

Result bound(const std::string& text) {
  Result result;
  const Document document = read_text(text, "dir/a.yaml");
  REQUIRE(text_of(document.problems).empty());
  result.problems =
      text_of(gputrain::recipe::bind(document.root, "", [&](Visitor& v) { describe(v, result.options); }));
  return result;
}

std::string problem_of(const std::string& text) {
  return bound(text).problems;
}

}  // namespace

TEST_CASE("bind: numbers are read as they are written", "[recipe]") {
  const auto [text, value] = GENERATE(table<std::string, double>({{"1e-4", 1e-4},
                                                                  {"1E-4", 1e-4},
                                                                  {"1.e-4", 1e-4},
                                                                  {".5", 0.5},
                                                                  {"+0.25", 0.25},
                                                                  {"1", 1},
                                                                  {"0.1", 0.1},
                                                                  {"1.0e+00", 1}}));
  const Result result = bound("lr: " + text + "\n");
  CHECK(result.problems.empty());
  CHECK(result.options.lr == value);
}

TEST_CASE("bind: what is no number in range is refused with the reason", "[recipe]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"1_000", "lr is 1_000; expected a number (without _)"},
       {"0x10", "lr is 0x10; expected a number (decimal)"},
       {"0b1", "lr is 0b1; expected a number (decimal)"},
       {"010", "lr is 010; expected a number (without leading zeros)"},
       {".nan", "lr is .nan; expected a number (finite)"},
       {"-.inf", "lr is -.inf; expected a number (finite)"},
       {"inf", "lr is inf; expected a number (finite)"},
       {"1e999", "lr is 1e999; expected a number"},
       {"1e-50", "lr is 1e-50; expected a number that a 32-bit float can hold"},
       {"\"0.1\"", "lr is \"0.1\"; expected a number (without quotes)"},
       {"0.1.2", "lr is 0.1.2; expected a number"},
       {"1e", "lr is 1e; expected a number"},
       {"fast", "lr is fast; expected a number"},
       {"~", "lr is null; expected a number"},
       {"[1]", "lr is a list; expected a number"},
       {"auto", "lr is auto; expected a number"},
       {"0", "lr is 0; expected 0 < lr <= 1"},
       {"-1", "lr is -1; expected 0 < lr <= 1"},
       {"1.5", "lr is 1.5; expected 0 < lr <= 1"}}));
  const std::string column = text == "~" ? "1" : "5";
  CHECK(problem_of("lr: " + text + "\n") == "dir/a.yaml:1:" + column + ": " + expected);
}

TEST_CASE("bind: integers are digits in range", "[recipe]") {
  CHECK(bound("steps: 9223372036854775807\n").options.steps == INT64_MAX);
  CHECK(bound("steps: +5\n").options.steps == 5);
  const auto [text, expected] = GENERATE(
      table<std::string, std::string>({{"16.0", "expected an integer (digits alone, no point or exponent)"},
                                       {"1e3", "expected an integer (digits alone, no point or exponent)"},
                                       {"010", "expected an integer (without leading zeros)"},
                                       {"0o10", "expected an integer (decimal)"},
                                       {"0x10", "expected an integer (decimal)"},
                                       {"1_000", "expected an integer (without _)"},
                                       {"9223372036854775808", "expected an integer below 2^63"},
                                       {"'16'", "expected an integer (without quotes)"},
                                       {"''", "expected an integer (without quotes)"},
                                       {"ten", "expected an integer"},
                                       {"+-5", "expected an integer"},
                                       {"-+5", "expected an integer"},
                                       {"0", "expected steps >= 1"},
                                       {"-1", "expected steps >= 1"}}));
  CHECK_THAT(problem_of("steps: " + text + "\n"), Catch::Matchers::EndsWith("; " + expected));
}

TEST_CASE("bind: booleans are true or false and nothing else", "[recipe]") {
  CHECK(bound("flag: true\n").options.flag);
  for (const std::string text : {"True", "yes", "on", "1", "'true'", "~"}) {
    CHECK_THAT(problem_of("flag: " + text + "\n"), Catch::Matchers::EndsWith("; expected true or false"));
  }
}

TEST_CASE("bind: text stays what was written", "[recipe]") {
  for (const std::string text : {"no", "1e-4", "010", "true", "auto"}) {
    CHECK(bound("word: " + text + "\n").options.word == text);
  }
  CHECK(bound("word: ''\n").options.word.empty());
  CHECK(problem_of("word: ~\n") == "dir/a.yaml:1:1: word is null; expected text");
  CHECK(problem_of("word: {a: 1}\n") == "dir/a.yaml:1:7: word is a map; expected text");
}

TEST_CASE("bind: auto and null stand for no value only where they mean something", "[recipe]") {
  const Options options = bound("{scale: auto, workers: auto, fast: auto, mean: auto}\n").options;
  CHECK((!options.scale && !options.workers && !options.fast && !options.mean));
  const Options none = bound("{trace: ~, path: ~, time: ~, epochs: ~, norm: ~}\n").options;
  CHECK((!none.trace && !none.path && !none.time && !none.epochs && !none.norm));
  CHECK(problem_of("workers: ~\n") == "dir/a.yaml:1:1: workers is null; expected an integer or auto");
  CHECK(problem_of("workers: 'auto'\n") ==
        "dir/a.yaml:1:10: workers is \"auto\"; expected an integer (without quotes) or auto");
  CHECK(problem_of("epochs: auto\n") == "dir/a.yaml:1:9: epochs is auto; expected an integer or ~");
  CHECK(problem_of("norm: 0\n") == "dir/a.yaml:1:7: norm is 0; expected norm > 0 or ~");
}

TEST_CASE("bind: a key that is absent keeps its default", "[recipe]") {
  const Options options = bound("lr: 0.1\n").options;
  CHECK(options.workers == 3);
  CHECK(options.trace == "t");
  CHECK(options.model.name == "mlp");
  CHECK(options.model.settings.origin.text() == "dir/a.yaml");
}

TEST_CASE("bind: each element of a list is checked", "[recipe]") {
  CHECK(bound("mean: [0.5, 1]\n").options.mean == std::vector<double>{0.5, 1});
  CHECK(bound("layers: []\n").options.layers.empty());
  CHECK(problem_of("mean: [0.5, 2, x]\n") ==
        "dir/a.yaml:1:13: mean[1] is 2; expected 0 <= mean[1] <= 1\n"
        "dir/a.yaml:1:16: mean[2] is x; expected a number");
  CHECK(problem_of("mean: 0.5\n") == "dir/a.yaml:1:7: mean is 0.5; expected a list of numbers or auto");
  CHECK(problem_of("layers: [1.5]\n") ==
        "dir/a.yaml:1:10: layers[0] is 1.5; expected an integer (digits alone, no point or exponent)");
}

TEST_CASE("bind: texts are one text or a list of them", "[recipe]") {
  using Texts = std::vector<std::string>;
  CHECK(bound("lr: 1\n").options.names == Texts{"n"});
  CHECK(bound("names: fc.*\n").options.names == Texts{"fc.*"});
  CHECK(bound("names: [no, '*.bias', 1e-4]\n").options.names == Texts{"no", "*.bias", "1e-4"});
  CHECK(bound("names: []\n").options.names.empty());
  CHECK(problem_of("names: ~\n") == "dir/a.yaml:1:1: names is null; expected text or a list of texts");
  CHECK(problem_of("names: {a: 1}\n") == "dir/a.yaml:1:8: names is a map; expected text or a list of texts");
  CHECK(problem_of("names: [a, [b]]\n") == "dir/a.yaml:1:12: names[1] is a list; expected text");
}

TEST_CASE("bind: a list of maps has the keys of its items", "[recipe]") {
  CHECK(bound("lr: 1\n").options.groups.size() == 1);
  CHECK(bound("groups: []\n").options.groups.empty());
  const std::vector<Group> groups = bound("groups: [{match: a}, {lr_scale: 0.5}]\n").options.groups;
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].match == std::vector<std::string>{"a"});
  CHECK(groups[0].lr_scale == 1);
  CHECK(groups[1].match.empty());
  CHECK(groups[1].lr_scale == 0.5);
}

TEST_CASE("bind: mistakes in a list of maps name the item", "[recipe]") {
  CHECK(problem_of("groups: [{}, {lr_scale: 11, mach: a}, 3]\n") ==
        "dir/a.yaml:1:25: groups[1].lr_scale is 11; expected 0 <= lr_scale <= 10\n"
        "dir/a.yaml:1:29: groups[1].mach is not a key of groups[1]; did you mean match?\n"
        "dir/a.yaml:1:39: groups[2] is 3; expected a map of keys");
  CHECK(problem_of("groups: [{steps: 1}]\n") ==
        "dir/a.yaml:1:11: groups[0].steps is not a key of groups[0]; expected match or lr_scale");
  CHECK(problem_of("groups: {match: a}\n") == "dir/a.yaml:1:9: groups is a map; expected a list of maps");
  CHECK(problem_of("groups: ~\n") == "dir/a.yaml:1:1: groups is null; expected a list of maps");
  CHECK(
      problem_of("groups: [match:a]\n") ==
      "dir/a.yaml:1:10: groups[0] is match:a; expected a map of keys (no space follows the colon; match: a)");
}

TEST_CASE("bind: bytes are read with their unit", "[recipe]") {
  CHECK(bound("room: 11.5GiB\n").options.room == 12348030976);
  CHECK(bound("room: 500MB\n").options.room == 500000000);
  CHECK(!bound("room: ~\n").options.room);
  CHECK(problem_of("room: 12\n") ==
        "dir/a.yaml:1:7: room is 12; expected bytes with a unit, as in 500MB or 11.5GiB, or ~");
  CHECK(problem_of("room: 0GiB\n") == "dir/a.yaml:1:7: room is 0GiB; expected more than 0 bytes or ~");
}

TEST_CASE("bind: durations and intervals are read with their unit", "[recipe]") {
  CHECK(bound("time: 30min\n").options.time == 1800.0);
  CHECK(problem_of("time: 90\n") ==
        "dir/a.yaml:1:7: time is 90; expected a duration with a unit, as in 90s, 30min, 2h or 1d, or ~");
  CHECK(problem_of("time: 0s\n") == "dir/a.yaml:1:7: time is 0s; expected a duration above 0 or ~");
  const auto every = [](const std::string& text) { return bound("every: " + text + "\n").options.every; };
  CHECK((every("100").count == 100 && every("100").unit == Interval::Unit::kSteps));
  CHECK((every("0.5ep").count == 0.5 && every("2ep").unit == Interval::Unit::kEpochs));
  CHECK((every("30min").count == 1800 && every("2h").unit == Interval::Unit::kSeconds));
  for (const std::string text : {"0", "-1", "1.5", "0ep", "ep", "0s", "'100'", "often", "[1]", "~"}) {
    CHECK_THAT(problem_of("every: " + text + "\n"),
               Catch::Matchers::EndsWith("; expected steps (100), epochs (1ep) or time (30min), above 0"));
  }
  for (const std::string text : {"1000000000001", "1e13ep", "99999999999999s"}) {
    CHECK_THAT(problem_of("every: " + text + "\n"),
               Catch::Matchers::EndsWith("; expected at most 1000000000000 steps, epochs or seconds"));
  }
}

TEST_CASE("bind: paths start from the folder of the file that names them", "[recipe]") {
  namespace fs = std::filesystem;
  CHECK(bound("path: ../data/x\n").options.path == (fs::current_path() / "data" / "x").string());
  CHECK(bound("path: /abs/x\n").options.path == "/abs/x");
  CHECK(problem_of("path: ''\n") == "dir/a.yaml:1:7: path is \"\"; expected a file or folder, or ~");
}

TEST_CASE("bind: a word is one of those that exist", "[recipe]") {
  CHECK(bound("colour: blue\n").options.colour == Colour::kBlue);
  CHECK(problem_of("colour: gren\n") ==
        "dir/a.yaml:1:9: colour is gren; expected red, green or blue; did you mean green?");
  CHECK(problem_of("colour: [red]\n") == "dir/a.yaml:1:9: colour is a list; expected red, green or blue");
}

TEST_CASE("bind: a component keeps its settings for later", "[recipe]") {
  const Options options = bound("model: {name: vit, depth: 2}\n").options;
  CHECK(options.model.name == "vit");
  CHECK(options.model.settings.find("depth")->scalar == "2");
  CHECK(bound("model: {depth: 2}\n").options.model.name == "mlp");
  CHECK(problem_of("model: vit\n") == "dir/a.yaml:1:8: model is vit; expected a map, as in {name: vit}");
  CHECK(problem_of("model: [vit]\n") == "dir/a.yaml:1:8: model is a list; expected a map with a name");
  CHECK(problem_of("model:\n  name:vit\n") ==
        "dir/a.yaml:2:3: model is name:vit; expected a map with a name (no space follows the colon; name: "
        "vit)");
}

TEST_CASE("bind: a section is a map of known keys", "[recipe]") {
  CHECK(bound("inner: {depth: 2}\n").options.depth == 2);
  CHECK(problem_of("inner: {depth: 4, dept: 1}\n") ==
        "dir/a.yaml:1:16: inner.depth is 4; expected 1 <= depth <= 3\n"
        "dir/a.yaml:1:19: inner.dept is not a key of inner; did you mean depth?");
  CHECK(problem_of("inner: {zzz: 1}\n") == "dir/a.yaml:1:9: inner.zzz is not a key of inner; expected depth");
  CHECK(problem_of("inner: 3\n") == "dir/a.yaml:1:8: inner is 3; expected a map of keys");
  CHECK(problem_of("inner:\n") == "dir/a.yaml:1:1: inner is null; expected a map of keys");
}

TEST_CASE("bind: an unknown key comes with what was likely meant", "[recipe]") {
  struct Sgd {
    double lr = 0;
    double weight_decay = 0;
  } options;
  const auto describe_sgd = [&](Visitor& v) {
    v.number("lr", options.lr, Range{0, 1}, "", "");
    v.number("weight_decay", options.weight_decay, Range{0, 1}, "", "");
  };
  const Hints hints{"sgd",
                    {{"epochs", ""},
                     {"validation.every", ""},
                     {"optimizer.momentum", "adam"},
                     {"model.momentum", "mlp"},
                     {"model.drop", "mlp"},
                     {"data.drop", "idx"}}};
  const auto problem = [&](const std::string& text) {
    const Document document = read_text(text, "a.yaml");
    return text_of(gputrain::recipe::bind(document.root, "optimizer", describe_sgd, {"name"}, hints));
  };
  CHECK(problem("name: sgd\n").empty());
  CHECK(problem("weight_decya: 1\n") ==
        "a.yaml:1:1: optimizer.weight_decya is not a key of sgd; did you mean weight_decay?");
  CHECK(problem("epochs: 1\n") ==
        "a.yaml:1:1: optimizer.epochs is not a key of sgd; it belongs at the top level");
  CHECK(problem("momentum: 1\n") ==
        "a.yaml:1:1: optimizer.momentum is not a key of sgd; it is a key of adam");
  CHECK(problem("drop: 1\n") ==
        "a.yaml:1:1: optimizer.drop is not a key of sgd; it belongs under data or under model");
  CHECK(problem("evry: 1\n") ==
        "a.yaml:1:1: optimizer.evry is not a key of sgd; did you mean validation.every?");
  CHECK(problem("zzz: 1\n") ==
        "a.yaml:1:1: optimizer.zzz is not a key of sgd; expected lr, weight_decay or name");
}

TEST_CASE("bind: a misspelt key of another kind is said to be one", "[recipe]") {
  double lr = 0;
  const auto describe_adamw = [&](Visitor& v) { v.number("lr", lr, Range{0, 1}, "", ""); };
  const Hints hints{"adamw", {{"optimizer.lr", "adamw"}, {"optimizer.momentum", "sgd"}}};
  const Document document = read_text("momentumm: 1\n", "a.yaml");
  CHECK(text_of(gputrain::recipe::bind(document.root, "optimizer", describe_adamw, {"name"}, hints)) ==
        "a.yaml:1:1: optimizer.momentumm is not a key of adamw; did you mean momentum, a key of sgd?");
}

TEST_CASE("bind: what could not be read is no second problem", "[recipe]") {
  Document document = read_text("lr: x\nmean: [x, 2]\nmodel: x\ninner: x\n", "a.yaml");
  for (const char* path : {"lr", "model", "inner"}) document.root.find(path)->unreadable = true;
  document.root.find("mean")->list[0].unreadable = true;
  Options options;
  CHECK(text_of(gputrain::recipe::bind(document.root, "", [&](Visitor& v) { describe(v, options); })) ==
        "a.yaml:2:11: mean[1] is 2; expected 0 <= mean[1] <= 1");
  CHECK(options.lr == 0.5);
  CHECK(options.model.settings.unreadable);
}
