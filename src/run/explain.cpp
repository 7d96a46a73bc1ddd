#include "base/text.h"
#include "recipe/compose.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/scalars.h"
#include "recipe/schema.h"
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
  if (const std::string guess = recipe::nearest_path(paths, path); hint.empty() && !guess.empty())
    hint = concat("; did you mean ", guess, '?');
  throw Error(ExitCode::kUsage, concat("--explain ", path, ": this recipe has no such key", hint,
                                       " (gputrain schema --markdown lists all keys)"));
}

std::string kinds_of(const std::string& component) {
  std::string text;
  for (const recipe::Kind* kind : catalogue().shown_kinds(component)) {
    text += row("", concat(kind->name, ": ", kind->meaning));
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

// The keys of the recipe, with what they are told to be where it is not the recipe that says so.
std::vector<Key> keys_of(const Plan& plan) {
  std::vector<Key> keys{recipe::base_key()};
  for (Key& key : plan.keys()) {
    const auto [component, last] = recipe::split_path(key.path);
    if (last == "name" && !component.empty()) key.words = catalogue().name_key(component).words;
    keys.push_back(std::move(key));
  }
  return keys;
}

// What is wrong with the key at `path`, a row each.
std::string refusals(const Plan& plan, const std::string& path) {
  std::string text;
  for (const recipe::Problem& problem : plan.problems) {
    const bool is_of_key =
        problem.text.rfind(path, 0) == 0 && problem.text.find_first_of(" [", path.size()) == path.size();
    if (is_of_key) text += row("refused", recipe::text_of({problem}));
  }
  return text;
}

// The value of `key` and where it comes from. Of one that was refused, what is written.
std::string value_of(const Plan& plan, const Key& key, const std::string& default_value, bool is_refused) {
  const recipe::Node* written = recipe::find_path(plan.root, key.path);
  const bool is_written = is_refused && written != nullptr;
  return concat(is_written ? recipe::show(*written) : key.value, "  (",
                recipe::source_text(plan.root, key, default_value), ')');
}

// A recipe is laid over its bases before it is read, so that they are no value of it.
std::string bases_of(const Plan& plan) {
  const recipe::Document document = recipe::read_text(plan.text, plan.path);
  const recipe::Node* base = document.root.find("base");
  return base == nullptr ? "[]  (default)"
                         : concat(recipe::json_text(*base), "  (", base->origin.text(), ')');
}

}  // namespace

void explain(const Request& request, const std::string& written) {
  Plan plan = read_plan(request.recipe, request.arguments);
  if (plan.root.kind != recipe::Node::Kind::kMap) refuse_problems(plan);
  resolve(plan, Purpose::kLook);
  const std::string path = recipe::canonical(written);
  const std::vector<Key> keys = keys_of(plan);
  const Key* key = find(keys, path);
  if (key == nullptr) refuse(keys, path);
  std::string text = concat(path, ": ", key->meaning, '\n');
  if (key->type == Key::Type::kComponent) {
    text += concat("kinds\n", kinds_of(path));
  }
  const std::string refused = refusals(plan, path);
  if (key->type == Key::Type::kComponent || key->type == Key::Type::kSection) {
    text += concat("keys\n", keys_below(keys, path));
  } else {
    const recipe::DefaultOf default_of = recipe::defaults(catalogue(), plan.root, plan.path);
    const bool is_base = key->type == Key::Type::kPaths;
    const std::string default_value = is_base ? key->value : default_of(path).value_or("");
    text += row("type", recipe::type_text(*key));
    text += row("unit", key->unit);
    text += row("default", default_value);
    text += row("value", is_base ? bases_of(plan) : value_of(plan, *key, default_value, !refused.empty()));
  }
  to_stdout(text + refused);
}

}  // namespace gputrain::run
