#include "report/sinks.h"

#include <exception>
#include <utility>

namespace gputrain::report {

void Fanout::add(std::unique_ptr<train::Sink> sink) {
  sinks_.push_back(std::move(sink));
}

void Fanout::start(const train::RunInfo& info) {
  for (const auto& sink : sinks_) sink->start(info);
}

void Fanout::step(const train::StepRecord& record) {
  for (const auto& sink : sinks_) sink->step(record);
}

void Fanout::eval(const train::EvalRecord& record) {
  for (const auto& sink : sinks_) sink->eval(record);
}

void Fanout::notice(const std::string& text) {
  for (const auto& sink : sinks_) sink->notice(text);
}

void Fanout::ledger(const profile::RunLedger& ledger) {
  for (const auto& sink : sinks_) sink->ledger(ledger);
}

void Fanout::finish(const train::RunSummary& summary) {
  std::exception_ptr first_failure;
  for (const auto& sink : sinks_) {
    try {
      sink->finish(summary);
    } catch (...) {
      if (!first_failure) first_failure = std::current_exception();
    }
  }
  if (first_failure) std::rethrow_exception(first_failure);
}

}  // namespace gputrain::report
