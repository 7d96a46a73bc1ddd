#include "device/doctor_support.h"
#include "device/environment_variables.h"
#include "support/catch.h"

#include <string>

using gputrain::testing::about;
using gputrain::testing::diagnose;
using gputrain::testing::Diagnosis;
using gputrain::testing::Environment;
using gputrain::testing::Finding;
using gputrain::testing::healthy;
using gputrain::testing::Level;
using gputrain::testing::without_gpu;

TEST_CASE("doctor: variables that slow training down or change it are named with the cure", "[device]") {
  Environment environment = healthy();
  environment.variables = {
      {"CUDA_LAUNCH_BLOCKING", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"OMP_NUM_THREADS", "1"}};
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "CUDA_LAUNCH_BLOCKING").level == Level::kWarning);
  CHECK(about(diagnosis, "CUDA_LAUNCH_BLOCKING").advice == "unset CUDA_LAUNCH_BLOCKING");
  CHECK(about(diagnosis, "CUDA_VISIBLE_DEVICES").level == Level::kNote);
  CHECK(about(diagnosis, "OMP_NUM_THREADS").found == "1; 12 cores can be used");
  environment.variables = {{"CUDA_LAUNCH_BLOCKING", "0"}, {"OMP_NUM_THREADS", "12"}};
  CHECK(about(diagnose(environment), "CUDA_LAUNCH_BLOCKING").found.empty());
  CHECK(about(diagnose(environment), "OMP_NUM_THREADS").found.empty());
}

TEST_CASE("doctor: every variable has a line that unsets it", "[device]") {
  for (const auto& variable : gputrain::device::watched_variables()) {
    Environment environment = healthy();
    const std::string name = variable.name;
    environment.variables[name] = name == "CUDA_MODULE_LOADING" ? "EAGER" : "1";
    const Finding finding = about(diagnose(environment), name);
    INFO(name);
    CHECK(finding.topic == gputrain::device::Topic::kVariable);
    if (variable.hurts) CHECK(finding.level == Level::kWarning);
    CHECK_FALSE(finding.cost.empty());
    CHECK_THAT(finding.advice, ContainsSubstring("unset " + name));
  }
}

TEST_CASE("doctor: an option of the allocator that LibTorch does not know is a warning with the nearest",
          "[device]") {
  Environment environment = healthy();
  environment.variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True";
  const Finding finding = about(diagnose(environment), "PYTORCH_CUDA_ALLOC_CONF");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found ==
        "expandable_segment:True; expandable_segment is no option of LibTorch's allocator; did you mean "
        "expandable_segments?");
  CHECK(finding.cost == "LibTorch stops at the first tensor on the GPU");
}

TEST_CASE("doctor: options of the allocator need a value, and switches True or False", "[device]") {
  Environment environment = healthy();
  std::string& value = environment.variables["PYTORCH_ALLOC_CONF"];
  value = "max_split_size_mb:128, expandable_segments:true";
  CHECK_THAT(about(diagnose(environment), "PYTORCH_ALLOC_CONF").found,
             ContainsSubstring("expandable_segments is true; expected True or False"));
  value = "expandable_segments";
  CHECK_THAT(about(diagnose(environment), "PYTORCH_ALLOC_CONF").found,
             ContainsSubstring("expected option:value in place of expandable_segments"));
  value = "roundup_power2_divisions:[256:1,>:8],backend:native,expandable_segments:False";
  CHECK(about(diagnose(environment), "PYTORCH_ALLOC_CONF").found == value);
  CHECK(about(diagnose(environment), "PYTORCH_ALLOC_CONF").level == Level::kNote);
}

TEST_CASE("doctor: both names of the allocator's settings at once may contradict one another", "[device]") {
  Environment environment = healthy();
  environment.variables = {{"PYTORCH_ALLOC_CONF", "backend:native"},
                           {"PYTORCH_CUDA_ALLOC_CONF", "backend:native"}};
  CHECK_THAT(about(diagnose(environment), "PYTORCH_CUDA_ALLOC_CONF").cost,
             ContainsSubstring("either may win"));
}

TEST_CASE("doctor: CUDA_VISIBLE_DEVICES that hides every GPU is a warning", "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities.clear();
  environment.cuda.visible_devices = "";
  environment.gpus[0].index.reset();
  environment.variables["CUDA_VISIBLE_DEVICES"] = "";
  const Finding finding = about(diagnose(environment), "CUDA_VISIBLE_DEVICES");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "\"\"; it hides every GPU");
  CHECK(finding.cost == "no GPU is seen");
  CHECK(finding.advice == "unset CUDA_VISIBLE_DEVICES, or name GPUs that nvidia-smi -L lists");
  CHECK(about(diagnose(environment), "GPU").level == Level::kProblem);
}

TEST_CASE("doctor: hiding every GPU is a note where there is none", "[device]") {
  Environment environment = without_gpu();
  environment.variables["CUDA_VISIBLE_DEVICES"] = "-1";
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").level == Level::kNote);
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").found == "-1; it hides every GPU");
  environment.machine.has_nvidia_gpu = true;  // and NVML is not there to list it
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").level == Level::kWarning);
}

TEST_CASE("doctor: CUDA_VISIBLE_DEVICES that names an absent GPU is a warning that names it", "[device]") {
  Environment environment = healthy();
  std::string& value = environment.variables["CUDA_VISIBLE_DEVICES"];
  value = "0,7";
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").found == "0,7; there is no GPU 7");
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").cost == "only 1 of those named is seen");
  value = "GPU-1,GPU-2";
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").found == "GPU-1,GPU-2; there is no GPU GPU-2");
  value = "GPU-1";
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").level == Level::kNote);
  environment.cuda.capabilities.clear();
  value = "0,0";
  CHECK(about(diagnose(environment), "CUDA_VISIBLE_DEVICES").found == "0,0; 0 is named twice");
}

TEST_CASE("doctor: more threads than cores are a warning, and a number that is none is told", "[device]") {
  Environment environment = healthy();
  std::string& value = environment.variables["OMP_NUM_THREADS"];
  value = "64";
  CHECK(about(diagnose(environment), "OMP_NUM_THREADS").level == Level::kWarning);
  CHECK(about(diagnose(environment), "OMP_NUM_THREADS").found == "64; 12 cores can be used");
  value = "all";
  CHECK(about(diagnose(environment), "OMP_NUM_THREADS").found == "all; a number of threads was expected");
  environment.variables = {{"MKL_NUM_THREADS", "64"}};
  CHECK(about(diagnose(environment), "MKL_NUM_THREADS").level == Level::kWarning);
}

TEST_CASE("doctor: variables that are switched off are no finding", "[device]") {
  Environment environment = healthy();
  environment.variables = {{"CUDA_LAUNCH_BLOCKING", "0"},
                           {"CUDA_MODULE_LOADING", "LAZY"},
                           {"OMP_PROC_BIND", "false"},
                           {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "0"}};
  CHECK(diagnose(environment).findings.size() == diagnose(healthy()).findings.size());
}
