#include "recipe/read.h"

#include "support/catch.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace gputrain::recipe;

namespace {

std::string problems_of(const std::string& text) {
  return text_of(read_text(text, "a.yaml").problems);
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("read: each value has its line and column", "[recipe]") {
  const Document document = read_text("a: 1\nb:\n  c: [x, \"y z\"]\n  d: ~\n", "a.yaml");
  REQUIRE(document.problems.empty());
  CHECK(origin_of(document.root, "a").text() == "a.yaml:1:4");
  const Node* list = find_path(document.root, "b.c");
  REQUIRE(list != nullptr);
  REQUIRE(list->list.size() == 2);
  CHECK(list->origin.text() == "a.yaml:3:6");
  CHECK(list->list[1].origin.text() == "a.yaml:3:10");
  CHECK(list->list[1].scalar == "y z");
  CHECK(list->list[1].quoted);
  CHECK(!list->list[0].quoted);
  CHECK(find_path(document.root, "b.d")->kind == Node::Kind::kNull);
  CHECK(find_path(document.root, "b.e") == nullptr);
  CHECK(document.root.origin.text() == "a.yaml");
}

TEST_CASE("read: a key with dashes is the key with underscores", "[recipe]") {
  const Document document = read_text("micro-batch-size: 1\n", "a.yaml");
  CHECK(document.root.find("micro_batch_size") != nullptr);
  CHECK(problems_of("a-b: 1\nc: 2\na_b: 3\n") == "a.yaml:3:1: a_b is given twice; the first is in line 1");
}

TEST_CASE("read: keys given twice are all found, with both lines", "[recipe]") {
  CHECK(problems_of("a: 1\nb: {c: 1, c: 2}\na: 3\n") ==
        "a.yaml:2:11: c is given twice; the first is in line 2\n"
        "a.yaml:3:1: a is given twice; the first is in line 1");
}

TEST_CASE("read: byte order mark, CRLF and a missing last line end are accepted", "[recipe]") {
  const Document document = read_text(
      "\xEF\xBB\xBF"
      "a: 1\r\nb:\r\n  c: text",
      "a.yaml");
  CHECK(document.problems.empty());
  CHECK(find_path(document.root, "b.c")->scalar == "text");
  CHECK(find_path(document.root, "b.c")->origin.text() == "a.yaml:3:6");
}

TEST_CASE("read: what is not one map of keys is refused", "[recipe]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"", "a.yaml: the recipe is empty; expected keys, as in max_steps: 100"},
       {"# nothing\n", "a.yaml: the recipe is empty; expected keys, as in max_steps: 100"},
       {"---\n", "a.yaml: the recipe is empty; expected keys, as in max_steps: 100"},
       {"- a\n", "a.yaml:1:1: the recipe is not a map; expected lines of key: value"},
       {"text\n", "a.yaml:1:1: the recipe is not a map; expected lines of key: value"},
       {"a: 1\n---\nb: 2\n", "a.yaml:2:1: a second document starts here; expected one document per file"},
       {"? [a]\n: b\n", "a.yaml:1:3: a key is not a word; expected key: value"}}));
  CHECK(problems_of(text) == expected);
}

TEST_CASE("read: a missing space after a colon is explained", "[recipe]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"lr:0.1\n", "a.yaml:1:1: no space follows the colon; expected lr: 0.1"},
       {"a: 1\nlr:0.1\n", "a.yaml:2:1: lr:0.1 is one word in YAML; expected lr: 0.1"},
       {"a: 1\nlr:0.1\nb: 2\n", "a.yaml:2:1: no space follows the colon; expected lr: 0.1"},
       {"o:\n  name:sgd\n  lr: 0.1\n", "a.yaml:2:3: no space follows the colon; expected name: sgd"},
       {"o: {lr:0.1, a: 1}\n", "a.yaml:1:5: lr:0.1 is one word in YAML; expected lr: 0.1"}}));
  CHECK(problems_of(text) == expected);
}

