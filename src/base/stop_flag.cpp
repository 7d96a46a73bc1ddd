#include "base/stop_flag.h"

#include <atomic>
#include <cassert>
#include <csignal>

namespace gputrain {
namespace {

// A handler has nowhere else to leave word.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

struct sigaction before_interrupt;
struct sigaction before_terminate;
bool installed = false;

void raise_flag(int signal) {
  int none = 0;
  received.compare_exchange_strong(none, signal);
  if (signal == SIGINT) {
    struct sigaction ends_at_once = {};
    ends_at_once.sa_handler = SIG_DFL;
    sigaction(SIGINT, &ends_at_once, nullptr);
  }
}

}  // namespace

StopFlag::StopFlag() {
  assert(!installed);
  installed = true;
  received = 0;
  struct sigaction action = {};
  action.sa_handler = raise_flag;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_interrupt);
  sigaction(SIGTERM, &action, &before_terminate);
}

StopFlag::~StopFlag() {
  sigaction(SIGINT, &before_interrupt, nullptr);
  sigaction(SIGTERM, &before_terminate, nullptr);
  installed = false;
}

int StopFlag::signal() const {
  return received;
}

}  // namespace gputrain
