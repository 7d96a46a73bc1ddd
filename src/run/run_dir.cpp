#include "run/run_dir.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/summary.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace gputrain::run {
namespace {

constexpr const char* kLockFile = ".lock";
constexpr const char* kHowToGoOn =
    "; --restart moves it aside and begins anew, output_dir=FOLDER trains elsewhere";

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (!error) return found;
  throw Error(ExitCode::kFileSystem, concat(path.string(), ": cannot be looked at: ", error.message(),
                                            "; output_dir=FOLDER trains elsewhere"));
}

bool ended_by_itself(const fs::path& summary_file) {
  if (!is_there(summary_file)) return false;
  const auto summary = nlohmann::json::parse(read_file(summary_file), nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("reason")) return false;
  for (const auto done : {train::StopReason::kEpochs, train::StopReason::kMaxSteps,
                          train::StopReason::kMaxTime, train::StopReason::kEarlyStopped}) {
    if (summary["reason"] == report::to_word(done)) return true;
  }
  return false;
}

// The first line of `now` that `before` does not have at the same place.
std::string first_difference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  std::string old_line, new_line;
  while (std::getline(new_lines, new_line)) {
    if (!std::getline(old_lines, old_line)) old_line = "nothing";
    if (old_line != new_line) return concat("`", old_line, "` there, `", new_line, "` now");
  }
  return "it has more keys";
}

}  // namespace

RunDir::RunDir(const fs::path& path, const Plan& plan, bool restart)
    : path_(fs::absolute(path).lexically_normal()), shown_(path.string()) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // FOLDER/
  std::error_code ignored;
  if (!is_there(path_) || !fs::is_directory(path_, ignored)) return;
  occupied_ = !fs::is_empty(path_, ignored);
  if (!occupied_) return;
  if (!is_there(path_ / kLockFile) && !is_there(path_ / kResolvedFile)) {
    throw Error(ExitCode::kUsage,
                concat(shown_, ": holds files, but no run; output_dir=FOLDER trains elsewhere"));
  }
  lock();
  if (!restart) refuse_or_recognise(plan);
}

RunDir::~RunDir() {
  if (lock_ >= 0) close(lock_);
}

fs::path RunDir::open() {
  fs::path aside = occupied_ ? move_aside() : fs::path();
  create_folders(path_);
  lock();
  if (is_there(path_ / kResolvedFile)) {
    throw Error(ExitCode::kUsage, concat(shown_, ": another run has begun here meanwhile", kHowToGoOn));
  }
  return aside;
}

void RunDir::lock() {
  const fs::path file = path_ / kLockFile;
  // A run that is only looked at may lie where nothing can be written.
  lock_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock_ < 0) lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) {
    throw Error(ExitCode::kFileSystem, concat(shown_, ": cannot be written: ", std::strerror(errno),
                                              "; output_dir=FOLDER trains elsewhere"));
  }
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  throw Error(ExitCode::kUsage, concat(shown_,
                                       ": another process is training here now; wait for it, or "
                                       "output_dir=FOLDER trains elsewhere"));
}

void RunDir::refuse_or_recognise(const Plan& plan) {
  if (is_there(path_ / kResolvedFile)) {
    const std::string before = identity_there();
    if (const std::string now = plan.identity(); before != now) {
      throw Error(ExitCode::kUsage, concat(shown_, ": holds a run of another recipe (",
                                           first_difference(before, now), ")", kHowToGoOn));
    }
  }
  finished_ = ended_by_itself(path_ / kSummaryFile);
  if (!finished_) throw Error(ExitCode::kUsage, concat(shown_, ": holds an unfinished run", kHowToGoOn));
}

std::string RunDir::identity_there() const {
  try {
    const Plan plan = read_plan((path_ / kResolvedFile).string(), {});
    refuse_problems(plan);
    return plan.identity();
  } catch (const Error& error) {
    throw Error(ExitCode::kUsage, concat(shown_, ": holds a run whose ", kResolvedFile, " cannot be read (",
                                         error.what(), ")", kHowToGoOn));
  }
}

fs::path RunDir::move_aside() {
  fs::path aside;
  for (int number = 1; aside.empty() || is_there(aside); ++number)
    aside = concat(path_.string(), ".", number);
  std::error_code error;
  fs::rename(path_, aside, error);
  if (error) {
    throw Error(ExitCode::kFileSystem,
                concat(shown_, ": cannot be moved to ", aside.string(), ": ", error.message()));
  }
  close(std::exchange(lock_, -1));
  return aside;
}

}  // namespace gputrain::run
