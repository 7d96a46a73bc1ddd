#include "base/process.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace gputrain {

// Source: proc(5); field 22 of /proc/self/stat is the start in clock ticks since boot. The fields are counted
// behind the command's closing parenthesis, since its name may hold spaces.
double seconds_since_process_start(const std::string& stat_path) {
  std::ifstream stat_file(stat_path);
  std::string line;
  std::getline(stat_file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  double start_ticks = 0;
  timespec since_boot{};
  if (!(fields >> start_ticks) || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return 0;
  const double now = static_cast<double>(since_boot.tv_sec) + static_cast<double>(since_boot.tv_nsec) * 1e-9;
  return std::max(0.0, now - start_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace gputrain
