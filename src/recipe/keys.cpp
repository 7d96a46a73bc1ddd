#include "recipe/keys.h"

#include "base/text.h"
#include "base/units.h"
#include "recipe/paths.h"
#include "recipe/scalars.h"
#include "recipe/write.h"

#include <utility>

namespace gputrain::recipe {
namespace {

const char* boolean_text(bool value) {
  return value ? "true" : "false";
}

template <class Value, class Write>
std::string list_text(const std::vector<Value>& values, const Write& write) {
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(write(value));
  return concat('[', join(texts, ", "), ']');
}

std::string integer_text(std::int64_t value) {
  return std::to_string(value);
}

std::string interval_text(const Interval& interval) {
  switch (interval.unit) {
    case Interval::Unit::kEpochs:
      return shortest(interval.count) + "ep";
    case Interval::Unit::kSeconds:
      return shortest(interval.count) + "s";
    case Interval::Unit::kSteps:
      break;
  }
  return integer_text(static_cast<std::int64_t>(interval.count));
}

// {match: [a, b], lr_scale: 0.1}
std::string map_text(const std::vector<Key>& keys) {
  std::vector<std::string> entries;
  for (const Key& key : keys) entries.push_back(concat(key.path, ": ", key.value));
  return concat('{', join(entries, ", "), '}');
}

class KeyLister : public Visitor {
 public:
  KeyLister(std::string prefix, std::vector<Key>& keys) : prefix_(std::move(prefix)), keys_(keys) {}

  void number(const char* name, double& value, Range range, const char* unit, const char* meaning) override {
    add_number(name, Key::Type::kNumber, shortest(value), range, unit, meaning);
  }
  void number(const char* name, std::optional<double>& value, Range range, const char* unit,
              const char* meaning) override {
    add_number(name, Key::Type::kNumber, value ? shortest(*value) : kAuto, range, unit, meaning).takes_auto =
        true;
  }
  void integer(const char* name, std::int64_t& value, Range range, const char* unit,
               const char* meaning) override {
    add_number(name, Key::Type::kInteger, integer_text(value), range, unit, meaning);
  }
  void integer(const char* name, std::optional<std::int64_t>& value, Range range, const char* unit,
               const char* meaning) override {
    add_number(name, Key::Type::kInteger, value ? integer_text(*value) : kAuto, range, unit, meaning)
        .takes_auto = true;
  }
  void boolean(const char* name, bool& value, const char* meaning) override {
    add(name, Key::Type::kBoolean, boolean_text(value), meaning);
  }
  void boolean(const char* name, std::optional<bool>& value, const char* meaning) override {
    add(name, Key::Type::kBoolean, value ? boolean_text(*value) : kAuto, meaning).takes_auto = true;
  }
  void text(const char* name, std::string& value, const char* meaning) override {
    add(name, Key::Type::kText, scalar_text(value), meaning);
  }
  void text(const char* name, std::optional<std::string>& value, const char* meaning) override {
    add(name, Key::Type::kText, value ? scalar_text(*value) : kNull, meaning).takes_null = true;
  }
  void path(const char* name, std::optional<std::string>& value, const char* meaning) override {
    add(name, Key::Type::kPath, value ? scalar_text(*value) : kNull, meaning).takes_null = true;
  }
  void device(const char* name, std::string& value, const char* meaning) override {
    add(name, Key::Type::kDevice, scalar_text(value), meaning).takes_auto = true;
  }
  void numbers(const char* name, std::optional<std::vector<double>>& value, Range range, const char* unit,
               const char* meaning) override {
    add_number(name, Key::Type::kNumbers, value ? list_text(*value, shortest) : kAuto, range, unit, meaning)
        .takes_auto = true;
  }
  void integers(const char* name, std::vector<std::int64_t>& value, Range range, const char* unit,
                const char* meaning) override {
    add_number(name, Key::Type::kIntegers, list_text(value, integer_text), range, unit, meaning);
  }
  void texts(const char* name, std::vector<std::string>& value, const char* meaning) override {
    add(name, Key::Type::kTexts, list_text(value, scalar_text), meaning);
  }
  void duration(const char* name, std::optional<double>& seconds, const char* meaning) override {
    add(name, Key::Type::kDuration, seconds ? shortest(*seconds) + "s" : kNull, meaning).takes_null = true;
  }
  void bytes(const char* name, std::optional<std::int64_t>& value, const char* meaning) override {
    add(name, Key::Type::kBytes, value ? exact_bytes(*value) : kNull, meaning).takes_null = true;
  }
  void count(const char* name, std::optional<std::int64_t>& value, Range range, const char* unit,
             const char* meaning) override {
    add_number(name, Key::Type::kInteger, value ? integer_text(*value) : kNull, range, unit, meaning)
        .takes_null = true;
  }
  void limit(const char* name, std::optional<double>& value, Range range, const char* unit,
             const char* meaning) override {
    add_number(name, Key::Type::kNumber, value ? shortest(*value) : kNull, range, unit, meaning).takes_null =
        true;
  }
  void interval(const char* name, Interval& value, const char* meaning) override {
    add(name, Key::Type::kInterval, interval_text(value), meaning);
  }

