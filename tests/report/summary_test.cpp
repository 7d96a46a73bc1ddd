#include "report/summary.h"

#include "report/records.h"
#include "support/catch.h"

#include <nlohmann/json.hpp>

using namespace gputrain;
using namespace gputrain::testing;

TEST_CASE("summary: says what was done, how well, how fast, in what memory and time, and where it is",
          "[report]") {
  CHECK(
      report::summary_text(small_run(), run_summary()) ==
      "fashion: done, all epochs trained\n"
      "  steps        5,000 (3 skipped) | 10.7 epochs | 640,384 img\n"
      "  loss         0.125\n"
      "  validation   loss 0.412 | accuracy 85.2% | top5 99.6%\n"
      "  best         85.2% at step 235\n"
      "  throughput   826 img/s\n"
      "  peak memory  device 9.8 GiB | reserved 9.0 GiB | allocated 8.0 GiB\n"
      "  time         start-up 2.2 s | training 12m 55s (of it warm-up 4.0 s, data wait 7.8 s) | validation "
      "12.0 s | "
      "saving 0.5 s\n"
      "  first step   done 3.5 s after the start\n"
      "  written      runs/fashion/metrics.jsonl\n"
      "               runs/fashion/model.safetensors\n");
}

TEST_CASE("summary: windows without targets are told apart from those that were not finite", "[report]") {
  train::RunSummary summary = run_summary();
  summary.skipped_without_targets = 2;
  CHECK_THAT(report::summary_text(small_run(), summary),
             ContainsSubstring("  steps        5,000 (3 skipped, 2 of them without targets) |"));
  const auto json = nlohmann::json::parse(report::summary_json(small_run(), summary));
  CHECK(json["skipped"] == 3);
  CHECK(json["skipped_without_targets"] == 2);
}

TEST_CASE("summary: a run that was stopped at once has nothing to measure", "[report]") {
  train::RunSummary summary;
  summary.reason = train::StopReason::kInterrupted;
  CHECK(report::summary_text(small_run(), summary) ==
        "fashion: stopped by SIGINT\n"
        "  steps        0 | 0.0 epochs | 0 img\n"
        "  throughput   n/a img/s\n"
        "  peak memory  n/a\n"
        "  time         start-up 0.0 s | training 0.0 s (of it warm-up 0.0 s, data wait 0.0 s) | validation "
        "0.0 s | "
        "saving 0.0 s\n"
        "  first step   n/a\n");
}

TEST_CASE("summary: a loss that is not finite is named", "[report]") {
  train::RunSummary summary;
  summary.reason = train::StopReason::kNotFinite;
  summary.problem = "loss is nan at step 7";
  CHECK_THAT(
      report::summary_text(small_run(), summary),
      ContainsSubstring("fashion: stopped, loss or gradients are not finite: loss is nan at step 7\n"));
}

TEST_CASE("summary: its JSON carries the same", "[report]") {
  const auto json = nlohmann::json::parse(report::summary_json(small_run(), run_summary()));
  CHECK(json["reason"] == "epochs");
  CHECK(json["problem"].is_null());
  CHECK(json["steps"] == 5000);
  CHECK(json["samples_per_second"] == 826.4);
  CHECK(json["memory_device_peak_bytes"] == 98 * kGiB / 10);
  CHECK(json["last_eval"]["metrics"]["accuracy"] == 0.852);
  CHECK(json["saving_seconds"] == 0.5);
  CHECK(json["written"][1] == "runs/fashion/model.safetensors");
}

TEST_CASE("summary: a path that is not UTF-8 does not stop the JSON", "[report]") {
  train::RunSummary summary;
  summary.written = {"runs/\xff"};
  CHECK_THAT(report::summary_json(small_run(), summary),
             ContainsSubstring("\"written\":[\"runs/\xef\xbf\xbd\"]"));
}
