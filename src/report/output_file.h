#pragma once

#include <filesystem>
#include <string_view>

namespace gputrain::report {

// A file that grows by whole pieces. Each append is handed to the system at once, so that killing the
// process loses nothing that was appended. Throws Error(kFileSystem) that names the file.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);  // makes missing folders; keeps what is in the file
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All of `bytes` or, when the disk is full, nothing: a part that was written is taken back.
  void append(std::string_view bytes);
  bool empty() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace gputrain::report
