#include "recipe/compose.h"

#include "base/text.h"
#include "support/catch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

using namespace gputrain::recipe;
namespace fs = std::filesystem;

namespace {

const ComponentNames kComponents{{"model", ""}, {"optimizer", "sgd"}};

using Texts = std::map<std::string, std::string>;  // of files, by name

// Recipe files in a folder that goes away.
struct Files {
  fs::path folder;
  explicit Files(const Texts& files) {
    std::string name = (fs::temp_directory_path() / "gputrain-XXXXXX").string();
    folder = mkdtemp(name.data());
    for (const auto& [file, text] : files) {
      fs::create_directories((folder / file).parent_path());
      std::ofstream(folder / file) << text;
    }
  }
  ~Files() { fs::remove_all(folder); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  Composed compose(const std::string& file = "a.yaml") const {
    return gputrain::recipe::compose((folder / file).string(), kComponents);
  }

  std::string without_folder(std::string text) const {
    const std::string prefix = folder.string() + "/";
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }

  std::string problems(const std::string& file = "a.yaml") const {
    std::vector<Problem> problems = compose(file).problems;
    sort_by_position(problems);
    return without_folder(text_of(problems));
  }
};

std::string problems_with(const Texts& files) {
  return Files(files).problems();
}

std::string value(const Composed& composed, const std::string& path) {
  const Node* node = find_path(composed.root, path);
  return node != nullptr ? node->scalar : "(absent)";
}

// A variable of the environment with another value for a while.
struct Variable {
  std::string name;
  std::optional<std::string> before;
  Variable(const std::string& variable, const std::string& value) : name(variable) {
    if (const char* old = std::getenv(name.c_str())) before = old;
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (before) {
      setenv(name.c_str(), before->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

}  // namespace

TEST_CASE("compose: a file without a base is read as it is", "[recipe]") {
  const Files files(Texts{{"a.yaml", "seed: 1\nmodel: {base: x}\n"}});
  const Composed composed = files.compose();
  CHECK(composed.problems.empty());
  CHECK(composed.notices.empty());
  CHECK(composed.text == "seed: 1\nmodel: {base: x}\n");
  CHECK(composed.root.map.size() == 2);
  CHECK_FALSE(composed.root.unreadable);
  CHECK(value(composed, "model.base") == "x");
}

TEST_CASE("compose: a file wins over its base, which it names relative to itself", "[recipe]") {
  const Files files(Texts{{"sub/a.yaml", "base: ../common/b.yaml\nseed: 2\noptimizer: {lr: 0.2}\n"},
                          {"common/b.yaml", "seed: 1\nepochs: 3\noptimizer: {lr: 0.1, momentum: 0.9}\n"}});
  const Composed composed = files.compose("sub/a.yaml");
  REQUIRE(composed.problems.empty());
  CHECK(composed.text == "base: ../common/b.yaml\nseed: 2\noptimizer: {lr: 0.2}\n");
  CHECK(composed.root.find("base") == nullptr);
  CHECK(value(composed, "seed") == "2");
  CHECK(value(composed, "epochs") == "3");
  CHECK(value(composed, "optimizer.lr") == "0.2");
  CHECK(value(composed, "optimizer.momentum") == "0.9");
  CHECK(files.without_folder(origin_of(composed.root, "seed").text()) == "sub/a.yaml:2:7");
  CHECK(files.without_folder(origin_of(composed.root, "epochs").text()) == "common/b.yaml:2:9");
  CHECK(files.without_folder(composed.root.origin.text()) == "sub/a.yaml");
}

TEST_CASE("compose: of several bases the later wins, each over its own bases", "[recipe]") {
  const Files files(Texts{{"a.yaml", "base: [b.yaml, c.yaml]\nw: a\n"},
                          {"b.yaml", "base: d.yaml\nw: b\nx: b\ny: b\n"},
                          {"c.yaml", "w: c\nx: c\n"},
                          {"d.yaml", "w: d\nx: d\ny: d\nz: d\n"}});
  const Composed composed = files.compose();
  REQUIRE(composed.problems.empty());
  CHECK(value(composed, "w") == "a");
  CHECK(value(composed, "x") == "c");
  CHECK(value(composed, "y") == "b");
  CHECK(value(composed, "z") == "d");
}

TEST_CASE("compose: absolute names and the home folder work", "[recipe]") {
  const Files files(Texts{{"home/b.yaml", "x: 1\n"}, {"c.yaml", "y: 2\n"}});
  std::ofstream(files.folder / "a.yaml")
      << "base: ['~/b.yaml', " << (files.folder / "c.yaml").string() << "]\n";
  const Variable home("HOME", (files.folder / "home").string());
  const Composed composed = files.compose();
  CHECK(composed.problems.empty());
  CHECK(value(composed, "x") == "1");
  CHECK(value(composed, "y") == "2");
}

TEST_CASE("compose: a relative name is relative to the file behind a linked folder", "[recipe]") {
  const Files files(Texts{{"real/deep/a.yaml", "base: ../b.yaml\n"}, {"real/b.yaml", "x: right\n"}});
  fs::create_directory_symlink(files.folder / "real/deep", files.folder / "link");
  std::ofstream(files.folder / "b.yaml") << "x: wrong\n";
  const Composed composed = files.compose("link/a.yaml");
  CHECK(composed.problems.empty());
  CHECK(value(composed, "x") == "right");
}

TEST_CASE("compose: bases that lead back to a file are refused with the way they take", "[recipe]") {
  CHECK(problems_with({{"a.yaml", "base: b.yaml\n"}, {"b.yaml", "base: a.yaml\n"}}) ==
        "a.yaml:1:7: base b.yaml leads back here: a.yaml -> b.yaml -> a.yaml");
  CHECK(problems_with({{"a.yaml", "base: ./a.yaml\n"}}) ==
        "a.yaml:1:7: base ./a.yaml leads back here: a.yaml -> a.yaml");
  CHECK(problems_with(
            {{"a.yaml", "base: b.yaml\n"}, {"b.yaml", "base: c.yaml\n"}, {"c.yaml", "base: b.yaml\n"}}) ==
        "b.yaml:1:7: base c.yaml leads back here: b.yaml -> c.yaml -> b.yaml");
}

TEST_CASE("compose: a file is known again behind a link", "[recipe]") {
  const Files files(Texts{{"a.yaml", "base: b.yaml\n"}});
  fs::create_symlink("a.yaml", files.folder / "b.yaml");
  CHECK(files.problems() == "a.yaml:1:7: base b.yaml leads back here: a.yaml -> a.yaml");
}

TEST_CASE("compose: two bases may share a base, whose problems are told once", "[recipe]") {
  const Files files(Texts{{"a.yaml", "base: [b.yaml, c.yaml]\n"},
                          {"b.yaml", "base: d.yaml\nx: 1\n"},
                          {"c.yaml", "base: d.yaml\ny: 2\n"},
                          {"d.yaml", "z: 3\nz: 4\n"}});
  CHECK(files.problems() == "d.yaml:2:1: z is given twice; the first is in line 1");
  const Composed composed = files.compose();
  CHECK(value(composed, "x") == "1");
  CHECK(value(composed, "y") == "2");
  CHECK(value(composed, "z") == "3");
}

TEST_CASE("compose: bases that share bases many times over are read once each", "[recipe]") {
  Texts files{{"n14.yaml", "x: 1\n"}};
  for (int i = 0; i < 14; ++i) {
    const std::string file = i == 0 ? "a.yaml" : "n" + std::to_string(i) + ".yaml";
    const std::string next = "n" + std::to_string(i + 1) + ".yaml";
    files[file] = gputrain::concat("base: [", next, ", ", next, "]\n");
  }
  CHECK(problems_with(files).empty());
}

TEST_CASE("compose: what is no file is refused at the place of the base", "[recipe]") {
  const auto [line, problem] = GENERATE(table<std::string, std::string>(
      {{"base: b.yaml", "1:7: cannot read base b.yaml: No such file or directory"},
       {"base: [sub]", "1:8: cannot read base sub: it is a folder; expected a file"},
       {"base: ''", "1:7: base is \"\"; expected a file or a list of files"},
       {"base: ~", "1:1: base is null; expected a file or a list of files"},
       {"base:", "1:1: base is null; expected a file or a list of files"},
       {"base: {a: b}", "1:7: base is a map; expected a file or a list of files"},
       {"base: [sub/c.yaml, ~]", "1:20: base[1] is null; expected a file"},
       {"base: [[sub/c.yaml]]", "1:8: base[0] is a list; expected a file"},
       {"base: ${env:X}",
        "1:7: base is ${env:X}; expected the name of a file, since ${...} is read later"}}));
  const Files files(Texts{{"a.yaml", line + "\nseed: 1\n"}, {"sub/c.yaml", "x: 1\n"}});
  CHECK(files.problems() == "a.yaml:" + problem);
  CHECK(value(files.compose(), "seed") == "1");
  CHECK(files.compose().root.unreadable);
}

TEST_CASE("compose: an empty list of bases includes nothing", "[recipe]") {
  CHECK(problems_with({{"a.yaml", "base: []\nseed: 1\n"}}).empty());
}

TEST_CASE("compose: the problems of all files come together", "[recipe]") {
  CHECK(problems_with({{"a.yaml", "base: [b.yaml, c.yaml, d.yaml]\nx: 1\nx: 2\n"},
                       {"b.yaml", "y: [1\n"},
                       {"c.yaml", ""},
                       {"d.yaml", "- 1\n"}}) ==
        "a.yaml:3:1: x is given twice; the first is in line 2\n"
        "b.yaml:1:4: the closing ] of a list is missing\n"
        "c.yaml: the recipe is empty; expected keys, as in max_steps: 100\n"
        "d.yaml:1:1: the recipe is not a map; expected lines of key: value");
}

TEST_CASE("compose: a file that cannot be read leaves null", "[recipe]") {
  const Composed composed = compose("/no/such.yaml", kComponents);
  CHECK(composed.root.kind == Node::Kind::kNull);
  CHECK(text_of(composed.problems) == "/no/such.yaml: cannot read the recipe: No such file or directory");
}

TEST_CASE("compose: a name that changes between files drops the old settings, with a notice", "[recipe]") {
  const Files files(
      {{"a.yaml", "base: b.yaml\noptimizer: {name: adamw, eps: 1}\n"}, {"b.yaml", "optimizer: {lr: 0.1}\n"}});
  const Composed composed = files.compose();
  CHECK(value(composed, "optimizer.lr") == "(absent)");
  REQUIRE(composed.notices.size() == 1);
  CHECK(files.without_folder(composed.notices[0]) == "a.yaml:2:19: the settings of sgd are left out: lr");
}

TEST_CASE("compose: bases nest 16 deep and no deeper", "[recipe]") {
  const auto chain = [](int depth) {
    Texts files{{"b" + std::to_string(depth) + ".yaml", "x: 1\n"}};
    for (int i = 0; i < depth; ++i) {
      const std::string file = i == 0 ? "a.yaml" : "b" + std::to_string(i) + ".yaml";
      files[file] = "base: b" + std::to_string(i + 1) + ".yaml\n";
    }
    return files;
  };
  CHECK(problems_with(chain(16)).empty());
  CHECK(problems_with(chain(17)) == "b16.yaml:1:7: bases are nested more than 16 deep");
}

TEST_CASE("compose: neither many bases nor large ones fill the memory", "[recipe]") {
  std::string many = "base: [b.yaml";
  for (int i = 0; i < 5000; ++i) many += ", b.yaml";
  const std::string hundred_and_first = "a.yaml:1:" + std::to_string(8 + 100 * 8);
  CHECK(problems_with({{"a.yaml", many + "]\n"}, {"b.yaml", "x: 1\n"}}) ==
        hundred_and_first + ": more than 100 bases are included");
  std::string large = "x: [0";
  for (int i = 0; i < 60'000; ++i) large += ",0";
  CHECK(problems_with({{"a.yaml", "base: [b.yaml, b.yaml, b.yaml]\n"}, {"b.yaml", large + "]\n"}}) ==
        "a.yaml:1:16: with b.yaml the bases hold more than 100000 values");
}
