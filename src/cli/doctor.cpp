#include "device/doctor.h"

#include "cli/commands.h"
#include "device/device.h"
#include "device/environment.h"
#include "run/standard_output.h"

namespace gputrain::cli {

ExitCode doctor(bool json, const std::string& output_dir) {
  const device::Environment environment = device::inspect(GPUTRAIN_VERSION);
  const at::Device chosen = device::choose_device("auto");
  const device::Diagnosis diagnosis = device::diagnose(environment, device::try_out(chosen, output_dir));
  run::to_stdout(json ? device::to_json(environment, diagnosis) + "\n"
                      : device::to_text(environment, diagnosis));
  return diagnosis.will_train ? ExitCode::kDone : ExitCode::kUsage;
}

}  // namespace gputrain::cli
