#pragma once

#include <stdexcept>
#include <string>

namespace gputrain {

// What the process ends with; part of the command line's contract.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,          // command line or recipe
  kData = 3,           // data files
  kOutOfMemory = 4,    // after every fall-back
  kNotFinite = 5,      // loss or gradients
  kFileSystem = 6,     // output folder, disk, checkpoint
  kPeer = 7,           // another process of the run failed
  kInterrupted = 130,  // SIGINT, stopped cleanly
  kTerminated = 143,   // SIGTERM, stopped cleanly
};

// A failure the user can act on: the text says where, what was found, what is expected, what to do.
// Thrown where it is noticed, caught once, in main.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// A setting that does not fit the other settings, the data or the machine. The text begins with its key.
class SettingError : public Error {
 public:
  // key: "optimizer.lr"; text: "is 0 and ...; expected ...".
  SettingError(const std::string& key, const std::string& text)
      : Error(ExitCode::kUsage, key + " " + text), key_(key) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace gputrain