  void component(const char* name, Choice& value, const char* meaning) override {
    add(name, Key::Type::kComponent, value.name, meaning);
  }

 protected:
  void map_section(const char* name, const char* meaning, const Describe& describe_section,
                   const Shorthand& shorthand) override {
    Key& key = add(name, Key::Type::kSection, "", meaning);
    key.shorthand = shorthand;
    KeyLister inner(std::string(key.path), keys_);
    describe_section(inner);
  }

  void map_list(const char* name, const MapList& list, const char* meaning) override {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < list.size; ++i) {
      items.push_back(map_text(keys([&](Visitor& v) { list.describe_item(v, i); })));
    }
    add(name, Key::Type::kMaps, concat('[', join(items, ", "), ']'), meaning).item_keys =
        keys(list.describe_default);
  }

  void word(const char* name, int& index, const Words& words, const char* meaning) override {
    Key& key = add(name, Key::Type::kWord, words.at(static_cast<std::size_t>(index)), meaning);
    key.words = words;
  }

 private:
  static constexpr const char* kAuto = "auto";
  static constexpr const char* kNull = "~";

  Key& add(const char* name, Key::Type type, std::string value, const char* meaning) {
    Key key;
    key.path = join_path(prefix_, name);
    key.type = type;
    key.value = std::move(value);
    key.meaning = meaning;
    keys_.push_back(std::move(key));
    return keys_.back();
  }

  Key& add_number(const char* name, Key::Type type, std::string value, Range range, const char* unit,
                  const char* meaning) {
    Key& key = add(name, type, std::move(value), meaning);
    key.range = range;
    key.unit = unit;
    return key;
  }

  std::string prefix_;
  std::vector<Key>& keys_;
};

std::string plain_type_text(const Key& key) {
  switch (key.type) {
    case Key::Type::kNumber:
      return "number";
    case Key::Type::kInteger:
      return "integer";
    case Key::Type::kBoolean:
      return "true or false";
    case Key::Type::kText:
      return "text";
    case Key::Type::kPath:
      return "file or folder";
    case Key::Type::kPaths:
      return "file or list of files";
    case Key::Type::kDevice:
      return "cpu, cuda or cuda:N";
    case Key::Type::kWord:
      return join(key.words, ", ", " or ");
    case Key::Type::kNumbers:
      return "list of numbers";
    case Key::Type::kIntegers:
      return "list of integers";
    case Key::Type::kTexts:
      return "text or list of texts";
    case Key::Type::kDuration:
      return "duration, as in 90s, 30min or 2h";
    case Key::Type::kBytes:
      return "bytes, as in 500MB or 11.5GiB";
    case Key::Type::kInterval:
      return "steps (100), epochs (1ep) or time (30min)";
    case Key::Type::kSection:
      return "map";
    case Key::Type::kComponent:
      return "map with a name";
    case Key::Type::kMaps:
      return "list of maps";
  }
  return "";
}

}  // namespace

std::vector<Key> keys(const Describe& describe, const std::string& prefix) {
  std::vector<Key> all;
  KeyLister lister(prefix, all);
  describe(lister);
  return all;
}

std::string type_text(const Key& key) {
  std::string text = plain_type_text(key);
  const bool is_list = key.type == Key::Type::kNumbers || key.type == Key::Type::kIntegers;
  const std::string bounds = key.range ? range_text(is_list ? "each" : last_part(key.path), *key.range) : "";
  if (!bounds.empty()) text += ", " + bounds;
  if (key.takes_auto) text += ", or auto";
  if (key.takes_null) text += ", or ~";
  return text;
}

}  // namespace gputrain::recipe
