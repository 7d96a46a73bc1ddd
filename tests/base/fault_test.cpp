#include "base/fault.h"

#include "support/catch.h"

using namespace gputrain;

namespace {

Fault parsed(const std::string& text) {
  const auto faults = parse_faults(text);
  INFO(text << ": " << faults.error);
  REQUIRE(faults.value);
  REQUIRE(faults.value->size() == 1);
  return faults.value->front();
}

}  // namespace

TEST_CASE("fault: it strikes only in the place that was named", "[base]") {
  const Fault fault = parsed("nan@step=3,micro=0");
  CHECK(strikes(fault, FaultKind::kNan, {.step = 3, .micro = 0}));
  CHECK(!strikes(fault, FaultKind::kNan, {.step = 3, .micro = 1}));
  CHECK(!strikes(fault, FaultKind::kNan, {.step = 2, .micro = 0}));
  CHECK(!strikes(fault, FaultKind::kNan, {.step = 3}));
  CHECK(!strikes(fault, FaultKind::kStop, {.step = 3, .micro = 0}));
}

TEST_CASE("fault: a place that is not named means every place", "[base]") {
  const Fault fault = parsed("oom@phase=backward");
  CHECK(strikes(fault, FaultKind::kOutOfMemory, {.step = 1, .phase = "backward"}));
  CHECK(strikes(fault, FaultKind::kOutOfMemory, {.step = 9, .phase = "backward"}));
  CHECK(!strikes(fault, FaultKind::kOutOfMemory, {.step = 9, .phase = "forward"}));
  CHECK(strikes(parsed("stop"), FaultKind::kStop, {.step = 5}));
}

TEST_CASE("fault: a sample is named by its number and its split", "[base]") {
  const Fault fault = parsed("load@item=7,phase=training");
  CHECK(strikes(fault, FaultKind::kLoad, {.item = 7, .phase = "training"}));
  CHECK(!strikes(fault, FaultKind::kLoad, {.item = 7, .phase = "validation"}));
  CHECK(!strikes(fault, FaultKind::kLoad, {.item = 6, .phase = "training"}));
}

TEST_CASE("fault: several are separated by semicolons", "[base]") {
  const auto faults = parse_faults("sleep@phase=save,ms=200;disk_full@file=model.safetensors");
  REQUIRE(faults.value);
  REQUIRE(faults.value->size() == 2);
  CHECK(faults.value->at(0).milliseconds == 200);
  CHECK(faults.value->at(1).file == "model.safetensors");
  CHECK(parse_faults("").value->empty());
}

TEST_CASE("fault: what cannot be read is refused with the forms that can", "[base]") {
  for (const char* text : {"nam@step=1", "nan@step", "nan@step=x", "nan@step=-1", "nan@file=a",
                           "oom@phase=save", "nan@", "nan@step=1;", "disk_full@file=", "sleep@ms=1s"}) {
    CAPTURE(text);
    CHECK(!parse_faults(text).value);
  }
  CHECK(parse_faults("nam@step=1").error ==
        "cannot read nam@step=1; expected nan@step=,micro=; "
        "load@item=,phase= (phase: training or validation); "
        "oom@step=,phase= (phase: forward, backward, optimizer or validation); "
        "sleep@step=,phase=,ms= (phase: step, validation or save); stop@step=; short_write@file=; "
        "disk_full@file=");
}
