#include "data/text_lines.h"

#include <filesystem>

namespace gputrain::data {

std::ifstream open_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ExitCode::kData, path + ": is a folder; expected a text file");
  }
  std::ifstream in(path);
  if (!in) throw Error(ExitCode::kData, path + ": cannot be read; expected a text file");
  return in;
}

void for_each_line(std::istream& in, const std::string& name,
                   const std::function<void(const std::string& line, const std::string& place)>& read) {
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    read(line, concat(name, ":", number));
  }
}

}  // namespace gputrain::data
