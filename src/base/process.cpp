#include "base/process.h"

#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace gputrain {

// Source: proc(5); field 22 of /proc/self/stat is the start in clock ticks since boot. The fields are counted
// behind the command's closing parenthesis, since its name may hold spaces.
double seconds_since_process_start() {
  std::ifstream stat_file("/proc/self/stat");
  std::string line;
  std::getline(stat_file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  return uptime - std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace gputrain
