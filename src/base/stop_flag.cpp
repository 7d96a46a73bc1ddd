#include "base/stop_flag.h"

#include <array>
#include <atomic>
#include <cassert>
#include <csignal>
#include <cstddef>

namespace gputrain {
namespace {

// A handler has nowhere else to leave word.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kSignals.size()> before;
bool installed = false;

void raise_flag(int signal) {
  int none = 0;
  received.compare_exchange_strong(none, signal == SIGHUP ? SIGTERM : signal);
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
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopFlag::~StopFlag() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  installed = false;
}

int StopFlag::signal() const {
  return received;
}

}  // namespace gputrain
