#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/standard_streams.h"

#include <iostream>

// Everything that goes wrong ends here: one message, one exit code.
int main(int argc, char** argv) {
  gputrain::cli::guard_standard_streams();
  try {
    return static_cast<int>(gputrain::cli::run_command_line(argc, argv));
  } catch (const std::exception& error) {
    const gputrain::Error failure = gputrain::cli::as_failure(error);
    std::cerr << "gputrain: " << failure.what() << "\n";
    return static_cast<int>(failure.code());
  }
}
