#include "recipe/reference.h"

#include "support/catch.h"

using namespace gputrain::recipe;

namespace {

Key key(const std::string& path, const std::string& value, const std::string& meaning) {
  Key made;
  made.path = path;
  made.value = value;
  made.meaning = meaning;
  return made;
}

Catalogue catalogue() {
  Catalogue made;
  Key component = key("optimizer", "sgd", "how weights change");
  component.type = Key::Type::kComponent;
  Key section = key("cpu", "", "settings of the CPU");
  section.type = Key::Type::kSection;
  Key threads = key("cpu.threads", "auto", "threads that compute");
  threads.type = Key::Type::kInteger;
  threads.range = Range{1, 4096};
  threads.unit = "threads";
  threads.takes_auto = true;
  made.keys = {key("output_dir", "\"\"", "run directory; default: runs/<name>"), component, section, threads};
  const Key lr = key("optimizer.lr", "0.1", "a|b");
  made.kinds["optimizer"] = {{"sgd", "plain", {lr}},
                             {"momentum", "with momentum", {lr}},
                             {"none", "no update", {}},
                             {"testing.one", "a seam", {}}};
  return made;
}

}  // namespace

TEST_CASE("reference: a row tells type, default, meaning and unit", "[recipe]") {
  CHECK_THAT(
      reference(catalogue()),
      ContainsSubstring("\n## cpu\n\nSettings of the CPU.\n\n"
                        "| key | what may be written | default | unit | meaning |\n|---|---|---|---|---|\n"
                        "| `cpu.threads` | integer, 1 <= threads <= 4096, or auto | `auto` | "
                        "threads | threads that compute |\n"));
}

TEST_CASE("reference: maps link to their section", "[recipe]") {
  CHECK_THAT(reference(catalogue()),
             ContainsSubstring("| `cpu` | a map: [cpu](#cpu) |  |  | settings of the CPU |\n"));
}

TEST_CASE("reference: what Markdown would take for HTML or the end of a cell is escaped", "[recipe]") {
  CHECK_THAT(reference(catalogue()),
             ContainsSubstring("| `output_dir` | text |  |  | run directory; default: runs/\\<name> |"));
  CHECK_THAT(reference(catalogue()), ContainsSubstring("a\\|b"));
}

TEST_CASE("reference: kinds with equal keys share a table, and kinds for tests are left out", "[recipe]") {
  const std::string page = reference(catalogue());
  CHECK_THAT(page, ContainsSubstring(
                       "| `optimizer.name` | sgd, momentum or none | `sgd` |  | kind of optimizer |\n"));
  CHECK_THAT(page, ContainsSubstring("| `momentum` | with momentum |\n"));
  CHECK_THAT(page, ContainsSubstring("### optimizer: `sgd`, `momentum`\n\n| key |"));
  CHECK_THAT(page, ContainsSubstring("### optimizer: `none`\n\nNo keys of its own.\n"));
  CHECK(page.find("testing.") == std::string::npos);
}
