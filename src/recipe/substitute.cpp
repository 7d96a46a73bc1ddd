#include "recipe/substitute.h"

#include "base/text.h"
#include "base/units.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/scalars.h"
#include "recipe/utf8.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gputrain::recipe {
namespace {

// What all that is put in may come to, so that references to references do not fill the memory.
constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostValues = 100'000;

constexpr std::size_t kDeepest = 64;          // of lists and maps, as in a file
constexpr std::size_t kLongestChain = 64;     // of references to references
constexpr std::size_t kMostSuggestions = 10;  // each compares a path with all others

constexpr std::string_view kOpen = "${";
constexpr std::string_view kEscaped = "$${";
constexpr std::string_view kEnvironment = "env:";
constexpr std::string_view kOmegaConf = "oc.env:";
constexpr const char* kForms = "expected ${env:VAR}, ${env:VAR,default} or ${key.sub}; $${ is the text ${";

// What stands between ${ and }.
struct Form {
  std::string variable;                 // "" where it names a key
  std::optional<std::string> fallback;  // of a variable
  std::string path;                     // of a key
};

bool starts_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t start = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(start, text.find_last_not_of(kBlanks) + 1 - start);  // npos + 1 is 0
}

bool is_variable(std::string_view name) {
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

// The text of a recipe as messages show it: in one line and not too long.
std::string show_text(std::string_view text) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.scalar = text;
  return show(node);
}

// Says that all of `node` was written at `origin`.
void place(Node& node, const Origin& origin) {
  node.origin = origin;
  for (Node& element : node.list) place(element, origin);
  for (auto& [key, value] : node.map) {
    key.origin = origin;
    place(value, origin);
  }
}

// The form that this program reads for one that a shell or OmegaConf does, "" where nothing comes to mind:
// "${env:X,d}" for "${X:-d}" and "${oc.env:X,d}".
std::string usual_form(std::string_view content) {
  for (const std::string_view beginning : {kOmegaConf, kEnvironment}) {
    if (starts_with(content, beginning)) content.remove_prefix(beginning.size());
  }
  std::size_t end = content.size();
  std::size_t rest = content.size();
  for (const std::string_view separator : {":-", "-", ":", ","}) {
    if (const std::size_t at = content.find(separator); at < end) {
      end = at;
      rest = at + separator.size();
    }
  }
  const std::string_view variable = trimmed(content.substr(0, end));
  if (!is_variable(variable)) return "";
  const std::string_view fallback = content.substr(rest);
  return end == content.size() ? concat("${env:", variable, '}')
                               : concat("${env:", variable, ',', fallback, '}');
}

// Reads "${...}"; `error` is what is wrong with it.
std::optional<Form> read_form(std::string_view written, std::string& error) {
  const std::string_view content = trimmed(written.substr(kOpen.size(), written.size() - kOpen.size() - 1));
  Form form;
  if (content.find(kOpen) != std::string_view::npos) {
    error = concat(show_text(written), " holds another ${; expected plain text in it");
    return std::nullopt;
  }
  if (is_path(content)) {
    form.path = canonical(content);
    return form;
  }
  if (starts_with(content, kEnvironment)) {
    const std::size_t comma = std::min(content.find(','), content.size());
    form.variable = trimmed(content.substr(kEnvironment.size(), comma - kEnvironment.size()));
    if (comma < content.size()) form.fallback = trimmed(content.substr(comma + 1));
    if (is_variable(form.variable)) return form;
  }
  const bool names_variable = starts_with(content, kEnvironment) || starts_with(content, kOmegaConf) ||
                              content.find(":-") != std::string_view::npos;
  const std::string usual = names_variable ? usual_form(content) : "";
  error = concat(show_text(written), " is not read; ", usual.empty() ? kForms : "write " + usual);
  return std::nullopt;
}

class Substituter {
 public:
  Substituter(Node& root, const DefaultOf& default_of, const EnvironmentLookup& environment,
              std::vector<Problem>& problems, const std::vector<std::string>& known)
      : root_(root), default_of_(default_of), environment_(environment), problems_(problems), known_(known) {}

  void run() { settle(root_, 0); }

 private:
  enum class Phase { kInProgress, kGood, kBad };

  // Of lists, maps and scalars with ${; those without were not reached yet.
  struct State {
    Phase phase = Phase::kInProgress;
    std::size_t references = 0;  // how many were being followed when it was begun
  };

  struct Reference {
    std::string path;
    Origin origin;
  };

  bool refuse(const Origin& origin, const std::string& text) {
    problems_.push_back({origin, text});
    return false;
  }

