#include "report/terminal_sink.h"

#include "report/ledger.h"
#include "report/lines.h"
#include "report/summary.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace gputrain::report {
namespace {

constexpr double kSecondsBetweenRedraws = 0.1;

enum class Style { kPlain, kBold, kGreen, kYellow, kRed };

std::string_view code_of(Style style) {
  switch (style) {
    case Style::kBold:
      return "\x1b[1m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kPlain:
      break;
  }
  return "";
}

class TerminalSink : public train::Sink {
 public:
  TerminalSink(Terminal terminal, std::int64_t log_every)
      : terminal_(std::move(terminal)), lines_(log_every) {}
  ~TerminalSink() override { clear(); }

  void start(const train::RunInfo& info) override {
    info_ = info;
    lines_.start(info);
    print(start_line(info), Style::kBold);
  }

  void step(const train::StepRecord& record) override {
    if (const auto line = lines_.step(record)) {
      print(*line, std::isfinite(record.loss) ? Style::kPlain : Style::kRed);
    } else {
      redraw();
    }
  }

  void eval(const train::EvalRecord& record) override { print(eval_line(info_, record), Style::kGreen); }

  void notice(const std::string& text) override { print(text, Style::kYellow); }

  void ledger(const profile::RunLedger& ledger) override {
    for (const std::string& line : ledger_lines(ledger)) print(line);
  }

  void finish(const train::RunSummary& summary) override {
    if (const auto line = lines_.finish()) print(*line);
    clear();
    *terminal_.out << summary_text(info_, summary) << std::flush;
  }

 private:
  void print(const std::string& line, Style style = Style::kPlain) {
    clear();
    const bool styled = terminal_.color && style != Style::kPlain;
    if (styled) *terminal_.out << code_of(style);
    *terminal_.out << line;
    if (styled) *terminal_.out << "\x1b[0m";
    *terminal_.out << '\n' << std::flush;
  }

  void redraw() {
    if (!terminal_.live) return;
    const double now = terminal_.seconds();
    if (drawn_at_ && now - *drawn_at_ < kSecondsBetweenRedraws) return;
    drawn_at_ = now;
    // The last column stays free: some terminals wrap when it is filled.
    const int columns = std::max(terminal_.columns() - 1, 0);
    *terminal_.out << '\r' << lines_.progress().substr(0, static_cast<std::size_t>(columns)) << "\x1b[K"
                   << std::flush;
    shown_ = true;
  }

  void clear() {
    if (shown_) *terminal_.out << "\r\x1b[K" << std::flush;
    shown_ = false;
  }

  Terminal terminal_;
  StepLines lines_;
  train::RunInfo info_;
  std::optional<double> drawn_at_;
  bool shown_ = false;
};

int stderr_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Terminal stderr_terminal(bool progress) {
  const bool capable = ::isatty(STDERR_FILENO) != 0 && environment("TERM") != "dumb";
  Terminal terminal;
  terminal.out = &std::cerr;
  terminal.live = capable && progress;
  terminal.color = capable && environment("NO_COLOR").empty();
  terminal.columns = stderr_columns;
  terminal.seconds = monotonic_seconds;
  return terminal;
}

std::unique_ptr<train::Sink> terminal_sink(Terminal terminal, std::int64_t log_every) {
  return std::make_unique<TerminalSink>(std::move(terminal), log_every);
}

}  // namespace gputrain::report
