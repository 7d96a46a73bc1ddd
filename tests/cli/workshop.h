#pragma once

#include "support/catch.h"
#include "support/program.h"

#include <fstream>
#include <string>

namespace gputrain::testing {

// A working directory with a recipe that trains in a blink: 7 samples of two values, two classes.
struct Workshop {
  Workshop() {
    write("points.txt", "0 -1 -1\n1 1 1\n0 -1 0\n1 0 1\n0 -0.5 -1\n1 1 0.5\n0 0 -1\n");
    write("recipe.yaml", recipe());
  }

  static std::string recipe() {
    return "name: points\n"
           "device: cpu\n"
           "micro_batch_size: 2\n"
           "epochs: 2\n"
           "model: { name: mlp, hidden: [4] }\n"
           "data: { name: testing.linear, path: points.txt, validation_path: points.txt }\n"
           "optimizer: { name: sgd, lr: 0.1 }\n"
           "logging: { log_every: 3 }\n";
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }
  std::string read(const std::string& name) const { return text_of(folder / name); }

  // Names in the working directory, sorted.
  std::vector<std::string> listing(const std::string& name = ".") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / name)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder;
  Program gputrain{folder.path()};
};

}  // namespace gputrain::testing
