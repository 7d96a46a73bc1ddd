#include "report/output_file.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/text.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gputrain::report {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
  throw Error(ExitCode::kFileSystem,
              concat("cannot write ", path.string(), ": ", std::generic_category().message(error)));
}

// -1: not a regular file (a pipe, /dev/full), which has no end to go back to.
off_t size_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  return status.st_size;
}

// 0, or the number of the error that stopped it.
int write_all(int descriptor, std::string_view bytes, std::string_view file_name) {
  const bool short_writes = fault_at(FaultKind::kShortWrite, {.file = file_name}) != nullptr;
  const bool disk_full = fault_at(FaultKind::kDiskFull, {.file = file_name}) != nullptr;
  while (!bytes.empty()) {
    const std::size_t asked = short_writes || disk_full ? (bytes.size() + 1) / 2 : bytes.size();
    const ssize_t written = ::write(descriptor, bytes.data(), asked);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (disk_full) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.has_parent_path()) create_folders(path_.parent_path());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(path_, errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::append(std::string_view bytes) {
  const off_t size_before = size_of(descriptor_);
  const int error = write_all(descriptor_, bytes, path_.filename().string());
  if (error == 0) return;
  // When this fails too, the file ends in a part of a line, as after a kill.
  const bool taken_back = size_before >= 0 && ::ftruncate(descriptor_, size_before) == 0;
  static_cast<void>(taken_back);
  refuse(path_, error);
}

bool OutputFile::empty() const {
  return size_of(descriptor_) <= 0;
}

}  // namespace gputrain::report
