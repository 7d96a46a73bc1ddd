#include "report/terminal_sink.h"

#include "report/records.h"
#include "support/catch.h"

#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace gputrain;
using namespace gputrain::testing;
using report::Terminal;

namespace {

// Standard error as a terminal of the given width, as long as this lives.
class StderrOnTerminal {
 public:
  explicit StderrOnTerminal(unsigned short columns) : saved_(::dup(STDERR_FILENO)) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master_ >= 0);
    REQUIRE((::grantpt(master_) == 0 && ::unlockpt(master_) == 0));
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    winsize size{};
    size.ws_col = columns;
    ::ioctl(slave, TIOCSWINSZ, &size);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
  }
  ~StderrOnTerminal() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(master_);
  }
  StderrOnTerminal(const StderrOnTerminal&) = delete;
  StderrOnTerminal& operator=(const StderrOnTerminal&) = delete;

 private:
  int saved_;
  int master_ = -1;
};

struct FakeTerminal {
  std::ostringstream out;
  double now = 0;
  int columns = 200;

  Terminal live() {
    Terminal terminal;
    terminal.out = &out;
    terminal.live = true;
    terminal.columns = [this] { return columns; };
    terminal.seconds = [this] { return now; };
    return terminal;
  }
  // What was written since the last call.
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

Terminal file_like(std::ostream& out) {
  Terminal terminal;
  terminal.out = &out;
  return terminal;
}

}  // namespace

TEST_CASE("terminal: off a terminal there are plain lines only", "[report]") {
  std::ostringstream out;
  const auto sink = report::terminal_sink(file_like(out), 3);
  sink->start(small_run());
  for (std::int64_t step = 1; step <= 4; ++step) sink->step(step_record(step));
  sink->eval(eval_record());
  sink->notice("configs/a.yaml:3:1: a notice");
  CHECK(
      out.str() ==
      "fashion: 11,173,962 parameters | 60,000 training and 10,000 validation samples | 5,000 steps\n"
      "step 1/5000 | loss 2.314 | gnorm 0.87 | lr 1.0e-01 | 826 img/s | 155 ms (data 1%) | mem 9.8/11.5 GiB "
      "| 32x4 | eta 13m\n"
      "step 3/5000 | loss 2.314 | gnorm 0.87 | lr 1.0e-01 | 826 img/s | 155 ms (data 1%) | mem 9.8/11.5 GiB "
      "| 32x4 | eta 13m\n"
      "validation at step 235 (epoch 1.0): loss 0.412 | accuracy 85.2% | top5 99.6% | best 85.2% at step 235 "
      "| "
      "10,000 img in 1.2 s\n"
      "configs/a.yaml:3:1: a notice\n");
}

TEST_CASE("terminal: the end shows the last step and the summary", "[report]") {
  std::ostringstream out;
  const auto sink = report::terminal_sink(file_like(out), 10);
  sink->start(small_run());
  sink->step(step_record(1));
  sink->step(step_record(2));
  out.str("");
  sink->finish(run_summary());
  CHECK_THAT(out.str(), ContainsSubstring("step 2/5000 | ") && ContainsSubstring("\nfashion: done"));
}

TEST_CASE("terminal: the progress line is drawn over itself and cleared before other text", "[report]") {
  FakeTerminal fake;
  const auto sink = report::terminal_sink(fake.live(), 100);
  sink->start(small_run());
  sink->step(step_record(1));
  fake.take();
  sink->step(step_record(2));
  CHECK(fake.take() == "\rstep 2/5000 (0%) | loss 2.314 | 826 img/s | eta 13m\x1b[K");
  sink->notice("a notice");
  CHECK(fake.take() == "\r\x1b[Ka notice\n");
  sink->notice("another");
  CHECK(fake.take() == "another\n");
}

TEST_CASE("terminal: the progress line is drawn at most ten times a second", "[report]") {
  FakeTerminal fake;
  const auto sink = report::terminal_sink(fake.live(), 1000);
  sink->start(small_run());
  sink->step(step_record(1));
  fake.take();
  int drawn = 0;
  for (int i = 0; i < 100; ++i) {
    fake.now = 0.01 * i;
    sink->step(step_record(2 + i));
    if (!fake.take().empty()) ++drawn;
  }
  CHECK(drawn >= 9);
  CHECK(drawn <= 10);
}

TEST_CASE("terminal: the progress line is cut to the width, also after the window shrank", "[report]") {
  FakeTerminal fake;
  const auto sink = report::terminal_sink(fake.live(), 1000);
  sink->start(small_run());
  sink->step(step_record(1));
  fake.take();
  fake.columns = 12;
  sink->step(step_record(2));
  CHECK(fake.take() == "\rstep 2/5000\x1b[K");
  fake.columns = 0;
  fake.now = 1;
  sink->step(step_record(3));
  CHECK(fake.take() == "\r\x1b[K");
}

TEST_CASE("terminal: a progress line is cleared when the run ends by an exception", "[report]") {
  FakeTerminal fake;
  auto sink = report::terminal_sink(fake.live(), 1000);
  sink->start(small_run());
  sink->step(step_record(1));
  sink->step(step_record(2));
  fake.take();
  sink.reset();
  CHECK(fake.take() == "\r\x1b[K");
}

TEST_CASE("terminal: colour marks validation, and stays out where it is off", "[report]") {
  std::ostringstream out;
  Terminal terminal = file_like(out);
  terminal.color = true;
  const auto sink = report::terminal_sink(terminal, 1);
  sink->notice("a notice");
  sink->step(step_record(1));
  CHECK_THAT(out.str(), ContainsSubstring("\x1b[33ma notice\x1b[0m\nstep 1 | loss"));
}

TEST_CASE("terminal: standard error is asked for its width, NO_COLOR and TERM are honoured", "[report]") {
  const StderrOnTerminal on_terminal(57);
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  CHECK(report::stderr_terminal(true).live);
  CHECK(report::stderr_terminal(true).color);
  CHECK(report::stderr_terminal(true).columns() == 57);
  CHECK_FALSE(report::stderr_terminal(false).live);
  ::setenv("NO_COLOR", "1", 1);
  CHECK(report::stderr_terminal(true).live);
  CHECK_FALSE(report::stderr_terminal(true).color);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  CHECK_FALSE(report::stderr_terminal(true).live);
  CHECK_FALSE(report::stderr_terminal(true).color);
}
