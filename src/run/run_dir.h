#pragma once

#include "run/plan.h"

#include <filesystem>
#include <string>

namespace gputrain::run {

// Files of a run directory that say which run it holds and how it ended.
inline constexpr const char* kResolvedFile = "resolved.yaml";
inline constexpr const char* kSummaryFile = "summary.json";

// The folder of one run, held by this process alone while the object lives.
//
// A folder that is there already is left as it is: a finished run of the same recipe is reported by
// finished(), and everything else is refused with Error(kUsage): an unfinished run, a run of another recipe,
// a run that another process is working on, a folder that is not a run's. With `restart` a run's folder is
// moved aside by open(), to the first free one of NAME.1, NAME.2 ...
class RunDir {
 public:
  // Looks at what is there; a folder that holds no run is not touched.
  RunDir(const std::filesystem::path& path, const Plan& plan, bool restart);
  ~RunDir();
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;

  // The same run has been here and has ended by itself.
  bool finished() const { return finished_; }

  // Makes the folder. Returns where the run that was here has gone; empty when none was.
  // Throws Error(kFileSystem) when it cannot be made.
  std::filesystem::path open();

 private:
  void refuse_or_recognise(const Plan& plan);
  std::string identity_there() const;
  std::filesystem::path move_aside();
  void lock();

  std::filesystem::path path_;  // absolute, without a slash at its end
  std::string shown_;           // as the user wrote it
  bool occupied_ = false;
  bool finished_ = false;
  int lock_ = -1;
};

}  // namespace gputrain::run
