#pragma once

#include "support/paths.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/wait.h>

namespace gputrain::testing {

// The interpreter that has the packages which tests read our files with, from GPUTRAIN_TEST_PYTHON.
inline const char* test_python() {
  return std::getenv("GPUTRAIN_TEST_PYTHON");
}

struct PythonResult {
  int exit_code = -1;
  std::string output;  // standard output; standard error goes to the test's own
};

// Runs a script of tests/ ("report/read_tensorboard.py") on one file.
inline PythonResult run_python(const std::string& script, const std::filesystem::path& file) {
  const std::string command = std::string("'") + test_python() + "' '" + source_path() + "/tests/" + script +
                              "' '" + file.string() + "'";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  PythonResult result;
  std::array<char, 4096> block{};
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), pipe)) {
    result.output.append(block.data(), got);
  }
  const int status = ::pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace gputrain::testing
