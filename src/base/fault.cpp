#include "base/fault.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace gputrain {
namespace {

struct FaultForm {
  std::string_view name;
  FaultKind kind;
  std::vector<std::string> settings;
  std::vector<std::string> phases;
};

const std::vector<FaultForm>& forms() {
  static const std::vector<FaultForm> all = {
      {"nan", FaultKind::kNan, {"step", "micro"}, {}},
      {"load", FaultKind::kLoad, {"item", "phase"}, {"training", "validation"}},
      {"oom", FaultKind::kOutOfMemory, {"step", "phase"}, {"forward", "backward", "optimizer", "validation"}},
      {"sleep", FaultKind::kSleep, {"step", "phase", "ms"}, {"step", "validation", "save"}},
      {"stop", FaultKind::kStop, {"step"}, {}},
      {"short_write", FaultKind::kShortWrite, {"file"}, {}},
      {"disk_full", FaultKind::kDiskFull, {"file"}, {}}};
  return all;
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), count);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

bool set_field(Fault& fault, const FaultForm& form, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = setting.substr(0, equals);
  const std::string_view value = setting.substr(equals + 1);
  if (!contains(form.settings, key)) return false;
  if (key == "phase") {
    fault.phase = value;
    return contains(form.phases, value);
  }
  if (key == "file") {
    fault.file = value;
    return !value.empty();
  }
  const std::optional<std::int64_t> count = parse_count(value);
  if (!count) return false;
  if (key == "step") fault.step = count;
  if (key == "micro") fault.micro = count;
  if (key == "item") fault.item = count;
  if (key == "ms") fault.milliseconds = *count;
  return true;
}

std::optional<Fault> parse_fault(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const auto form =
      std::find_if(forms().begin(), forms().end(), [&](const FaultForm& f) { return f.name == name; });
  if (form == forms().end()) return std::nullopt;
  Fault fault;
  fault.kind = form->kind;
  if (at == std::string_view::npos) return fault;
  for (const std::string_view setting : split(text.substr(at + 1), ',')) {
    if (!set_field(fault, *form, setting)) return std::nullopt;
  }
  return fault;
}

std::string known_forms() {
  std::vector<std::string> all;
  for (const FaultForm& form : forms()) {
    std::string shown = concat(form.name, '@', join(form.settings, "=,"), '=');
    if (!form.phases.empty()) shown += concat(" (phase: ", join(form.phases, ", ", " or "), ')');
    all.push_back(shown);
  }
  return join(all, "; ");
}

std::vector<Fault> faults_of_environment() {
  const char* text = std::getenv("GPUTRAIN_FAULT");
  if (text == nullptr) return {};
  Parsed<std::vector<Fault>> parsed = parse_faults(text);
  if (!parsed.value) {
    throw Error(ExitCode::kUsage, concat("GPUTRAIN_FAULT is ", text, "; ", parsed.error));
  }
  return std::move(*parsed.value);
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> read_once = faults_of_environment();
  return read_once;
}

}  // namespace

Parsed<std::vector<Fault>> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  if (text.empty()) return {faults, ""};
  for (const std::string_view part : split(text, ';')) {
    const std::optional<Fault> fault = parse_fault(part);
    if (!fault) return {std::nullopt, concat("cannot read ", part, "; expected ", known_forms())};
    faults.push_back(*fault);
  }
  return {faults, ""};
}

bool strikes(const Fault& fault, FaultKind kind, const FaultPlace& place) {
  return fault.kind == kind && (!fault.step || fault.step == place.step) &&
         (!fault.micro || fault.micro == place.micro) && (!fault.item || fault.item == place.item) &&
         (fault.phase.empty() || fault.phase == place.phase) &&
         (fault.file.empty() || fault.file == place.file);
}

void check_faults() {
  static_cast<void>(faults());
}

const Fault* fault_at(FaultKind kind, const FaultPlace& place) {
  const auto found =
      std::find_if(faults().begin(), faults().end(), [&](const Fault& f) { return strikes(f, kind, place); });
  return found == faults().end() ? nullptr : &*found;
}

bool asks_for(FaultKind kind) {
  return std::any_of(faults().begin(), faults().end(), [&](const Fault& f) { return f.kind == kind; });
}

void sleep_if_asked(const FaultPlace& place) {
  if (const Fault* fault = fault_at(FaultKind::kSleep, place)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(fault->milliseconds));
  }
}

}  // namespace gputrain
