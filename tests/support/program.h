#pragma once

#include "support/paths.h"
#include "support/temporary_folder.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gputrain::testing {

struct Outcome {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

// The gputrain binary, driven as a user would, in a working directory of its own.
class Program {
 public:
  explicit Program(std::filesystem::path working_directory) : directory_(std::move(working_directory)) {}

  // Environment variables for the runs to come: "GPUTRAIN_FAULT=stop@step=4".
  void set(const std::string& variable) { environment_.push_back(variable); }

  // The same with the largest size of a file limited, or with standard error a pipe that nobody reads.
  Program with_file_limit(unsigned long bytes) const {
    Program limited = *this;
    limited.file_limit_ = bytes;
    return limited;
  }
  Program with_closed_stderr() const {
    Program deaf = *this;
    deaf.closed_stderr_ = true;
    return deaf;
  }

  // The same with standard error a terminal of 80 columns; `err` is what was written to it.
  Program on_terminal() const {
    Program shown = *this;
    shown.on_terminal_ = true;
    shown.set("TERM=xterm");  // the tests' own may be none, or one that cannot redraw a line
    return shown;
  }

  // `while_running` may send signals; it gets the process number.
  Outcome operator()(const std::vector<std::string>& arguments,
                     const std::function<void(pid_t)>& while_running = nullptr) const {
    const TemporaryFolder output;
    const int terminal = on_terminal_ ? open_terminal() : -1;
    std::fflush(nullptr);  // the child must not print what waits in our buffers
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) exec(arguments, output / "out", on_terminal_ ? ::ptsname(terminal) : output / "err");
    if (while_running) while_running(child);
    const std::string shown = on_terminal_ ? read_terminal(terminal) : "";
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, text_of(output / "out"), on_terminal_ ? shown : text_of(output / "err")};
  }

 private:
  static int open_terminal() {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const winsize size{24, 80, 0, 0};
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0 ||
        ::ioctl(terminal, TIOCSWINSZ, &size) != 0) {
      throw std::runtime_error("no terminal can be made");
    }
    return terminal;
  }

  // Reads until the program has closed its side, and closes this one.
  static std::string read_terminal(int terminal) {
    std::string text;
    std::array<char, 4096> part{};
    for (bool open = true; open;) {
      const ssize_t size = ::read(terminal, part.data(), part.size());
      if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
      // Before the program has opened its side, reading fails as it does afterwards.
      open = size > 0 || (text.empty() && ::usleep(1000) == 0);
    }
    ::close(terminal);
    return text;
  }

  [[noreturn]] void exec(const std::vector<std::string>& arguments, const std::filesystem::path& out,
                         const std::filesystem::path& err) const {
    const std::string binary = binary_path();
    // Tests that a shell started in the background have SIGINT ignored, and gputrain would keep it so.
    std::signal(SIGINT, SIG_DFL);
    if (::chdir(directory_.c_str()) != 0 || !std::freopen(out.c_str(), "w", stdout) ||
        !std::freopen(err.c_str(), "w", stderr)) {
      ::_exit(99);
    }
    if (file_limit_ > 0) {
      const rlimit limit{file_limit_, file_limit_};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (closed_stderr_) {
      int ends[2];
      if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(97);
      ::close(ends[0]);
      ::close(ends[1]);
    }
    for (const std::string& variable : environment_) {
      const auto equals = variable.find('=');
      ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    std::vector<char*> argv = {const_cast<char*>(binary.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(binary.c_str(), argv.data());
    ::_exit(98);
  }

  std::filesystem::path directory_;
  std::vector<std::string> environment_;
  unsigned long file_limit_ = 0;
  bool closed_stderr_ = false;
  bool on_terminal_ = false;
};

}  // namespace gputrain::testing
