#include "cli/standard_streams.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace gputrain::cli {

void guard_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int opened = 0; opened >= 0 && opened <= STDERR_FILENO;) {
    opened = open("/dev/null", O_RDWR);  // the lowest free number
    if (opened > STDERR_FILENO) close(opened);
  }
}

}  // namespace gputrain::cli
