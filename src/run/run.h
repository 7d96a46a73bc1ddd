#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace gputrain::run {

struct Request {
  std::string recipe;                  // path
  std::vector<std::string> arguments;  // key=value and ~key, applied in this order
  bool restart = false;                // move an earlier run of the same folder aside
};

// Trains the recipe into its run directory: recipe.yaml, resolved.yaml, env.json, train.log, metrics, tb/,
// model.safetensors, summary.json. Human text goes to stderr. Returns kDone, also for a run that was finished
// before, kNotFinite, kInterrupted or kTerminated; everything else is thrown as Error.
ExitCode run(const Request& request);

// Does all that comes before training: reads the recipe, opens the data, builds the model, and says what
// would be trained: the resolved recipe to stdout, sizes to stderr. Writes nothing to disk.
void check(const Request& request);

// Prints the resolved recipe to stdout. Opens no data, and writes nothing to disk.
void print_resolved(const Request& request);

// Says of one key ("optimizer.lr", "optimizer") what it means, its type, range, default, and the value that
// it has in this recipe with where it comes from, to stdout. Throws Error(kUsage) for a key that does not
// exist.
void explain(const Request& request, const std::string& key);

}  // namespace gputrain::run
