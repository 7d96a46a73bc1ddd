#include "recipe/bind.h"

#include "base/text.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/scalars.h"
#include "recipe/words.h"

#include <algorithm>
#include <map>
#include <set>

namespace gputrain::recipe {
namespace {

bool is_auto(const Node& node) {
  return node.kind == Node::Kind::kScalar && !node.quoted && node.scalar == "auto";
}

class Binder : public Visitor {
 public:
  Binder(const Node& map, std::string prefix, const Hints& hints, std::vector<Problem>& problems)
      : map_(map), prefix_(std::move(prefix)), hints_(hints), problems_(problems) {}

  void number(const char* name, double& value, Range range, const char*, const char*) override {
    plain(name, value, [&](const Node& node) { return read_number(node, name, range); });
  }
  void number(const char* name, std::optional<double>& value, Range range, const char*,
              const char*) override {
    or_auto(name, value, [&](const Node& node) { return read_number(node, name, range); });
  }
  void integer(const char* name, std::int64_t& value, Range range, const char*, const char*) override {
    plain(name, value, [&](const Node& node) { return read_integer(node, name, range); });
  }
  void integer(const char* name, std::optional<std::int64_t>& value, Range range, const char*,
               const char*) override {
    or_auto(name, value, [&](const Node& node) { return read_integer(node, name, range); });
  }
  void boolean(const char* name, bool& value, const char*) override { plain(name, value, read_boolean); }
  void boolean(const char* name, std::optional<bool>& value, const char*) override {
    or_auto(name, value, read_boolean);
  }
  void text(const char* name, std::string& value, const char*) override {
    plain(name, value, read_text_value);
  }
  void text(const char* name, std::optional<std::string>& value, const char*) override {
    or_null(name, value, read_text_value);
  }
  void path(const char* name, std::optional<std::string>& value, const char*) override {
    or_null(name, value, read_path);
  }
  void device(const char* name, std::string& value, const char*) override { plain(name, value, read_device); }
  void duration(const char* name, std::optional<double>& seconds, const char*) override {
    or_null(name, seconds, read_duration);
  }
  void bytes(const char* name, std::optional<std::int64_t>& value, const char*) override {
    or_null(name, value, read_bytes);
  }
  void count(const char* name, std::optional<std::int64_t>& value, Range range, const char*,
             const char*) override {
    or_null(name, value, [&](const Node& node) { return read_integer(node, name, range); });
  }
  void limit(const char* name, std::optional<double>& value, Range range, const char*, const char*) override {
    or_null(name, value, [&](const Node& node) { return read_number(node, name, range); });
  }
  void interval(const char* name, Interval& value, const char*) override {
    plain(name, value, read_interval);
  }

  void numbers(const char* name, std::optional<std::vector<double>>& value, Range range, const char*,
               const char*) override {
    const Node* node = take(name);
    if (node != nullptr && is_auto(*node)) {
      value.reset();
    } else if (node != nullptr) {
      value = elements<double>(
          *node, name, "expected a list of numbers or auto",
          [&](const Node& n, const std::string& called) { return read_number(n, called, range); });
    }
  }
  void integers(const char* name, std::vector<std::int64_t>& value, Range range, const char*,
                const char*) override {
    if (const Node* node = take(name)) {
      value = elements<std::int64_t>(
          *node, name, "expected a list of integers",
          [&](const Node& n, const std::string& called) { return read_integer(n, called, range); });
    }
  }

  void texts(const char* name, std::vector<std::string>& value, const char*) override {
    const Node* node = take(name);
    if (node == nullptr) return;
    if (node->kind == Node::Kind::kScalar) {
      value = {node->scalar};
    } else {
      value = elements<std::string>(*node, name, "expected text or a list of texts",
                                    [](const Node& n, const std::string&) { return read_text_value(n); });
    }
  }

  void component(const char* name, Choice& value, const char*) override {
    known_.emplace_back(name);
    const Node* node = map_.find(name);
    if (node == nullptr) {
      value.settings.origin = map_.origin;
    } else if (node->unreadable) {
      value.settings = *node;
    } else if (node->kind == Node::Kind::kMap) {
      value.settings = *node;
      if (const Node* chosen = node->find("name")) value.name = chosen->scalar;
    } else {
      value.settings.origin = node->origin;
      const std::string hint = space_hint(*node);
      if (!hint.empty() || node->kind != Node::Kind::kScalar) {
        refuse(*node, name, "expected a map with a name" + hint);
      } else {
        refuse(*node, name, concat("expected a map, as in {name: ", node->scalar, "}"));
        value.name = node->scalar;
      }
    }
    // The kind that is meant may be named by what could not be read.
    if (map_.unreadable && value.settings.find("name") == nullptr) value.settings.unreadable = true;
  }

