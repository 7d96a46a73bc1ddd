#include "base/file.h"

#include "base/fault.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gputrain {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) {
  return std::generic_category().message(error);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  // Closing may be what reports that the bytes did not arrive (network file systems).
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

// A file that goes away unless it was renamed.
class Temporary {
 public:
  // In the folder of `target`, since a rename does not cross file systems. The process's number keeps apart
  // those of several runs.
  explicit Temporary(const fs::path& target)
      : path_(concat(target.string(), ".tmp-", ::getpid())),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) refuse_write(target, errno);
  }
  ~Temporary() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int descriptor() const { return file_.get(); }

  void become(const fs::path& target) {
    if (::fsync(file_.get()) != 0 || file_.close() != 0 || ::rename(path_.c_str(), target.c_str()) != 0) {
      refuse_write(target, errno);
    }
    renamed_ = true;
  }

 private:
  fs::path path_;
  Descriptor file_;
  bool renamed_ = false;
};

// Without this the new name itself may be lost with the power.
void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems (FUSE, some network ones) refuse to sync a folder; the file itself is safe by then.
  if (opened.get() >= 0) ::fsync(opened.get());
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

void refuse_write(const fs::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw Error(ExitCode::kFileSystem,
              concat("cannot write ", path.string(), ": ", reason(error),
                     full ? "; make room, or train" : "; train", " elsewhere with output_dir=FOLDER"));
}

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

Parsed<std::string> try_read_file(const fs::path& path, std::size_t most_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return {std::nullopt, reason(errno)};
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return {std::nullopt, reason(errno)};
  if (S_ISDIR(status.st_mode)) return {std::nullopt, "it is a folder; expected a file"};
  std::string bytes;
  bytes.reserve(std::min(static_cast<std::size_t>(status.st_size), most_bytes));
  std::string block(std::size_t{1} << 20, '\0');
  while (bytes.size() < most_bytes) {
    const ssize_t got = ::read(file.get(), block.data(), std::min(block.size(), most_bytes - bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {std::nullopt, reason(errno)};
    if (got == 0) break;
    bytes.append(block, 0, static_cast<std::size_t>(got));
  }
  return {std::move(bytes), ""};
}

std::string read_file(const fs::path& path, ExitCode code) {
  Parsed<std::string> read = try_read_file(path);
  if (!read.value) throw Error(code, concat("cannot read ", path.string(), ": ", read.error));
  return std::move(*read.value);
}

void write_atomically(const fs::path& path, std::string_view bytes) {
  write_atomically(path, std::vector<std::string_view>{bytes});
}

void write_atomically(const fs::path& path, const std::vector<std::string_view>& parts) {
  Temporary temporary(path);
  const std::string name = path.filename().string();
  for (const std::string_view part : parts) {
    if (const int error = write_all(temporary.descriptor(), part, name)) refuse_write(path, error);
  }
  temporary.become(path);
  sync_folder(folder_of(path));
}

fs::path nearest_existing(const fs::path& path) {
  std::error_code ignored;
  fs::path existing = path;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  return existing.empty() ? fs::path(".") : existing;
}

void create_folders(const fs::path& path) {
  std::error_code error;
  const fs::path existing = nearest_existing(path);
  if (fs::exists(existing, error) && !fs::is_directory(existing, error)) {
    throw Error(ExitCode::kFileSystem,
                concat("cannot make the folder ", path.string(), ": ", existing.string(),
                       " is a file; move it or choose another folder"));
  }
  fs::create_directories(path, error);
  if (error) {
    throw Error(ExitCode::kFileSystem, concat("cannot make the folder ", path.string(), ": ", error.message(),
                                              "; choose another folder with output_dir=FOLDER"));
  }
}

std::int64_t free_space(const fs::path& path) {
  std::error_code error;
  const fs::space_info space = fs::space(nearest_existing(path), error);
  if (error) {
    throw Error(ExitCode::kFileSystem,
                concat("cannot tell the free space of ", path.string(), ": ", error.message()));
  }
  return static_cast<std::int64_t>(space.available);
}

std::string expand_home(std::string_view path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || path.substr(0, 2) != "~/") return std::string(path);
  return concat(home, path.substr(1));
}

}  // namespace gputrain
