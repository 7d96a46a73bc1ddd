#pragma once

#include "support/paths.h"
#include "support/shell.h"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gputrain::testing {

// The interpreter that has the packages which tests read our files with, from GPUTRAIN_TEST_PYTHON.
inline const char* test_python() {
  return std::getenv("GPUTRAIN_TEST_PYTHON");
}

// Runs a script of tests/ ("report/read_tensorboard.py") on one file.
inline ShellResult run_python(const std::string& script, const std::filesystem::path& file) {
  const std::string command = std::string("'") + test_python() + "' '" + source_path() + "/tests/" + script +
                              "' '" + file.string() + "'";
  return run_shell(command);
}

}  // namespace gputrain::testing
