#include "optim/groups.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace gputrain::optim {

void describe(recipe::Visitor& v, Group& o) {
  v.texts("match", o.match, "names of parameters, one or a list; * is any text, ? any one character");
  v.number("lr_scale", o.lr_scale, {0, 1e3}, "",
           "factor on the learning rate; 0 leaves the parameters as they are; auto: as without the group");
  v.number("weight_decay", o.weight_decay, {0, 10}, "per step",
           "weight decay of these; auto: as without the group");
}

namespace {

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// How far `name` is from what `pattern` asks for: the text before the first wildcard against as much of the
// name's beginning, or, where the pattern begins with one, the text after the last against its end.
std::size_t distance(std::string_view pattern, std::string_view name) {
  const std::size_t first = pattern.find_first_of("*?");
  if (first == std::string_view::npos) return edit_distance(pattern, name);
  if (first > 0) return edit_distance(pattern.substr(0, first), name.substr(0, first));
  const std::string_view tail = pattern.substr(pattern.find_last_of("*?") + 1);
  return edit_distance(tail, name.substr(name.size() - std::min(name.size(), tail.size())));
}

std::string nearest_names(std::string_view pattern, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& name : names) by_distance.emplace_back(distance(pattern, name), name);
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) shown.push_back(by_distance[i].second);
  return join(shown, ", ", " and ");
}

void check(const std::vector<Group>& groups, const std::vector<ParameterShape>& parameters) {
  std::vector<std::string> names;
  for (const ParameterShape& one : parameters) names.push_back(one.name);
  std::vector<std::string> patterns;
  for (const Group& group : groups) {
    if (group.match.empty()) {
      throw SettingError("optimizer.groups",
                         "has an item without match; expected names of parameters, as in layer4.*");
    }
    patterns.insert(patterns.end(), group.match.begin(), group.match.end());
  }
  check_patterns({"optimizer.groups", "has match:", "no parameter that trains"}, patterns, names);
}

// decay^(layers above), for each parameter.
std::vector<double> layer_scales(const std::vector<ParameterShape>& parameters, double decay) {
  std::vector<std::string> layers;  // in the order of their first parameter
  std::vector<std::size_t> own;     // layer of each parameter
  for (const ParameterShape& one : parameters) {
    const std::string layer = layer_of(one.name);
    const auto found = std::find(layers.begin(), layers.end(), layer);
    own.push_back(static_cast<std::size_t>(found - layers.begin()));
    if (found == layers.end()) layers.push_back(layer);
  }
  std::vector<double> scales;
  for (const std::size_t layer : own) {
    scales.push_back(std::pow(decay, static_cast<double>(layers.size() - 1 - layer)));
  }
  return scales;
}

}  // namespace

void check_patterns(const PatternMessage& message, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::vector<std::string> unused;
  std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(unused), [&](const std::string& pattern) {
    return std::none_of(names.begin(), names.end(),
                        [&](const std::string& name) { return matches(pattern, name); });
  });
  if (unused.empty()) return;
  std::vector<std::string> hints;
  for (const std::string& pattern : unused) {
    const std::string whose = unused.size() > 1 ? concat(" to ", pattern) : "";
    hints.push_back(concat("the nearest", whose, " are ", nearest_names(pattern, names)));
  }
  throw SettingError(message.key, concat(message.has, ' ', join(unused, ", ", " and "), ", and ",
                                         message.nothing, " has such a name; ", join(hints, "; ")));
}

void describe_shared(recipe::Visitor& v, SharedOptions& o, double most_lr, const char* decay_meaning) {
  v.number("lr", o.lr, {.min = 0, .max = most_lr, .min_open = true}, "per step", "peak learning rate");
  v.number("weight_decay", o.weight_decay, {0, 10}, "per step", decay_meaning);
  v.one_of("no_decay", o.no_decay, {"auto", "none", "norms_and_biases"},
           "which parameters get no weight decay; norms_and_biases: those of one dimension; auto: these too, "
           "but none with sgd and adam");
  v.maps(
      "groups", o.groups,
      "parameters with a learning rate or weight decay of their own; of several that match, later ones win");
  v.number("layer_lr_decay", o.layer_lr_decay, {.min = 0, .max = 1, .min_open = true}, "",
           "the learning rate falls by this factor with each layer from the last to the first; a layer is a "
           "name up to its first number, or its first part");
  v.one_of("rounding", o.rounding, {"nearest", "stochastic"},
           "how weights of 16 bits change; nearest: through a float32 copy; stochastic: without a copy, "
           "rounded at random");
}

std::vector<ParameterSetting> parameter_settings(const std::vector<ParameterShape>& parameters,
                                                 const SharedOptions& options, bool spared_by_default) {
  check(options.groups, parameters);
  const bool spares =
      options.no_decay == NoDecay::kAuto ? spared_by_default : options.no_decay == NoDecay::kNormsAndBiases;
  const std::vector<double> by_layer = layer_scales(parameters, options.layer_lr_decay);
  std::vector<ParameterSetting> settings;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ParameterSetting setting;
    setting.weight_decay = spares && parameters[i].dimensions <= 1 ? 0 : options.weight_decay;
    for (const Group& group : options.groups) {
      if (!matches_any(group.match, parameters[i].name)) continue;
      setting.lr_scale = group.lr_scale.value_or(setting.lr_scale);
      setting.weight_decay = group.weight_decay.value_or(setting.weight_decay);
    }
    setting.lr_scale *= by_layer[i];
    settings.push_back(setting);
  }
  return settings;
}

bool matches(std::string_view pattern, std::string_view name) {
  // The last * seen takes one more character whenever what follows it fails: linear but for its repeats.
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

std::string layer_of(const std::string& parameter) {
  for (std::size_t begin = 0; begin < parameter.size();) {
    const std::size_t end = std::min(parameter.find('.', begin), parameter.size());
    if (is_number(std::string_view(parameter).substr(begin, end - begin))) return parameter.substr(0, end);
    begin = end + 1;
  }
  return parameter.substr(0, parameter.find('.'));
}

}  // namespace gputrain::optim
