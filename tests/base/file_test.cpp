#include "base/file.h"

#include "support/catch.h"

#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gputrain;
namespace fs = std::filesystem;

namespace {

// Set before main: the faults are read once.
const int armed = setenv("GPUTRAIN_FAULT", "disk_full@file=full.bin;short_write@file=short.bin", 1);

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "gputrain-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

template <class Act>
std::string error_of(const Act& act, ExitCode code) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("file: what was written is read back, and nothing else is left", "[base]") {
  const Folder folder;
  const fs::path path = folder.path / "a.bin";
  write_atomically(path, "old");
  const std::string bytes(3'000'001, '\0');
  const std::vector<std::string_view> parts = {"head", bytes, "", "tail"};
  write_atomically(path, parts);
  CHECK(read_file(path) == "head" + bytes + "tail");
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: the mode of a new file follows the umask", "[base]") {
  const Folder folder;
  const mode_t before = umask(027);
  write_atomically(folder.path / "a", "x");
  umask(before);
  struct stat status = {};
  REQUIRE(stat((folder.path / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("file: a relative path without a folder can be written", "[base]") {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path);
  write_atomically("here", "x");
  fs::current_path(before);
  CHECK(read_file(folder.path / "here") == "x");
}

TEST_CASE("file: a full disk is an error, and the file of before stays", "[base]") {
  REQUIRE(armed == 0);
  const Folder folder;
  const fs::path path = folder.path / "full.bin";
  const int made = open(path.c_str(), O_CREAT | O_WRONLY, 0644);
  REQUIRE(write(made, "old", 3) == 3);
  close(made);
  const std::string text = error_of([&] { write_atomically(path, "new bytes"); }, ExitCode::kFileSystem);
  CHECK(text == "cannot write " + path.string() +
                    ": No space left on device; make room, or train elsewhere with output_dir=FOLDER");
  CHECK(read_file(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: writes that take only a part are gone on with", "[base]") {
  const Folder folder;
  write_atomically(folder.path / "short.bin", "123456789");
  CHECK(read_file(folder.path / "short.bin") == "123456789");
}

TEST_CASE("file: a folder that is missing is an error", "[base]") {
  const Folder folder;
  const std::string text =
      error_of([&] { write_atomically(folder.path / "no" / "a", "x"); }, ExitCode::kFileSystem);
  CHECK(text == "cannot write " + (folder.path / "no" / "a").string() +
                    ": No such file or directory; train elsewhere with output_dir=FOLDER");
}

TEST_CASE("file: a folder in the place of a file is an error", "[base]") {
  const Folder folder;
  fs::create_directory(folder.path / "a");
  CHECK_THAT(error_of([&] { write_atomically(folder.path / "a", "x"); }, ExitCode::kFileSystem),
             ContainsSubstring("Is a directory"));
  CHECK(folder.entries() == 1);
  CHECK(error_of([&] { read_file(folder.path / "a", ExitCode::kData); }, ExitCode::kData) ==
        "cannot read " + (folder.path / "a").string() + ": it is a folder; expected a file");
}

TEST_CASE("file: a file that is missing is named with the reason", "[base]") {
  CHECK(error_of([] { read_file("/no/such/file"); }, ExitCode::kFileSystem) ==
        "cannot read /no/such/file: No such file or directory");
}

TEST_CASE("file: no more is read than was asked for", "[base]") {
  const Folder folder;
  write_atomically(folder.path / "a", "123456");
  CHECK(try_read_file(folder.path / "a", 4).value == "1234");
  CHECK(try_read_file(folder.path / "a", 6).value == "123456");
}

TEST_CASE("file: folders are made with those above them, once or twice", "[base]") {
  const Folder folder;
  create_folders(folder.path / "a" / "b");
  create_folders(folder.path / "a" / "b");
  CHECK(fs::is_directory(folder.path / "a" / "b"));
}

TEST_CASE("file: a file where a folder should be is named", "[base]") {
  const Folder folder;
  write_atomically(folder.path / "a", "x");
  const std::string wanted = (folder.path / "a" / "b" / "c").string();
  CHECK(error_of([&] { create_folders(wanted); }, ExitCode::kFileSystem) ==
        "cannot make the folder " + wanted + ": " + (folder.path / "a").string() +
            " is a file; move it or choose another folder");
}

TEST_CASE("file: the nearest folder that exists is found, also from a relative path", "[base]") {
  const Folder folder;
  CHECK(nearest_existing(folder.path / "not" / "yet") == folder.path);
  CHECK(nearest_existing(folder.path) == folder.path);
  CHECK(nearest_existing("not/yet") == ".");
}

TEST_CASE("file: free space is known for a folder that is not there yet", "[base]") {
  const Folder folder;
  CHECK(free_space(folder.path / "not" / "yet") > 0);
  CHECK(free_space("not/yet") > 0);
}

TEST_CASE("file: the home folder is put in for ~/ alone", "[base]") {
  setenv("HOME", "/home/someone", 1);
  CHECK(expand_home("~/data") == "/home/someone/data");
  CHECK(expand_home("~x/data") == "~x/data");
  CHECK(expand_home("a/~/b") == "a/~/b");
}
