#include "recipe/keys.h"

namespace gputrain::recipe {
namespace {

class KeyLister : public Visitor {
 public:
  KeyLister(std::string prefix, std::vector<Key>& keys) : prefix_(std::move(prefix)), keys_(keys) {}

  void number(const char* name, double&, Range, const char*, const char*) override { add(name); }
  void number(const char* name, std::optional<double>&, Range, const char*, const char*) override {
    add(name);
  }
  void integer(const char* name, std::int64_t&, Range, const char*, const char*) override { add(name); }
  void integer(const char* name, std::optional<std::int64_t>&, Range, const char*, const char*) override {
    add(name);
  }
  void boolean(const char* name, bool&, const char*) override { add(name); }
  void boolean(const char* name, std::optional<bool>&, const char*) override { add(name); }
  void text(const char* name, std::string&, const char*) override { add(name); }
  void text(const char* name, std::optional<std::string>&, const char*) override { add(name); }
  void path(const char* name, std::optional<std::string>&, const char*) override { add(name); }
  void numbers(const char* name, std::optional<std::vector<double>>&, Range, const char*,
               const char*) override {
    add(name);
  }
  void integers(const char* name, std::vector<std::int64_t>&, Range, const char*, const char*) override {
    add(name);
  }
  void duration(const char* name, std::optional<double>&, const char*) override { add(name); }
  void count(const char* name, std::optional<std::int64_t>&, Range, const char*, const char*) override {
    add(name);
  }
  void limit(const char* name, std::optional<double>&, Range, const char*, const char*) override {
    add(name);
  }
  void interval(const char* name, Interval&, const char*) override { add(name); }

  void section(const char* name, const char*, const Describe& describe_section) override {
    add(name);
    KeyLister inner(path(name), keys_);
    describe_section(inner);
  }

  void component(const char* name, Choice& value, const char*) override {
    keys_.push_back({path(name), true, value.name});
  }

 protected:
  void word(const char* name, int&, const Words&, const char*) override { add(name); }

 private:
  std::string path(const char* name) const { return prefix_.empty() ? name : prefix_ + "." + name; }
  void add(const char* name) { keys_.push_back({path(name), false, ""}); }

  std::string prefix_;
  std::vector<Key>& keys_;
};

}  // namespace

std::vector<Key> keys(const Describe& describe, const std::string& prefix) {
  std::vector<Key> all;
  KeyLister lister(prefix, all);
  describe(lister);
  return all;
}

}  // namespace gputrain::recipe
