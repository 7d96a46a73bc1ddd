#pragma once

#include "recipe/node.h"

#include <string>
#include <utility>
#include <vector>

namespace gputrain::recipe {

// Replaces the keys and values that recipes of other tools use by this program's: `accum_steps` becomes
// `gradient_accumulation_steps`, `optimizer: adamw_torch` becomes `optimizer: {name: adamw}`. `root` is what
// one file or one argument holds; origins stay those of what was written. Each word found adds one notice:
// "recipe.yaml:3:1: read `accum_steps` as `gradient_accumulation_steps`". Words of this program and unknown
// ones stay as they are. A word that cannot be translated is taken out, with a problem; one that is null is
// taken out with its notice, unless its values are taken as they are and our key takes null.
void translate_words(Node& root, std::vector<Problem>& problems, std::vector<std::string>& notices);

// The same where words that are read together are spread: `beside` holds all of them, as they were written.
void translate_words(Node& root, const Node& beside, std::vector<Problem>& problems,
                     std::vector<std::string>& notices);

// The keys of ours that the word at `path` may set, whatever its value: {"optimizer.beta1",
// "optimizer.beta2"} for "opt_betas". {path} where that is no word, or one that never sets anything.
std::vector<std::string> our_keys(std::string path);

// The path of every word that is translated and the key of ours that it is about: {"trainer.max_epochs",
// "epochs"}. The two are the same where only values are translated. docs/other-tools.md has them all.
std::vector<std::pair<std::string, std::string>> words_and_keys();

}  // namespace gputrain::recipe
