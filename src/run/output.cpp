#include "run/output.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "nn/module.h"
#include "run/run_dir.h"

#include <set>

namespace fs = std::filesystem;

namespace gputrain::run {

std::int64_t disk_bytes(const nn::Module& model, const recipe::Ema& ema) {
  std::int64_t bytes = 0;
  for (const auto& tensors : {model.named_parameters(), model.named_buffers()}) {
    for (const auto& [name, value] : tensors) bytes += static_cast<std::int64_t>(value.nbytes());
  }
  return ema.decay > 0 ? 2 * bytes : bytes;
}

void check_space(const nn::Module& model, const recipe::Ema& ema, const fs::path& folder) {
  const std::int64_t needed = disk_bytes(model, ema);
  const std::int64_t free = free_space(folder);
  if (free >= needed) return;
  throw Error(
      ExitCode::kFileSystem,
      concat(folder.string(), ": the weights need ", format_bytes(needed), ", and ", format_bytes(free),
             " are free there; make room, or train elsewhere with output_dir=FOLDER"));
}

void check_trace(const recipe::Logging& logging, const fs::path& folder) {
  if (!logging.trace) return;
  const fs::path file = (folder / *logging.trace).lexically_normal();
  const fs::path inside = file.lexically_relative(folder.lexically_normal());
  const std::set<fs::path> taken = {"recipe.yaml", kResolvedFile, "env.json", "train.log",  "metrics.jsonl",
                                    "metrics.csv", "evals.csv",   "tb",       kWeightsFile, kAveragesFile,
                                    kSummaryFile,  ".lock",       "memory",   ".",          ""};
  std::error_code ignored;
  const bool elsewhere = inside.empty() || *inside.begin() == "..";
  if (elsewhere ? !fs::is_regular_file(file, ignored) : taken.count(*inside.begin()) == 0) return;
  throw SettingError(
      "logging.trace",
      concat("is ", *logging.trace, elsewhere ? ", which exists already" : ", a file of the run itself",
             "; choose another name"));
}

}  // namespace gputrain::run
