#include "report/ledger.h"

#include "base/text.h"
#include "base/units.h"
#include "report/numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace gputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using profile::LayerBytes;
using profile::Ledger;
using Bytes = std::optional<std::int64_t>;

constexpr std::size_t kLayersShown = 12;
constexpr std::size_t kNameColumns = 28;
constexpr std::size_t kNumberColumns = 12;

std::string padded(const std::string& name) {
  return name + std::string(name.size() < kNameColumns ? kNameColumns - name.size() : 1, ' ');
}

std::string number(const Bytes& bytes) {
  std::string text = "n/a";
  if (bytes) text = *bytes < 0 ? "-" + format_bytes(-*bytes) : format_bytes(*bytes);
  return std::string(text.size() < kNumberColumns ? kNumberColumns - text.size() : 1, ' ') + text;
}

std::string line(const std::string& name, const Bytes& start, const Bytes& peak,
                 const std::string& note = "") {
  return concat("  ", padded(name), number(start), number(peak), note);
}

bool is_cpu(const profile::RunLedger& ledger) {
  return ledger.device == "cpu";
}

// "   (0.4% of the device's)"
std::string share_of_device(const Ledger& ledger) {
  const Bytes rest = profile::unexplained(ledger);
  if (!rest || ledger.memory.device.value_or(0) <= 0) return "";
  const double share = static_cast<double>(*rest) / static_cast<double>(*ledger.memory.device);
  return concat("  (", percent_text(share, 1), " of the device's)");
}

void add_classes(const Ledger& start, const Ledger& peak, std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < profile::kClasses; ++i) {
    if (start.bytes[i] == 0 && peak.bytes[i] == 0) continue;
    lines.push_back(line(profile::kClassNames[i], start.bytes[i], peak.bytes[i]));
  }
}

void add_layers(const std::vector<LayerBytes>& layers, std::vector<std::string>& lines) {
  if (layers.empty()) return;
  lines.emplace_back("kept for backward, by layer:");
  std::int64_t others = 0;
  for (const LayerBytes& layer : layers) others += layer.bytes;
  for (const LayerBytes& layer : profile::largest(layers, kLayersShown)) {
    lines.push_back(concat("  ", padded(layer.layer), number(layer.bytes)));
    others -= layer.bytes;
  }
  if (layers.size() <= kLayersShown) return;
  lines.push_back(concat("  ", padded(concat(layers.size() - kLayersShown, " others")), number(others)));
}

void add_growth(const profile::RunLedger& ledger, std::vector<std::string>& lines) {
  if (!ledger.growth || ledger.growth->bytes < profile::kLeastGrowth) return;
  const bool is_found = !ledger.growth->layers.empty();
  lines.push_back(concat("memory that nobody accounts for grows by ", format_bytes(ledger.growth->bytes),
                         " with each pass; ",
                         is_found ? "it is taken in:" : "it is taken outside of the layers' forward passes"));
  for (const LayerBytes& layer : ledger.growth->layers) {
    lines.push_back(concat("  ", padded(layer.layer), number(layer.bytes)));
  }
}

Json number_or_null(const Bytes& bytes) {
  return bytes ? Json(*bytes) : Json();
}

Json to_json(const std::vector<LayerBytes>& layers) {
  Json list = Json::array();
  for (const LayerBytes& layer : layers) list.push_back({{"layer", layer.layer}, {"bytes", layer.bytes}});
  return list;
}

Json to_json(const Ledger& ledger) {
  Json object;
  Json& classes = object["classes"];
  for (std::size_t i = 0; i < profile::kClasses; ++i) {
    std::string key = profile::kClassNames[i];
    std::replace(key.begin(), key.end(), ' ', '_');
    classes[key] = ledger.bytes[i];
  }
  object["unexplained"] = number_or_null(profile::unexplained(ledger));
  object["allocated"] = number_or_null(ledger.memory.allocated);
  object["cached"] = number_or_null(profile::cached(ledger));
  object["context"] = number_or_null(profile::context(ledger));
  object["device"] = number_or_null(ledger.memory.device);
  object["device_is_estimate"] = ledger.memory.device_is_estimate;
  return object;
}

}  // namespace

std::vector<std::string> class_lines(const Ledger& ledger) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < profile::kClasses; ++i) {
    if (ledger.bytes[i] == 0) continue;
    const std::string name = profile::kClassNames[i];
    lines.push_back(concat("  ", name, std::string(18 - name.size(), ' '), format_bytes(ledger.bytes[i])));
  }
  return lines;
}

std::vector<std::string> ledger_lines(const profile::RunLedger& ledger) {
  const Ledger& start = ledger.start;
  const Ledger& peak = ledger.peak;
  std::vector<std::string> lines;
  lines.push_back(concat("memory of ", ledger.device,
                         " at the start, and at the end of the last forward pass of window ", ledger.window,
                         ":"));
  lines.push_back(concat("  ", padded(""), std::string(kNumberColumns - 5, ' '), "start",
                         std::string(kNumberColumns - 4, ' '), "peak"));
  add_classes(start, peak, lines);
  lines.push_back(
      line("unexplained", profile::unexplained(start), profile::unexplained(peak), share_of_device(peak)));
  lines.push_back(line("allocated", start.memory.allocated, peak.memory.allocated));
  if (!is_cpu(ledger))
    lines.push_back(line("cached, but free", profile::cached(start), profile::cached(peak)));
  lines.push_back(line(is_cpu(ledger) ? "program and libraries" : "context and loaded kernels",
                       profile::context(start), profile::context(peak),
                       peak.memory.device_is_estimate ? "  (an estimate)" : ""));
  lines.push_back(line(is_cpu(ledger) ? "resident" : "device", start.memory.device, peak.memory.device));
  if (const Bytes above = profile::temporaries(ledger)) {
    lines.push_back(line("workspaces and temporaries", std::nullopt, above,
                         concat("  (above that within the step, which allocates ",
                                format_bytes(*ledger.allocated_peak), " at most)")));
  }
  add_layers(peak.layers, lines);
  add_growth(ledger, lines);
  return lines;
}

std::string ledger_json(const profile::RunLedger& ledger) {
  Json object;
  object["unit"] = "bytes";
  object["device"] = ledger.device;
  object["start"] = to_json(ledger.start);
  object["peak"] = to_json(ledger.peak);
  object["peak"]["window"] = ledger.window;
  object["peak"]["micro_batch"] = ledger.micro_batches;
  object["peak"]["allocated_peak"] = number_or_null(ledger.allocated_peak);
  object["peak"]["temporaries"] = number_or_null(profile::temporaries(ledger));
  object["peak"]["layers"] = to_json(ledger.peak.layers);
  object["growth"] = Json();
  if (ledger.growth) {
    object["growth"] = {{"bytes", ledger.growth->bytes}, {"layers", to_json(ledger.growth->layers)}};
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gputrain::report
