#pragma once

#include "base/error.h"
#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain {

inline constexpr std::size_t kAnySize = static_cast<std::size_t>(-1);

// The bytes of a file, or the reason they cannot be read ("No such file or directory", "it is a folder").
// Pipes can be read too; of what is larger than `most_bytes` no more than that is read.
Parsed<std::string> try_read_file(const std::filesystem::path& path, std::size_t most_bytes = kAnySize);

// The bytes of a file. Throws Error(code) that names it and the reason.
std::string read_file(const std::filesystem::path& path, ExitCode code = ExitCode::kFileSystem);

// Puts bytes, or parts one after the other, where `path` is: all or, with Error(kFileSystem), nothing. They
// go to a temporary file beside it, to the disk, and only then under its name; a file there before is
// replaced.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);
void write_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& parts);

// Writes all of the bytes to an open file; 0, or the number of the error that stopped it. Here the faults
// short_write and disk_full strike; `file_name` is the last part of the path, for them.
int write_all(int descriptor, std::string_view bytes, std::string_view file_name);

// Throws Error(kFileSystem) that names the file, the reason and what to do. error: as in errno.
[[noreturn]] void refuse_write(const std::filesystem::path& path, int error);

// `path`, or where nothing is there, the nearest of the folders above it that exists; "." at the end of a
// relative one.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

// Makes a folder and those above it that are missing. Throws Error(kFileSystem), also where a file is in the
// way.
void create_folders(const std::filesystem::path& path);

// Bytes an unprivileged user may still write where `path` is or will be.
std::int64_t free_space(const std::filesystem::path& path);

// "~/x" in the user's home folder; any other path as it is.
std::string expand_home(std::string_view path);

}  // namespace gputrain
