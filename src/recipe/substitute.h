#pragma once

#include "recipe/node.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::recipe {

// The value of an environment variable; nothing where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& variable)>;

// The default of a key ("optimizer.lr"), as it could follow `key=` on the command line, ${...} included;
// nothing where the key has none, or is none.
using DefaultOf = std::function<std::optional<std::string>(const std::string& path)>;

// The variables of this process.
EnvironmentLookup process_environment();

// `text` so written that substitute() gives it back: each ${ as $${.
std::string escape_references(std::string text);

// Replaces in all values, quoted or not, but in no key:
//   ${env:VAR}, ${env:VAR,default}  by the variable's value, or the default where it is not set;
//   ${key.sub}                      by the value of that key of the recipe, or its default;
//   $${                             by the text ${.
// Any other $ is left. What is put in is data: it is never searched again, nor read as YAML. Where a value
// consists of nothing else, a variable gives a plain scalar, whatever its text (a default of `~` or `null`
// gives null), and a key gives all it holds, lists and maps too; the value has the origin of the place where
// it is put in, parts of a list or map keep theirs. A value with a problem stays as it is written, and is
// unreadable; a default of auto, which has no value yet, is a problem. `known` are the paths of all keys
// there are, for hints. Never throws for what `root` or variables hold.
void substitute(Node& root, const DefaultOf& default_of, const EnvironmentLookup& environment,
                std::vector<Problem>& problems, const std::vector<std::string>& known = {});

// `text` with its variables put in; as it is where one is not set, or where it refers to keys.
std::string with_environment(const std::string& text, const EnvironmentLookup& environment);

}  // namespace gputrain::recipe
