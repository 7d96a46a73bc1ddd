#pragma once

#include "recipe/bind.h"
#include "recipe/visitor.h"

#include <optional>
#include <string>
#include <vector>

namespace gputrain::recipe {

// One key of a description and the value that its field had: over the defaults, its default.
struct Key {
  enum class Type {
    kNumber,
    kInteger,
    kBoolean,
    kText,
    kPath,
    kPaths,  // one or a list
    kDevice,
    kWord,
    kNumbers,
    kIntegers,
    kTexts,  // one or a list
    kDuration,
    kBytes,
    kInterval,
    kSection,
    kComponent,
    kMaps,  // a list of maps
  };

  std::string path;  // "optimizer", "logging.log_every"
  Type type = Type::kText;
  std::string value;  // as a recipe writes it: 0.1, auto, ~, [8, 8], [{match: "fc.*"}]; a component's name;
                      // "" of a section
  std::string meaning;
  std::optional<Range> range;  // of a number, or of each number in a list
  std::string unit;
  Words words;                 // of kWord
  std::vector<Key> item_keys;  // of kMaps: those of each map, over their defaults; paths from there, "match"
  Shorthand shorthand;         // of kSection
  bool takes_auto = false;
  bool takes_null = false;
};

// All keys that `describe` names, those of its sections included, with `prefix` (unless empty) before each.
std::vector<Key> keys(const Describe& describe, const std::string& prefix = "");

// What a recipe may write there: "number, 0 < lr <= 1000, or auto"; `name` is what the range calls it.
std::string type_text(const Key& key);

}  // namespace gputrain::recipe
