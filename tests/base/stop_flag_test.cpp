#include "base/stop_flag.h"

#include "support/catch.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace gputrain;

namespace {

// The status of a child process that ran `act`.
template <class Act>
int status_of_child(const Act& act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("stop flag: a signal raises it and ends nothing", "[base]") {
  const auto [signal, told] =
      GENERATE(table<int, int>({{SIGINT, SIGINT}, {SIGTERM, SIGTERM}, {SIGHUP, SIGTERM}}));
  std::signal(signal, SIG_DFL);
  const StopFlag flag;
  CHECK(!flag);
  std::raise(signal);
  CHECK(flag);
  CHECK(flag.signal() == told);
}

TEST_CASE("stop flag: a signal that was ignored stays ignored", "[base]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const auto before = std::signal(signal, SIG_IGN);
  {
    const StopFlag flag;
    std::raise(signal);
    CHECK(!flag);
  }
  CHECK(std::signal(signal, before) == SIG_IGN);
}

TEST_CASE("stop flag: the first signal is the one that counts", "[base]") {
  const StopFlag flag;
  std::raise(SIGTERM);
  std::raise(SIGINT);
  std::raise(SIGTERM);
  CHECK(flag.signal() == SIGTERM);
}

TEST_CASE("stop flag: a second SIGINT ends the process at once", "[base]") {
  const int status = status_of_child([] {
    std::signal(SIGINT, SIG_DFL);
    const StopFlag flag;
    std::raise(SIGINT);
    if (!flag) _exit(8);
    std::raise(SIGINT);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("stop flag: the handlers of before come back", "[base]") {
  const int status = status_of_child([] {
    std::signal(SIGTERM, SIG_DFL);
    { const StopFlag flag; }
    std::raise(SIGTERM);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}