TEST_CASE("read: values with colons in them are left alone", "[recipe]") {
  CHECK(problems_of("device: cuda:0\nurl: http://a/b\ntime: 12:30\n\"x:y\": ~\n").empty());
}

TEST_CASE("read: mistakes of syntax are explained where they are", "[recipe]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"a:\n\tb: 1\n", "a.yaml:2:2: a tab indents this line; expected spaces"},
       {"a:\n  b: 1\n\tc: 1\n", "a.yaml:3:2: a tab indents this line; expected spaces"},
       {"a: \"x\nb: 1\n", "a.yaml:1:4: the closing quotation mark of a text is missing"},
       {"a: [1\n", "a.yaml:1:4: the closing ] of a list is missing"},
       {"a: {b: 1\n", "a.yaml:1:4: the closing } of a map is missing"},
       {"a: it's # [\nb: [\"x]\", {c: 1}\n", "a.yaml:2:4: the closing ] of a list is missing"},
       {"a: 'it''s'\nb: '\xC3\xA4' # '\n\xC3\xA4: {c: \"\\\"\"\n",
        "a.yaml:3:4: the closing } of a map is missing"},
       {"a: {b: 1,\n", "a.yaml:1:4: the closing } of a map is missing"},
       {"a: {b: 'x}\nc: 1\n", "a.yaml:1:8: the closing quotation mark of a text is missing"},
       {"a: 1\n  b: 2\n",
        "a.yaml:2:4: this colon is out of place; is the line indented too far, or is text not in quotes?"},
       {"a: !!int 1\n",
        "a.yaml:1:4: tags (!...) are not read; write text in quotes, and other values plainly"}}));
  CHECK(problems_of(text) == expected);
}

TEST_CASE("read: a substitution inside of brackets is told to need quotes", "[recipe]") {
  const std::string hint = "; put ${...} in quotes inside { } and [ ]";
  CHECK(problems_of("a: {b: ${env:X}}\n") == "a.yaml:1:9: the closing } of a map is missing" + hint);
  CHECK(problems_of("a: [${b.c}]\n") == "a.yaml:1:6: the closing ] of a list is missing" + hint);
  CHECK(problems_of("a: {\n  b: 1,\n  c: x${d}\n}\n") ==
        "a.yaml:3:8: the closing } of a map is missing" + hint);
  CHECK(problems_of("a: ${b}\nc: {\n") == "a.yaml:2:4: the closing } of a map is missing");
  CHECK(problems_of("a: {b: \"${env:X}\"}\n").empty());
  std::vector<Problem> problems;
  Origin origin;
  origin.argument = "a={b: ${c}}";
  read_value("{b: ${c}}", origin, problems);
  CHECK(text_of(problems) == "argument a={b: ${c}}: the closing } of a map is missing" + hint);
}

TEST_CASE("read: an alias of nothing is refused", "[recipe]") {
  CHECK_THAT(problems_of("a: *b\n"),
             ContainsSubstring("a.yaml:1:4: this is not YAML: the referenced anchor is not defined"));
}

TEST_CASE("read: bytes that no recipe holds are refused with their place", "[recipe]") {
  const auto [text, expected] = GENERATE(
      table<std::string, std::string>({{"a: 1\nb: \xFF\n", "a.yaml:2:4: byte 0xff is not UTF-8"},
                                       {"a: \xC3\xA4\xC0\x80\n", "a.yaml:1:5: byte 0xc0 is not UTF-8"},
                                       {"a: \xED\xA0\x80\n", "a.yaml:1:4: byte 0xed is not UTF-8"},
                                       {"a: \xE2\x82", "a.yaml:1:4: byte 0xe2 is not UTF-8"},
                                       {"a: 1\x04\nb: 2\n", "a.yaml:1:5: byte 0x04 is a control character"},
                                       {"a: \"\\0\"\n", "a.yaml:1:4: the text holds a zero byte"}}));
  CHECK(problems_of(text) == expected);
  CHECK(problems_of("a: \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\n").empty());
}

