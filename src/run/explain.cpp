#include "base/text.h"
#include "recipe/write.h"
#include "run/assemble.h"
#include "run/run.h"
#include "run/standard_output.h"

#include <algorithm>
#include <utility>

namespace gputrain::run {
namespace {

using recipe::Key;

std::string row(const std::string& what, const std::string& text) {
  constexpr std::size_t kWidth = 9;
  return text.empty() ? "" : concat("  ", what, std::string(kWidth - what.size(), ' '), text, '\n');
}

const Key* find(const std::vector<Key>& keys, const std::string& path) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

// What is known of a key that this recipe cannot have: it belongs to another kind of its component.
std::string other_kinds(const std::string& path) {
  std::vector<std::string> kinds;
  for (const recipe::KnownKey& known : catalogue().known()) {
    if (known.path == path) kinds.push_back(known.kind);
  }
  return kinds.empty() ? "" : concat("; it is a key of ", join(kinds, ", ", " and "));
}

[[noreturn]] void refuse(const std::vector<Key>& keys, const std::string& path) {
  std::vector<std::string> paths;
  for (const Key& key : keys) paths.push_back(key.path);
  std::string hint = other_kinds(path);
  if (const std::string guess = nearest(path, paths); hint.empty() && !guess.empty())
    hint = concat("; did you mean ", guess, '?');
  throw Error(ExitCode::kUsage, concat("--explain ", path, ": this recipe has no such key", hint,
                                       " (gputrain schema --markdown lists all keys)"));
}

std::string kinds_of(const std::string& component) {
  std::string text;
  for (const recipe::Kind& kind : catalogue().kinds.at(component)) {
    if (kind.name.rfind(recipe::kForTests, 0) == 0) continue;
    text += row("", concat(kind.name, ": ", kind.meaning));
  }
  return text;
}

std::string keys_below(const std::vector<Key>& keys, const std::string& path) {
  std::string text;
  for (const Key& key : keys) {
    if (key.path.rfind(path + ".", 0) == 0) text += row("", concat(key.path, ": ", key.meaning));
  }
  return text;
}

// Where the default of a key is written, its kind of component included.
std::string default_of(const Plan& plan, const Key& key) {
  const std::string component = key.path.substr(0, key.path.find('.'));
  if (key.path == component + ".name") {
    const Key* own = catalogue().find(component);
    return own != nullptr ? own->value : "";
  }
  const Key* name = find(plan.keys(), component + ".name");
  const Key* known = catalogue().find(key.path, name != nullptr ? name->value : "");
  return known != nullptr ? known->value : "";
}

}  // namespace

void explain(const Request& request, const std::string& written) {
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan, Purpose::kLook);
  refuse_problems(plan);
  const std::string path = recipe::canonical(written);
  const std::vector<Key> keys = plan.keys();
  const Key* key = find(keys, path);
  if (key == nullptr) refuse(keys, path);
  std::string text = concat(path, ": ", key->meaning, '\n');
  if (key->type == Key::Type::kComponent) {
    text += concat("kinds\n", kinds_of(path));
  }
  if (key->type == Key::Type::kComponent || key->type == Key::Type::kSection) {
    text += concat("keys\n", keys_below(keys, path));
  } else {
    text += row("type", recipe::type_text(*key));
    text += row("unit", key->unit);
    text += row("default", default_of(plan, *key));
    text += row("value",
                concat(key->value, "  (", recipe::source_text(plan.root, *key, default_of(plan, *key)), ')'));
  }
  to_stdout(text);
}

}  // namespace gputrain::run
