#include "report/output_file.h"

#include "base/file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gputrain::report {
namespace {

// -1: not a regular file (a pipe, /dev/full), which has no end to go back to.
off_t size_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  return status.st_size;
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.has_parent_path()) create_folders(path_.parent_path());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse_write(path_, errno);
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
  refuse_write(path_, error);
}

bool OutputFile::empty() const {
  return size_of(descriptor_) <= 0;
}

}  // namespace gputrain::report
