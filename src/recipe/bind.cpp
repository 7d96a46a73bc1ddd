#include "recipe/bind.h"

#include "base/text.h"
#include "recipe/read.h"
#include "recipe/scalars.h"

#include <algorithm>
#include <set>

namespace gputrain::recipe {
namespace {

std::string dotted(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : concat(prefix, '.', key);
}

// "optimizer.lr" -> {"optimizer", "lr"}
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

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

  void section(const char* name, const char*, const Describe& describe_section) override {
    const Node* node = take(name);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kMap) {
      refuse(*node, name, "expected a map of keys" + space_hint(*node));
      return;
    }
    const Hints inner_hints{"", hints_.elsewhere};
    Binder inner(*node, dotted(prefix_, name), inner_hints, problems_);
    describe_section(inner);
    inner.refuse_unknown_keys({});
  }

  void component(const char* name, Choice& value, const char*) override {
    const Node* node = take(name);
    if (node == nullptr) {
      value.settings.origin = map_.origin;
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
  }

  void refuse_unknown_keys(const std::vector<std::string>& ignore) {
    known_.insert(known_.end(), ignore.begin(), ignore.end());
    const std::set<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : map_.map) {
      if (known.count(canonical(key.scalar)) == 0) refuse_unknown_key(key);
    }
  }

 protected:
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
    return map_.find(name);
  }

  void refuse(const Node& node, const std::string& name, const std::string& expected) {
    problems_.push_back({node.origin, concat(dotted(prefix_, name), " is ", show(node), "; ", expected)});
  }

  template <class Value, class Read>
  void assign(const Node& node, const char* name, Value& value, const char* alternative, const Read& read) {
    auto parsed = read(node);
    if (parsed.value) {
      value = *std::move(parsed.value);
    } else {
      refuse(node, name, parsed.error + alternative);
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
      assign(*node, name, value, " or auto", read);
    }
  }

  template <class Value, class Read>
  void or_null(const char* name, std::optional<Value>& value, const Read& read) {
    const Node* node = take(name);
    if (node != nullptr && node->kind == Node::Kind::kNull) {
      value.reset();
    } else if (node != nullptr) {
      assign(*node, name, value, " or ~", read);
    }
  }

  template <class Element, class Read>
  std::vector<Element> elements(const Node& node, const std::string& name, const char* expected,
                                const Read& read) {
    std::vector<Element> values;
    if (node.kind != Node::Kind::kList) refuse(node, name, expected);
    for (std::size_t i = 0; i < node.list.size(); ++i) {
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
    problems_.push_back({key.origin, concat(dotted(prefix_, key.scalar), " is not a key of ", owner, "; ",
                                            what_was_meant(canonical(key.scalar)))});
  }

  // Whether `name` is a map of keys here.
  bool is_map_key(const std::string& name) const {
    const std::string beginning = dotted(prefix_, name) + '.';
    const bool is_known = std::find(known_.begin(), known_.end(), name) != known_.end();
    return is_known && std::any_of(hints_.elsewhere.begin(), hints_.elsewhere.end(),
                                   [&](const KnownKey& one) { return one.path.rfind(beginning, 0) == 0; });
  }

  std::string what_was_meant(const std::string& key) const {
    const std::size_t dot = key.find('.');
    if (dot != std::string::npos && is_map_key(key.substr(0, dot))) {
      return concat("write ", key.substr(0, dot), ": {", key.substr(dot + 1), ": ...}");
    }
    std::set<std::string> kinds, places;
    std::vector<std::string> other_keys;
    for (const KnownKey& other : hints_.elsewhere) {
      const auto [parent, last] = split_path(other.path);
      other_keys.push_back(last);
      if (last != key) continue;
      if (parent == prefix_) {
        kinds.insert(other.kind);
      } else {
        places.insert(parent.empty() ? "at the top level" : "under " + parent);
      }
    }
    if (!kinds.empty()) return "it is a key of " + join({kinds.begin(), kinds.end()}, ", ", " and ");
    if (!places.empty()) return "it belongs " + join({places.begin(), places.end()}, ", ", " or ");
    if (const std::string guess = nearest(key, known_); !guess.empty())
      return concat("did you mean ", guess, '?');
    if (const std::string guess = nearest(key, other_keys); !guess.empty()) {
      const auto at = std::find(other_keys.begin(), other_keys.end(), guess) - other_keys.begin();
      return concat("did you mean ", hints_.elsewhere[static_cast<std::size_t>(at)].path, '?');
    }
    return known_.empty() ? "it has no keys" : "expected " + join(known_, ", ", " or ");
  }

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
