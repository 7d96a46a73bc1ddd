#include "report/ledger.h"

#include "support/catch.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace gputrain::report {
namespace {

using profile::Class;

constexpr std::int64_t kMiB = 1 << 20;

profile::RunLedger gpu_ledger() {
  profile::RunLedger ledger;
  ledger.device = "cuda:0";
  ledger.window = 3;
  ledger.micro_batches = 2;
  ledger.start[Class::kWeights] = 97 * kMiB;
  ledger.start.memory = {97 * kMiB, 100 * kMiB, 500 * kMiB, {}, {}, {}, false};
  ledger.peak = ledger.start;
  ledger.peak[Class::kActivations] = 800 * kMiB;
  ledger.peak.layers = {{"conv1", 100 * kMiB}, {"layer1.0.conv1", 700 * kMiB}};
  ledger.peak.memory = {900 * kMiB, 1000 * kMiB, 1500 * kMiB, {}, {}, {}, false};
  ledger.allocated_peak = 950 * kMiB;
  ledger.growth = profile::Growth{};
  return ledger;
}

}  // namespace

TEST_CASE("ledger: the table has each class at the start and at the peak", "[report]") {
  const std::vector<std::string> expected{
      "memory of cuda:0 at the start, and at the end of the last forward pass of window 3:",
      "                                     start        peak",
      "  weights                         97.0 MiB    97.0 MiB",
      "  activations                          0 B   800.0 MiB",
      "  unexplained                          0 B     3.0 MiB  (0.2% of the device's)",
      "  allocated                       97.0 MiB   900.0 MiB",
      "  cached, but free                 3.0 MiB   100.0 MiB",
      "  context and loaded kernels     400.0 MiB   500.0 MiB",
      "  device                         500.0 MiB     1.5 GiB",
      "  workspaces and temporaries           n/a    50.0 MiB  (above that within the step, which allocates "
      "950.0 "
      "MiB at most)",
      "kept for backward, by layer:",
      "  layer1.0.conv1                 700.0 MiB",
      "  conv1                          100.0 MiB"};
  CHECK(ledger_lines(gpu_ledger()) == expected);
}

TEST_CASE("ledger: many layers are summed up, a leak is told, an estimate is marked", "[report]") {
  profile::RunLedger ledger = gpu_ledger();
  ledger.peak.layers.clear();
  for (int i = 0; i < 15; ++i) ledger.peak.layers.push_back({"block" + std::to_string(i), (i + 1) * kMiB});
  ledger.growth = profile::Growth{500 * kMiB, {{"block3", 500 * kMiB}}};
  ledger.peak.memory.device_is_estimate = true;
  const std::vector<std::string> lines = ledger_lines(ledger);
  const auto has = [&](const std::string& line) {
    CAPTURE(line);
    CHECK(std::find(lines.begin(), lines.end(), line) != lines.end());
  };
  has("  block14                         15.0 MiB");
  has("  block3                           4.0 MiB");
  has("  3 others                         6.0 MiB");
  has("  context and loaded kernels     400.0 MiB   500.0 MiB  (an estimate)");
  has("memory that nobody accounts for grows by 500.0 MiB with each pass; it is taken in:");
  CHECK(lines.back() == "  block3                         500.0 MiB");
}

TEST_CASE("ledger: a leak that no layer takes is told, and one of some scalars is none", "[report]") {
  profile::RunLedger ledger = gpu_ledger();
  const std::size_t lines = ledger_lines(ledger).size();
  ledger.growth = profile::Growth{1000, {}};
  CHECK(ledger_lines(ledger).size() == lines);
  ledger.growth = profile::Growth{kMiB, {}};
  CHECK(ledger_lines(ledger).back() ==
        "memory that nobody accounts for grows by 1.0 MiB with each pass; it is taken outside of the layers' "
        "forward passes");
}

TEST_CASE("ledger: its JSON has every class and layer in bytes", "[report]") {
  const auto json = nlohmann::json::parse(ledger_json(gpu_ledger()));
  CHECK(json["unit"] == "bytes");
  CHECK(json["device"] == "cuda:0");
  CHECK(json["start"]["classes"].size() == profile::kClasses);
  CHECK(json["start"]["classes"]["weights"] == 97 * kMiB);
  CHECK(json["peak"]["classes"]["optimizer_states"] == 0);
  CHECK(json["peak"]["unexplained"] == 3 * kMiB);
  CHECK(json["peak"]["cached"] == 100 * kMiB);
  CHECK(json["peak"]["context"] == 500 * kMiB);
  CHECK(json["peak"]["temporaries"] == 50 * kMiB);
  CHECK(json["peak"]["window"] == 3);
  CHECK(json["peak"]["micro_batch"] == 2);
  CHECK(json["peak"]["layers"][1]["layer"] == "layer1.0.conv1");
  CHECK(json["peak"]["layers"][1]["bytes"] == 700 * kMiB);
  CHECK(json["growth"]["bytes"] == 0);
  profile::RunLedger cold = gpu_ledger();
  cold.growth.reset();
  CHECK(nlohmann::json::parse(ledger_json(cold))["growth"].is_null());
}

}  // namespace gputrain::report