  void refuse_unknown_keys(const std::vector<std::string>& ignore) {
    known_.insert(known_.end(), ignore.begin(), ignore.end());
    const std::set<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : map_.map) {
      if (known.count(canonical(key.scalar)) == 0) refuse_unknown_key(key);
    }
  }

 protected:
  void map_section(const char* name, const char*, const Describe& describe_section,
                   const Shorthand&) override {
    const Node* node = take(name);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kMap) {
      refuse(*node, name, "expected a map of keys" + space_hint(*node));
      return;
    }
    bind_map(*node, name, describe_section);
  }

  void map_list(const char* name, const MapList& list, const char*) override {
    const Node* node = take(name);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kList) {
      refuse(*node, name, "expected a list of maps" + space_hint(*node));
      return;
    }
    list.make(node->list.size());
    for (std::size_t i = 0; i < node->list.size(); ++i) {
      const Node& item = node->list[i];
      const std::string called = concat(name, '[', i, ']');
      if (item.kind != Node::Kind::kMap) {
        refuse(item, called, "expected a map of keys" + space_hint(item));
      } else {
        bind_map(item, called, [&](Visitor& v) { list.describe_item(v, i); });
      }
    }
  }

  void word(const char* name, int& index, const Words& words, const char*) override {
    plain(name, index, [&](const Node& node) -> Parsed<int> {
      const auto found = std::find(words.begin(), words.end(), node.scalar);
      if (node.kind == Node::Kind::kScalar && found != words.end()) {
        return {static_cast<int>(found - words.begin()), ""};
      }
      const std::string guess = nearest(node.scalar, words);
      const std::string question = guess.empty() ? "" : concat("; did you mean ", guess, '?');
      return {{}, concat("expected ", join(words, ", ", " or "), question)};
    });
  }

 private:
  const Node* take(const char* name) {
    known_.emplace_back(name);
    const Node* node = map_.find(name);
    return node != nullptr && node->unreadable ? nullptr : node;
  }

  void bind_map(const Node& map, const std::string& name, const Describe& describe_map) {
    const Hints inner_hints{"", hints_.elsewhere};
    Binder inner(map, join_path(prefix_, name), inner_hints, problems_);
    describe_map(inner);
    inner.refuse_unknown_keys({});
  }

  void refuse(const Node& node, const std::string& name, const std::string& expected) {
    problems_.push_back({node.origin, concat(join_path(prefix_, name), " is ", show(node), "; ", expected)});
  }

  template <class Value, class Read>
  void assign(const Node& node, const char* name, Value& value, const char* alternative, const Read& read) {
    auto parsed = read(node);
    if (parsed.value) {
      value = *std::move(parsed.value);
    } else {
      const bool has_alternatives = parsed.error.find(" or ") != std::string::npos;
      const char* separator = *alternative == '\0' ? "" : has_alternatives ? ", or " : " or ";
      refuse(node, name, concat(parsed.error, separator, alternative));
    }
  }

  template <class Value, class Read>
  void plain(const char* name, Value& value, const Read& read) {
    if (const Node* node = take(name)) assign(*node, name, value, "", read);
  }

  template <class Value, class Read>
  void or_auto(const char* name, std::optional<Value>& value, const Read& read) {
    const Node* node = take(name);
    if (node != nullptr && is_auto(*node)) {
      value.reset();
    } else if (node != nullptr) {
      assign(*node, name, value, "auto", read);
    }
  }

  template <class Value, class Read>
  void or_null(const char* name, std::optional<Value>& value, const Read& read) {
    const Node* node = take(name);
    if (node != nullptr && node->kind == Node::Kind::kNull) {
      value.reset();
    } else if (node != nullptr) {
      assign(*node, name, value, "~", read);
    }
  }

  template <class Element, class Read>
  std::vector<Element> elements(const Node& node, const std::string& name, const char* expected,
                                const Read& read) {
    std::vector<Element> values;
    if (node.kind != Node::Kind::kList) refuse(node, name, expected);
    for (std::size_t i = 0; i < node.list.size(); ++i) {
      if (node.list[i].unreadable) continue;
      const std::string called = concat(name, '[', i, ']');
      const Parsed<Element> parsed = read(node.list[i], called);
      if (parsed.value) {
        values.push_back(*parsed.value);
      } else {
        refuse(node.list[i], called, parsed.error);
      }
    }
    return values;
  }

  static std::string space_hint(const Node& node) {
    const std::string meant = with_missing_space(node.scalar);
    return meant.empty() ? "" : concat(" (no space follows the colon; ", meant, ')');
  }

  void refuse_unknown_key(const Node& key) {
    const std::string fallback = prefix_.empty() ? "the recipe" : prefix_;
    const std::string owner = hints_.owner.empty() ? fallback : hints_.owner;
    problems_.push_back({key.origin, concat(join_path(prefix_, key.scalar), " is not a key of ", owner, "; ",
                                            what_was_meant(canonical(key.scalar)))});
  }

  // Components say what they are.
  bool is_section() const { return !prefix_.empty() && hints_.owner.empty(); }

  // Whether `name` is a map of keys here.
  bool is_map_key(const std::string& name) const {
    const std::string beginning = join_path(prefix_, name) + '.';
    const bool is_known = std::find(known_.begin(), known_.end(), name) != known_.end();
    return is_known && std::any_of(hints_.elsewhere.begin(), hints_.elsewhere.end(),
                                   [&](const KnownKey& one) { return one.path.rfind(beginning, 0) == 0; });
  }

  std::string what_was_meant(const std::string& key) const {
    const std::size_t dot = key.find('.');
    if (dot != std::string::npos && is_map_key(key.substr(0, dot))) {
      return concat("write ", key.substr(0, dot), ": {", key.substr(dot + 1), ": ...}");
    }
    if (const std::vector<std::string> kinds = kinds_with(key); !kinds.empty())
      return "it is a key of " + join(kinds, ", ", " and ");
    std::set<std::string> places;
    for (const KnownKey& other : hints_.elsewhere) {
      const auto [parent, last] = split_path(other.path);
      if (last == key) places.insert(parent.empty() ? "at the top level" : "under " + parent);
    }
    if (!places.empty()) return "it belongs " + join({places.begin(), places.end()}, ", ", " or ");
    if (const std::string guess = guess_for(key); !guess.empty()) return concat("did you mean ", guess, '?');
    constexpr std::size_t kMostListed = 8;
    if (known_.size() > kMostListed && !is_section())
      return "expected one of its keys; gputrain schema --markdown lists them";
    return known_.empty() ? "it has no keys" : "expected " + join(known_, ", ", " or ");
  }

  // The other kinds of this component that have the key.
  std::vector<std::string> kinds_with(const std::string& key) const {
    std::set<std::string> kinds;
    for (const KnownKey& other : hints_.elsewhere) {
      if (!other.kind.empty() && other.path == join_path(prefix_, key)) kinds.insert(other.kind);
    }
    return {kinds.begin(), kinds.end()};
  }

  // The key that is misspelt, "" where none is near: one of this map, also as other tools call it, else one
  // of another kind of the component, else one of another map, but in a section, whose keys are few.
  std::string guess_for(const std::string& key) const {
    // With each known word split once: a recipe may hold thousands of unknown keys.
    static const auto words = words_by_map();
    std::vector<std::string> here = known_;
    if (const auto own = words.find(prefix_); own != words.end())
      here.insert(here.end(), own->second.begin(), own->second.end());
    if (const std::string guess = nearest(key, here); !guess.empty()) {
      const std::string word = join_path(prefix_, guess);
      const std::vector<std::string> ours = our_keys(word);
      const bool is_ours = ours == std::vector<std::string>{word};
      return is_ours ? guess : concat(guess, " (", join(ours, ", ", " and "), ')');
    }
    if (is_section()) return "";
    std::vector<std::string> of_kinds, of_others, paths;
    for (const KnownKey& other : hints_.elsewhere) {
      const auto [parent, last] = split_path(other.path);
      if (parent == prefix_) {
        of_kinds.push_back(last);
      } else {
        of_others.push_back(last);
        paths.push_back(other.path);
      }
    }
    if (const std::string guess = nearest(key, of_kinds); !guess.empty())
      return concat(guess, ", a key of ", join(kinds_with(guess), ", ", " and "));
    const std::string guess = nearest(key, of_others);
    if (guess.empty() || edit_distance(key, guess) > kMostEdits) return "";
    const auto at = std::find(of_others.begin(), of_others.end(), guess) - of_others.begin();
    return paths[static_cast<std::size_t>(at)];
  }

  // The last parts of all words of other tools, by the map they stand in.
  static std::map<std::string, std::vector<std::string>> words_by_map() {
    std::map<std::string, std::vector<std::string>> words;
    for (const auto& [word, ours] : words_and_keys()) {
      auto [parent, last] = split_path(word);
      words[std::move(parent)].push_back(std::move(last));
    }
    return words;
  }

  // Keys of other maps are meant only when little is wrong with them: acum_steps is not warmup_steps.
  static constexpr std::size_t kMostEdits = 2;

  const Node& map_;
  std::string prefix_;
  const Hints& hints_;
  std::vector<Problem>& problems_;
  std::vector<std::string> known_;
};

}  // namespace

std::vector<Problem> bind(const Node& map, const std::string& prefix, const Describe& describe,
                          const std::vector<std::string>& ignore, const Hints& hints) {
  std::vector<Problem> problems;
  Binder binder(map, prefix, hints, problems);
  describe(binder);
  binder.refuse_unknown_keys(ignore);
  return problems;
}

}  // namespace gputrain::recipe
