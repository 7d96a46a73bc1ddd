#pragma once

#include "recipe/node.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::recipe {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Bounds of a number; kNoLimit where there is none. Open ends are written as Range{.min = 0, .max = 1,
// .max_open = true}.
struct Range {
  double min;
  double max;
  bool min_open = false;
  bool max_open = false;
};

// How often something happens: a bare number means steps, `1ep` epochs, `30min` time.
struct Interval {
  enum class Unit { kSteps, kEpochs, kSeconds };
  double count = 0;
  Unit unit = Unit::kSteps;
};

// A component of the recipe chosen by name, its own keys still unread: the room that knows the component
// binds them. `settings.origin` is where they were written.
struct Choice {
  std::string name;
  Node settings;
};

// One word per value of an enumeration, in the order of the enumeration's values (0, 1, 2 ...).
using Words = std::vector<std::string>;

class Visitor;

// A list of maps of the same keys, whatever struct holds one of them.
struct MapList {
  std::size_t size = 0;
  std::function<void(std::size_t)> make;                     // this many, each with its defaults
  std::function<void(Visitor&, std::size_t)> describe_item;  // the keys of one
  std::function<void(Visitor&)> describe_default;            // the keys of any, over their defaults
};

// The keys of a section that a value, or a list, in its place is for: `loss_scale: 1024` is
// `loss_scale: {fixed: 1024}`. "": none.
struct Shorthand {
  std::string value = "";
  std::string list = "";
};

// Describes the keys of a struct. Each struct that holds keys of the recipe has one function
//   void describe(Visitor& v, FooOptions& o);
// that names every key once: its field, range, unit and meaning; the field's value at the call is its
// default. Binding (text to struct, with all problems), writing (resolved recipe) and explaining
// (documentation, schema) are visitors over that one description.
//
// An std::optional field accepts the word `auto` (std::nullopt, resolved later by the program) unless the
// method says otherwise.
class Visitor {
 public:
  virtual ~Visitor() = default;

  virtual void number(const char* name, double& value, Range range, const char* unit,
                      const char* meaning) = 0;
  virtual void number(const char* name, std::optional<double>& value, Range range, const char* unit,
                      const char* meaning) = 0;
  virtual void integer(const char* name, std::int64_t& value, Range range, const char* unit,
                       const char* meaning) = 0;
  virtual void integer(const char* name, std::optional<std::int64_t>& value, Range range, const char* unit,
                       const char* meaning) = 0;
  virtual void boolean(const char* name, bool& value, const char* meaning) = 0;
  virtual void boolean(const char* name, std::optional<bool>& value, const char* meaning) = 0;
  virtual void text(const char* name, std::string& value, const char* meaning) = 0;
  // Null is std::nullopt: not given.
  virtual void text(const char* name, std::optional<std::string>& value, const char* meaning) = 0;
  // A file or folder; relative ones are relative to the recipe file that names them (on the command line, to
  // the working directory), `~/` is the home folder. Read as an absolute path. Null (`~`) is std::nullopt:
  // not given.
  virtual void path(const char* name, std::optional<std::string>& value, const char* meaning) = 0;
  // auto, cpu, cuda or cuda:N.
  virtual void device(const char* name, std::string& value, const char* meaning) = 0;
  // Lists of numbers; an optional one accepts `auto`.
  virtual void numbers(const char* name, std::optional<std::vector<double>>& value, Range range,
                       const char* unit, const char* meaning) = 0;
  virtual void integers(const char* name, std::vector<std::int64_t>& value, Range range, const char* unit,
                        const char* meaning) = 0;
  // One text or a list of them.
  virtual void texts(const char* name, std::vector<std::string>& value, const char* meaning) = 0;
  // Seconds, written with a unit (`90s`, `30min`, `2h`). Null is std::nullopt: no limit.
  virtual void duration(const char* name, std::optional<double>& seconds, const char* meaning) = 0;
  // Bytes, written with a unit (`500MB`, `11.5GiB`). Null is std::nullopt: no limit.
  virtual void bytes(const char* name, std::optional<std::int64_t>& value, const char* meaning) = 0;
  // Null is std::nullopt: not given.
  virtual void count(const char* name, std::optional<std::int64_t>& value, Range range, const char* unit,
                     const char* meaning) = 0;
  // Null is std::nullopt: no limit.
  virtual void limit(const char* name, std::optional<double>& value, Range range, const char* unit,
                     const char* meaning) = 0;
  virtual void interval(const char* name, Interval& value, const char* meaning) = 0;
  // A map of keys of its own, described by `describe_section`.
  void section(const char* name, const char* meaning, const std::function<void(Visitor&)>& describe_section,
               const Shorthand& shorthand = {}) {
    map_section(name, meaning, describe_section, shorthand);
  }
  // A map with `name:` and the keys of the component of that name.
  virtual void component(const char* name, Choice& value, const char* meaning) = 0;

  // One of `words`; Enum's values count up from 0 in their order.
  template <class Enum>
  void one_of(const char* name, Enum& value, const Words& words, const char* meaning) {
    int index = static_cast<int>(value);
    word(name, index, words, meaning);
    value = static_cast<Enum>(index);
  }

  // A list of maps, each with the keys of an Item, for which there is describe(Visitor&, Item&) in its
  // namespace. Items hold values and lists of them, no sections and no components.
  template <class Item>
  void maps(const char* name, std::vector<Item>& value, const char* meaning) {
    MapList list;
    list.size = value.size();
    list.make = [&value](std::size_t count) { value.assign(count, Item{}); };
    list.describe_item = [&value](Visitor& v, std::size_t index) { describe(v, value.at(index)); };
    list.describe_default = [](Visitor& v) {
      Item defaults;
      describe(v, defaults);
    };
    map_list(name, list, meaning);
  }

 protected:
  virtual void map_section(const char* name, const char* meaning,
                           const std::function<void(Visitor&)>& describe_section,
                           const Shorthand& shorthand) = 0;
  virtual void map_list(const char* name, const MapList& list, const char* meaning) = 0;
  virtual void word(const char* name, int& index, const Words& words, const char* meaning) = 0;
};

}  // namespace gputrain::recipe