TEST_CASE("read: aliases and merge keys are expanded", "[recipe]") {
  const Document document =
      read_text("a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 5\nd: *a\n", "a.yaml");
  REQUIRE(document.problems.empty());
  CHECK(find_path(document.root, "c.x")->scalar == "5");
  CHECK(find_path(document.root, "c.y")->scalar == "2");
  CHECK(find_path(document.root, "c.z")->scalar == "4");
  CHECK(find_path(document.root, "c")->map.size() == 3);
  CHECK(find_path(document.root, "d.y")->origin.text() == "a.yaml:1:17");
  CHECK(problems_of("a: {<<: 1}\n") == "a.yaml:1:9: << takes a map, or a list of maps");
}

TEST_CASE("read: aliases cannot be used to exhaust memory", "[recipe]") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    const std::string name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + repeated(before + ", ", 9) + before + "]\n";
  }
  CHECK_THAT(problems_of(bomb), ContainsSubstring("the document holds more than 100000 values"));
  CHECK(problems_of("a: &a [*a]\n") == "a.yaml:1:8: the alias stands inside of what it names");
}

TEST_CASE("read: deep nesting is refused, by brackets or by aliases", "[recipe]") {
  const std::string expected = "lists and maps are nested more than 64 deep";
  CHECK(problems_of("a: " + repeated("[", 63) + repeated("]", 63) + "\n").empty());
  CHECK_THAT(problems_of("a: " + repeated("[", 64) + repeated("]", 64) + "\n"), ContainsSubstring(expected));
  CHECK_THAT(problems_of("a: " + repeated("[", 10000) + "\n"), ContainsSubstring(expected));
  const std::string half = repeated("[", 40);
  const std::string other_half = repeated("]", 40) + "\n";
  CHECK_THAT(problems_of("a: &a " + half + other_half + "b: " + half + "*a" + other_half),
             ContainsSubstring(expected));
}

TEST_CASE("read: what is too large, missing, or no file is refused", "[recipe]") {
  CHECK(problems_of(std::string(1 << 20, '#').append("\n")) == "a.yaml: the recipe is larger than 1.0 MiB");
  CHECK(text_of(read_document("/no/such.yaml").problems) ==
        "/no/such.yaml: cannot read the recipe: No such file or directory");
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(text_of(read_document(folder).problems) ==
        folder + ": cannot read the recipe: it is a folder; expected a file");
}

TEST_CASE("read: a value of the command line is data unless it starts like YAML", "[recipe]") {
  std::vector<Problem> problems;
  Origin origin;
  origin.argument = "key=value";
  const auto scalar = [&](const char* text) { return read_value(text, origin, problems).scalar; };
  CHECK(scalar("1e-4") == "1e-4");
  CHECK(scalar("a: b # c") == "a: b # c");
  CHECK(scalar("*x") == "*x");
  CHECK(scalar("\"a b\"") == "a b");
  CHECK(read_value("\"1\"", origin, problems).quoted);
  CHECK(read_value("~", origin, problems).kind == Node::Kind::kNull);
  CHECK(read_value("", origin, problems).kind == Node::Kind::kNull);
  const Node list = read_value("[1, {a: 2}]", origin, problems);
  REQUIRE(list.list.size() == 2);
  CHECK(list.list[1].find("a")->origin.text() == "argument key=value");
  CHECK(problems.empty());
  read_value("a\xFF", origin, problems);
  read_value("a\x01", origin, problems);
  CHECK(text_of(problems) ==
        "argument key=value: byte 0xff is not UTF-8\n"
        "argument key=value: byte 0x01 is a control character");
  problems.clear();
  read_value("[1", origin, problems);
  read_value("\"a", origin, problems);
  CHECK(text_of(problems) ==
        "argument key=value: the closing ] of a list is missing\n"
        "argument key=value: the closing quotation mark of a text is missing");
}
