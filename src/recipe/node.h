#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain::recipe {

// Where a value was written: a place in a file, or an argument of the command line.
struct Origin {
  std::string file;
  int line = 0;          // counted from 1; 0: not from a file
  int column = 0;        // counted from 1
  std::string argument;  // as typed, when it came from the command line

  // "configs/a.yaml:14:10" or "argument optimizer.lr=2", control characters as blanks.
  std::string text() const;
};

// A mistake in a recipe. Reading and checking return all of them; only the command line makes them an error.
struct Problem {
  Origin origin;
  std::string text;
};

struct Entry;

// One value of a recipe as it was written: nothing (null), a scalar, a list or a map, each with its origin.
class Node {
 public:
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  Origin origin;
  std::string scalar;
  bool quoted = false;  // "..." or '...': never null, a number or a boolean
  // What was written here could not be read, of a map a part of it. That is a problem already: what is
  // missing is none.
  bool unreadable = false;
  std::vector<Node> list;
  std::vector<Entry> map;  // in file order

  // The value of a key of this map, or nullptr. Dashes and underscores in keys are the same.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

// A key (a scalar with its own origin) and its value in a map.
struct Entry {
  Node key;
  Node value;
};

// How much a value holds: `values` counts itself, what is in it and the keys of maps, `bytes` their text;
// `depth` is 1 without lists and maps.
struct Extent {
  std::size_t values = 1;
  std::size_t bytes = 0;
  std::size_t depth = 1;
};
Extent extent_of(const Node& node);

// A key as the program spells it: with underscores.
std::string canonical(std::string_view key);

// The value at "optimizer.lr", or nullptr.
const Node* find_path(const Node& root, std::string_view path);

// Where the value at `path` was written; where it was not, the map that would hold it, or the recipe as a
// whole.
Origin origin_of(const Node& root, std::string_view path);

// By place: first those of files, then those of arguments.
void sort_by_position(std::vector<Problem>& problems);

// One line each, whatever the texts hold: "configs/a.yaml:14:10: optimizer.beta2 is 1.5; expected 0 <= beta2
// < 1".
std::string text_of(const std::vector<Problem>& problems);

}  // namespace gputrain::recipe