  // Replaces what `node` holds, or the values in it; false when one of them has a problem. `depth` counts the
  // lists and maps around it.
  bool settle(Node& node, std::size_t depth) {
    const bool is_scalar = node.kind == Node::Kind::kScalar;
    if (node.kind == Node::Kind::kNull) return true;
    if (is_scalar && node.scalar.find(kOpen) == std::string::npos) return true;
    const auto [known, is_new] = states_.try_emplace(&node, State{Phase::kInProgress, followed_.size()});
    State& state = known->second;
    if (!is_new) return state.phase == Phase::kGood;
    bool is_good = true;
    if (is_scalar) {
      is_good = replace(node, depth);
      node.unreadable = !is_good;
    } else {
      for (Node& element : node.list) is_good = settle(element, depth + 1) && is_good;
      for (auto& [key, value] : node.map) is_good = settle(value, depth + 1) && is_good;
    }
    state.phase = is_good ? Phase::kGood : Phase::kBad;
    return is_good;
  }

  bool replace(Node& node, std::size_t depth) {
    const std::string_view text = node.scalar;
    if (starts_with(text, kOpen) && text.find('}') == text.size() - 1) return replace_whole(node, depth);
    std::optional<std::string> replaced = replaced_text(text, node.origin);
    if (replaced) node.scalar = std::move(*replaced);
    return replaced.has_value();
  }

  bool replace_whole(Node& node, std::size_t depth) {
    const std::optional<Form> form = form_of(node.scalar, node.origin);
    if (!form) return false;
    Node made;
    const Node* found = value_of(*form, node.origin, made);
    if (found == nullptr || !take_room(*found, depth, node.origin)) return false;
    Node value = *found;
    value.origin = node.origin;
    node = std::move(value);
    return true;
  }

  // All problems of a text are told, not the first alone.
  std::optional<std::string> replaced_text(std::string_view text, const Origin& origin) {
    std::string result;
    bool is_good = true;
    while (!text.empty()) {
      const std::size_t dollar = std::min(text.find('$'), text.size());
      result += text.substr(0, dollar);
      text.remove_prefix(dollar);
      if (starts_with(text, kEscaped)) {
        result += kOpen;
        text.remove_prefix(kEscaped.size());
      } else if (starts_with(text, kOpen)) {
        const std::size_t end = text.find('}');
        if (end == std::string_view::npos) {
          refuse(origin, concat("the } of ", show_text(text), " is missing; $${ is the text ${"));
          return std::nullopt;
        }
        is_good = append(text.substr(0, end + 1), origin, result) && is_good;
        text.remove_prefix(end + 1);
      } else if (!text.empty()) {
        result += text.front();
        text.remove_prefix(1);
      }
    }
    return is_good ? std::optional(std::move(result)) : std::nullopt;
  }

  bool append(std::string_view written, const Origin& origin, std::string& result) {
    const std::optional<Form> form = form_of(written, origin);
    if (!form) return false;
    Node made;
    const Node* value = value_of(*form, origin, made);
    if (value == nullptr) return false;
    const bool is_default = value->kind == Node::Kind::kNull && form->fallback;
    if (value->kind != Node::Kind::kScalar && !is_default) {
      return refuse(origin,
                    concat(show_text(written), " is ", show(*value), "; expected one value within text"));
    }
    if (!take_room(*value, 0, origin)) return false;
    result += is_default ? *form->fallback : value->scalar;
    return true;
  }

  std::optional<Form> form_of(std::string_view written, const Origin& origin) {
    std::string error;
    std::optional<Form> form = read_form(written, error);
    if (!form) refuse(origin, error);
    return form;
  }

  // False, with a problem the first time, when too much was put in.
  bool take_room(const Node& value, std::size_t depth, const Origin& origin) {
    if (is_full_) return false;
    const Extent extent = extent_of(value);
    values_ += extent.values;
    bytes_ += extent.bytes;
    is_full_ = true;
    if (depth + extent.depth > kDeepest + 1) {
      return refuse(origin, concat("with what ${...} puts in, lists and maps are nested more than ", kDeepest,
                                   " deep"));
    }
    if (values_ > kMostValues) {
      return refuse(origin, concat("what ${...} puts in comes to more than ", kMostValues, " values"));
    }
    if (bytes_ > kMostBytes) {
      return refuse(origin,
                    concat("what ${...} puts in comes to more than ", format_bytes(kMostBytes), " of text"));
    }
    is_full_ = false;
    return true;
  }

  // What `form` stands for, in the recipe or in `made`; nullptr, with a problem somewhere, where there is
  // nothing.
  const Node* value_of(const Form& form, const Origin& origin, Node& made) {
    if (!form.variable.empty()) return variable(form, origin, made) ? &made : nullptr;
    if (followed_.size() >= kLongestChain) {
      refuse(origin, concat("more than ", kLongestChain, " references lead from one to the next"));
      return nullptr;
    }
    followed_.push_back({form.path, origin});
    const Node* value = follow(form.path, origin, made);
    followed_.pop_back();
    return value;
  }

