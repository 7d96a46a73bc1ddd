#include "recipe/reference.h"

#include "base/text.h"
#include "recipe/paths.h"

#include <cctype>
#include <string_view>
#include <tuple>
#include <utility>

namespace gputrain::recipe {
namespace {

constexpr const char* kPreface = R"(# The recipe

<!-- Made by `gputrain schema --markdown`; edit the descriptions in the source instead. -->

Every key that a recipe can have. `gputrain check RECIPE --explain KEY` says the same of one key, with the value that it
has in a recipe and where that comes from; `gputrain check RECIPE --print` prints a recipe with every value.

- **A recipe** is one map in YAML. It names `model` and `data`, and what ends the run: `epochs`, `max_steps` or
  `max_time`; the first one reached ends it. Everything else has a default.
- **Components** are maps with a `name`, which chooses the kind, and the keys of that kind. `model` and `data` need a
  name; without one, the others are of their default kind.
- **Keys** are words in small letters with underscores; dashes are accepted. A key that does not exist is an error.
- **Numbers** are decimal: `0.1`, `1e-4`, `.5`. Integers have digits alone. `auto` leaves a value to the program, and
  `~` (null) means that there is none.
- **Units** stand in values: durations are `250ms`, `90s`, `30min`, `2h` or `1d`, bytes `500MB` (in 1000s) or `11.5GiB`
  (in 1024s). How often something happens is a number of steps (`100`), epochs (`1ep`) or time (`30min`).
- **Files and folders** are relative to the recipe that names them, on the command line and for `output_dir` to the
  working directory. `~/` is the home folder.
- **Other recipes**: `base: other.yaml`, or a list of files, puts this recipe over others: maps merge, lists and values
  replace. Where a component gets another `name`, the settings of the old one are dropped.
- **The command line** goes over the recipe: `gputrain run RECIPE optimizer.lr=0.05 ~max_grad_norm` sets a key and
  removes another. `--set KEY=VALUE` and `--unset KEY` say the same; zsh wants `~KEY` in quotes.
- **Substitution**: `${env:VAR}` is an environment variable, `${env:VAR,default}` the same with a value for when it is
  not set, `${optimizer.lr}` the value of another key. Inside `{ }` and `[ ]` it stands in quotes:
  `{lr: "${env:LR,0.1}"}`. `$${` is the text `${`.
)";

struct Row {
  std::string key;
  std::string accepted;
  std::string default_value;
  std::string unit;
  std::string meaning;

  bool operator==(const Row& other) const {
    return std::tie(key, accepted, default_value, unit, meaning) ==
           std::tie(other.key, other.accepted, other.default_value, other.unit, other.meaning);
  }
};

// Text for a cell of a table: `|` would end it, and `<name>` would be taken for HTML.
std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_tag =
        text[i] == '<' && i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[i + 1])) != 0;
    if (text[i] == '|' || is_tag) safe += '\\';
    safe += text[i];
  }
  return safe;
}

std::string code(const std::string& text) {
  return concat('`', text, '`');
}

// "[logging](#logging)"
std::string link(const std::string& heading) {
  return concat('[', heading, "](#", heading, ')');
}

bool is_map(const Key& key) {
  return key.type == Key::Type::kSection || key.type == Key::Type::kComponent;
}

Row row(const Key& key) {
  if (is_map(key)) return {code(key.path), "a map: " + link(key.path), "", "", escaped(key.meaning)};
  // An empty text says nothing; the meaning tells what then holds.
  const std::string shown = key.value.empty() || key.value == "\"\"" ? "" : code(key.value);
  return {code(key.path), escaped(type_text(key)), shown, escaped(key.unit), escaped(key.meaning)};
}

std::string table(const std::vector<Row>& rows) {
  std::string text = "\n| key | what may be written | default | unit | meaning |\n|---|---|---|---|---|\n";
  for (const Row& one : rows) {
    text +=
        concat("| ", join({one.key, one.accepted, one.default_value, one.unit, one.meaning}, " | "), " |\n");
  }
  return text;
}

std::string heading(int level, const std::string& text) {
  return concat('\n', std::string(static_cast<std::size_t>(level), '#'), ' ', text, '\n');
}

// "How gradients change the weights."
std::string sentence(std::string text) {
  text = escaped(text);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return concat('\n', text, ".\n");
}

// Rows of the keys that stand directly in the map `parent`.
std::vector<Row> rows_in(const std::string& parent, const std::vector<Key>& keys) {
  std::vector<Row> rows;
  for (const Key& key : keys) {
    if (split_path(key.path).first == parent) rows.push_back(row(key));
  }
  return rows;
}

// Kinds that have the same keys, as those of a family do, share a table.
struct Family {
  std::vector<std::string> names;
  std::vector<Row> rows;
};

std::string component(const Catalogue& catalogue, const Key& key) {
  std::vector<Family> families;
  std::string kinds = "\n| kind | meaning |\n|---|---|\n";
  for (const Kind* kind : catalogue.shown_kinds(key.path)) {
    kinds += concat("| ", code(kind->name), " | ", escaped(kind->meaning), " |\n");
    std::vector<Row> rows = rows_in(key.path, kind->keys);
    if (families.empty() || !(families.back().rows == rows)) families.push_back({{}, std::move(rows)});
    families.back().names.push_back(code(kind->name));
  }
  std::string text =
      heading(2, key.path) + sentence(key.meaning) + table({row(catalogue.name_key(key.path))}) + kinds;
  for (const Family& family : families) {
    text += heading(3, concat(key.path, ": ", join(family.names, ", ")));
    text += family.rows.empty() ? "\nNo keys of its own.\n" : table(family.rows);
  }
  return text;
}

}  // namespace

std::string reference(const Catalogue& catalogue) {
  std::string text = kPreface;
  text += heading(2, "Top level") + table(rows_in("", catalogue.keys));
  for (const Key& key : catalogue.keys) {
    if (key.type == Key::Type::kComponent) text += component(catalogue, key);
    if (key.type == Key::Type::kSection) {
      text += heading(2, key.path) + sentence(key.meaning) + table(rows_in(key.path, catalogue.keys));
    }
  }
  return text;
}

}  // namespace gputrain::recipe
