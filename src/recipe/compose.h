#pragma once

#include "recipe/keys.h"
#include "recipe/merge.h"
#include "recipe/node.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

struct Composed {
  Node root;         // a map without the key `base`, unreadable when a base is; null when the file itself
                     // leaves nothing to read
  std::string text;  // the file that was asked for, as it was given
  std::vector<Problem> problems;     // of all files
  std::vector<std::string> notices;  // each with its place in front
};

// The recipe in `path` over its bases. `base: other.yaml`, or a list of files, at the top level of a file
// names what is read before it: relative to that file, `~/` being the home folder; later bases over earlier
// ones, then the file over them, each base over its own bases. Words of other tools are translated in each
// file. Never throws for what files hold.
Composed compose(const std::string& path, const ComponentNames& components);

// What `base` is told to be where keys are listed.
Key base_key();

}  // namespace gputrain::recipe