  bool variable(const Form& form, const Origin& origin, Node& made) {
    const std::optional<std::string> text = environment_(form.variable);
    if (text) {
      if (const std::optional<BadByte> bad = find_bad_byte(*text)) {
        return refuse(origin, concat("the environment variable ", form.variable, " holds ", bad->text));
      }
    } else if (!form.fallback) {
      return refuse(origin,
                    concat("the environment variable ", form.variable,
                           " is not set; set it, or give a default: ${env:", form.variable, ",default}"));
    } else if (form.fallback == "~" || form.fallback == "null") {
      return true;
    }
    made.kind = Node::Kind::kScalar;
    made.scalar = text ? *text : *form.fallback;
    return true;
  }

  const Node* follow(const std::string& path, const Origin& origin, Node& made) {
    Node* node = &root_;
    std::size_t depth = 0;
    bool is_settled = false;  // and so is all that it holds
    for (std::size_t start = 0; start <= path.size(); ++depth) {
      // A reference in place of a map: what it stands for has the key.
      if (node->kind == Node::Kind::kScalar && !is_settled && !settle_target(*node, depth)) return nullptr;
      const std::size_t end = std::min(path.find('.', start), path.size());
      node = child(*node, path.substr(start, end - start));
      if (node == nullptr) return default_value(path, origin, made);
      const auto state = states_.find(node);
      is_settled = is_settled || (state != states_.end() && state->second.phase == Phase::kGood);
      start = end + 1;
    }
    return is_settled || settle_target(*node, depth) ? node : nullptr;
  }

  bool settle_target(Node& node, std::size_t depth) {
    const auto state = states_.find(&node);
    if (state == states_.end() || state->second.phase != Phase::kInProgress) return settle(node, depth);
    const std::size_t first = state->second.references;
    std::vector<std::string> chain{followed_.back().path};
    for (std::size_t i = first; i < followed_.size(); ++i) chain.push_back(followed_[i].path);
    return refuse(followed_[first].origin,
                  concat("${", followed_[first].path, "} leads back here: ", join(chain, " -> ")));
  }

  const Node* default_value(const std::string& path, const Origin& origin, Node& made) {
    const std::optional<std::string> text = default_of_(path);
    if (!text) {
      refuse(origin, concat("the recipe does not set ", path, what_was_meant(path)));
      return nullptr;
    }
    if (*text == "auto") {
      refuse(origin, path + " is auto, decided later; write a value for it");
      return nullptr;
    }
    const std::optional<std::string> value = replaced_text(*text, origin);
    if (!value) return nullptr;
    made.kind = Node::Kind::kScalar;
    if (!value->empty()) made = read_value(*value, origin, problems_);
    place(made, origin);
    return &made;
  }

  std::string what_was_meant(const std::string& path) {
    const bool is_upper =
        std::none_of(path.begin(), path.end(), [](unsigned char c) { return std::islower(c) != 0; });
    if (is_variable(path) && (is_upper || environment_(path)))
      return concat("; did you mean ${env:", path, "}?");
    if (suggestions_++ >= kMostSuggestions) return ", and it has no default";
    std::string guess = nearest_path(root_, path);
    if (guess.empty()) guess = nearest_path(known_, path);
    return guess.empty() ? ", and it has no default" : concat("; did you mean ${", guess, "}?");
  }

  // Node::find() for each reference would take long in maps of thousands.
  Node* child(Node& map, const std::string& key) {
    if (map.kind != Node::Kind::kMap) return nullptr;
    const auto [index, is_new] = children_.try_emplace(&map);
    if (is_new) {
      for (auto& [name, value] : map.map) index->second.emplace(canonical(name.scalar), &value);
    }
    const auto found = index->second.find(key);
    return found != index->second.end() ? found->second : nullptr;
  }

  Node& root_;
  const DefaultOf& default_of_;
  const EnvironmentLookup& environment_;
  std::vector<Problem>& problems_;
  const std::vector<std::string>& known_;
  // By address: a scalar may become another value, but none moves.
  std::unordered_map<const Node*, State> states_;
  std::unordered_map<const Node*, std::unordered_map<std::string, Node*>> children_;
  std::vector<Reference> followed_;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
  bool is_full_ = false;
  std::size_t suggestions_ = 0;
};

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& variable) -> std::optional<std::string> {
    const char* value = std::getenv(variable.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::string escape_references(std::string text) {
  for (std::size_t at = 0; (at = text.find(kOpen, at)) != std::string::npos; at += kEscaped.size()) {
    text.replace(at, kOpen.size(), kEscaped);
  }
  return text;
}

void substitute(Node& root, const DefaultOf& default_of, const EnvironmentLookup& environment,
                std::vector<Problem>& problems, const std::vector<std::string>& known) {
  Substituter(root, default_of, environment, problems, known).run();
}

std::string with_environment(const std::string& text, const EnvironmentLookup& environment) {
  if (text.find(kOpen) == std::string::npos) return text;
  Node node;
  node.kind = Node::Kind::kScalar;
  node.scalar = text;
  std::vector<Problem> problems;  // told when the recipe as a whole is searched
  substitute(
      node, [](const std::string&) { return std::nullopt; }, environment, problems);
  return problems.empty() ? node.scalar : text;
}

}  // namespace gputrain::recipe
