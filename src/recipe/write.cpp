#include "recipe/write.h"

#include "base/text.h"

#include <array>
#include <cstdio>
#include <set>
#include <string_view>

namespace gputrain::recipe {
namespace {

bool is_plain(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
  constexpr std::string_view kDigitsAndMarks = "0123456789.:-+";
  // What some reader of YAML takes for a boolean or for null.
  static const std::set<std::string_view> words = {
      "y",   "Y",   "n",   "N",    "yes",  "Yes",  "YES",   "no",    "No",    "NO",   "on",   "On",  "ON",
      "off", "Off", "OFF", "true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL"};
  if (text.empty() || kLetters.find(text.front()) == std::string_view::npos || text.back() == ':')
    return false;
  for (const char c : text) {
    if (kLetters.find(c) == std::string_view::npos && kDigitsAndMarks.find(c) == std::string_view::npos)
      return false;
  }
  return words.count(text) == 0;
}

std::string escaped(char c) {
  if (c == '"' || c == '\\') return {'\\', c};
  if (c == '\n') return "\\n";
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20 && code != 0x7F) return {c};
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "\\x%02x", code);
  return hex.data();
}

std::string scalar_text(const std::string& text) {
  if (is_plain(text)) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += escaped(c);
  return quoted + '"';
}

std::string interval_text(const Interval& interval) {
  switch (interval.unit) {
    case Interval::Unit::kEpochs:
      return shortest(interval.count) + "ep";
    case Interval::Unit::kSeconds:
      return shortest(interval.count) + "s";
    case Interval::Unit::kSteps:
      break;
  }
  return std::to_string(static_cast<std::int64_t>(interval.count));
}

class Writer : public Visitor {
 public:
  Writer(std::string indent, const std::map<std::string, Describe>& components, std::string& out)
      : indent_(std::move(indent)), components_(components), out_(out) {}

  void number(const char* name, double& value, Range, const char*, const char*) override {
    line(name, shortest(value));
  }
  void number(const char* name, std::optional<double>& value, Range, const char*, const char*) override {
    line(name, value ? shortest(*value) : "auto");
  }
  void integer(const char* name, std::int64_t& value, Range, const char*, const char*) override {
    line(name, std::to_string(value));
  }
  void integer(const char* name, std::optional<std::int64_t>& value, Range, const char*,
               const char*) override {
    line(name, value ? std::to_string(*value) : "auto");
  }
  void boolean(const char* name, bool& value, const char*) override { line(name, boolean_text(value)); }
  void boolean(const char* name, std::optional<bool>& value, const char*) override {
    line(name, value ? boolean_text(*value) : "auto");
  }
  void text(const char* name, std::string& value, const char*) override { line(name, scalar_text(value)); }
  void text(const char* name, std::optional<std::string>& value, const char*) override {
    line(name, value ? scalar_text(*value) : "~");
  }
  void path(const char* name, std::optional<std::string>& value, const char*) override {
    line(name, value ? scalar_text(*value) : "~");
  }
  void numbers(const char* name, std::optional<std::vector<double>>& value, Range, const char*,
               const char*) override {
    line(name, value ? list_text(*value) : "auto");
  }
  void integers(const char* name, std::vector<std::int64_t>& value, Range, const char*,
                const char*) override {
    line(name, list_text(value));
  }
  void duration(const char* name, std::optional<double>& seconds, const char*) override {
    line(name, seconds ? shortest(*seconds) + "s" : "~");
  }
  void count(const char* name, std::optional<std::int64_t>& value, Range, const char*, const char*) override {
    line(name, value ? std::to_string(*value) : "~");
  }
  void limit(const char* name, std::optional<double>& value, Range, const char*, const char*) override {
    line(name, value ? shortest(*value) : "~");
  }
  void interval(const char* name, Interval& value, const char*) override { line(name, interval_text(value)); }

  void section(const char* name, const char*, const Describe& describe_section) override {
    out_ += concat(indent_, name, ":\n");
    Writer inner(indent_ + "  ", components_, out_);
    describe_section(inner);
  }

  void component(const char* name, Choice& value, const char*) override {
    section(name, "", [&](Visitor& inner) {
      inner.text("name", value.name, "");
      components_.at(name)(inner);
    });
  }

 protected:
  void word(const char* name, int& index, const Words& words, const char*) override {
    line(name, words.at(static_cast<std::size_t>(index)));
  }

 private:
  static const char* boolean_text(bool value) { return value ? "true" : "false"; }
  static std::string element_text(double value) { return shortest(value); }
  static std::string element_text(std::int64_t value) { return std::to_string(value); }

  template <class Element>
  static std::string list_text(const std::vector<Element>& values) {
    std::vector<std::string> texts;
    for (const Element& value : values) texts.push_back(element_text(value));
    return concat('[', join(texts, ", "), ']');
  }

  void line(const char* name, const std::string& value) { out_ += concat(indent_, name, ": ", value, '\n'); }

  std::string indent_;
  const std::map<std::string, Describe>& components_;
  std::string& out_;
};

}  // namespace

std::string write_recipe(const Recipe& recipe, const std::map<std::string, Describe>& components) {
  std::string out;
  Writer writer("", components, out);
  Recipe copy = recipe;  // describing gives write access, which this visitor does not use
  describe(writer, copy);
  return out;
}

}  // namespace gputrain::recipe
