#include "recipe/write.h"

#include "base/text.h"
#include "recipe/catalogue.h"
#include "recipe/paths.h"
#include "recipe/substitute.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

namespace gputrain::recipe {
namespace {

bool is_plain(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
  constexpr std::string_view kDigitsAndMarks = "0123456789.:-+";
  // What some reader of YAML takes for a boolean or for null.
  static const std::set<std::string_view> words = {
      "y",   "Y",   "n",   "N",    "yes",  "Yes",  "YES",   "no",    "No",    "NO",   "on",   "On",  "ON",
      "off", "Off", "OFF", "true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL"};
  if (text.empty() || kLetters.find(text.front()) == std::string_view::npos || text.back() == ':')
    return false;
  for (const char c : text) {
    if (kLetters.find(c) == std::string_view::npos && kDigitsAndMarks.find(c) == std::string_view::npos)
      return false;
  }
  return words.count(text) == 0;
}

std::string escaped(char c) {
  if (c == '"' || c == '\\') return {'\\', c};
  if (c == '\n') return "\\n";
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20 && code != 0x7F) return {c};
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "\\x%02x", code);
  return hex.data();
}

class Lines {
 public:
  explicit Lines(const Node* root) : root_(root) {}

  void add(const Key& key, const std::string& default_value) {
    const auto depth = std::count(key.path.begin(), key.path.end(), '.');
    std::string line =
        concat(std::string(2 * static_cast<std::size_t>(depth), ' '), last_part(key.path), ':');
    const bool is_map = key.type == Key::Type::kSection || key.type == Key::Type::kComponent;
    if (!is_map) line += " " + escape_references(key.value);
    if (!is_map && root_ != nullptr)
      line += concat(indent_to(line), "# ", source_text(*root_, key, default_value));
    text_ += line + '\n';
  }

  const std::string& text() const { return text_; }

 private:
  static std::string indent_to(const std::string& line) {
    constexpr std::size_t kColumn = 40;
    return std::string(line.size() + 2 < kColumn ? kColumn - line.size() : 2, ' ');
  }

  const Node* root_;
  std::string text_;
};

}  // namespace

std::string scalar_text(const std::string& text) {
  if (is_plain(text)) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += escaped(c);
  return quoted + '"';
}

std::string source_text(const Node& root, const Key& key, const std::string& default_value) {
  const Node* node = find_path(root, key.path);
  if (node == nullptr) return default_value == "auto" ? "auto" : "default";
  const bool is_auto = node->kind == Node::Kind::kScalar && node->scalar == "auto";
  return is_auto ? node->origin.text() + ", auto" : node->origin.text();
}

std::vector<Key> keys_with_values(const Recipe& recipe, const std::map<std::string, Describe>& components) {
  Recipe copy = recipe;  // describing gives write access, which listing does not use
  std::vector<Key> all;
  for (Key& key : keys([&](Visitor& v) { describe(v, copy); })) {
    all.push_back(std::move(key));
    if (all.back().type != Key::Type::kComponent) continue;
    const std::string component = all.back().path;
    Key name = name_key(all.back());
    name.value = scalar_text(name.value);
    all.push_back(std::move(name));
    const Describe& describe_settings = components.at(component);
    if (!describe_settings) continue;  // the recipe names no kind that exists
    for (Key& own : keys(describe_settings, component)) all.push_back(std::move(own));
  }
  return all;
}

std::string write_recipe(const Recipe& recipe, const std::map<std::string, Describe>& components,
                         const Node* root) {
  const Catalogue defaults = recipe_catalogue();
  Lines lines(root);
  for (const Key& key : keys_with_values(recipe, components)) {
    // The settings of a component are never replaced by what `auto` stands for.
    const Key* before = defaults.find(key.path);
    lines.add(key, before != nullptr ? before->value : key.value);
  }
  return lines.text();
}

}  // namespace gputrain::recipe
