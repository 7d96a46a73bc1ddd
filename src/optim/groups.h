#pragma once

#include "recipe/visitor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain::optim {

// Parameters that are trained otherwise than the rest.
struct Group {
  std::vector<std::string> match;      // patterns of names
  std::optional<double> lr_scale;      // absent: as without the group
  std::optional<double> weight_decay;  // absent: as without the group
};

void describe(recipe::Visitor& v, Group& o);

// Which parameters get no weight decay.
enum class NoDecay { kAuto, kNone, kNormsAndBiases };

// How weights of 16 bits are updated: through a float32 copy, or by rounding at random.
enum class Rounding { kNearest, kStochastic };

// What every optimizer has a key for. Its own defaults of the first two stand in its file.
struct SharedOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  NoDecay no_decay = NoDecay::kAuto;
  std::vector<Group> groups = {};
  double layer_lr_decay = 1;
  Rounding rounding = Rounding::kNearest;
};

// `decay_meaning`: what the optimizer does with weight_decay.
void describe_shared(recipe::Visitor& v, SharedOptions& o, double most_lr, const char* decay_meaning);

struct ParameterShape {
  std::string name;  // "layer4.0.conv1.weight"
  std::int64_t dimensions = 0;
};

struct ParameterSetting {
  double lr_scale = 1;
  double weight_decay = 0;
};

// What applies to each of `parameters`.
// `spared_by_default`: no_decay: auto means norms_and_biases, that is, parameters of at most one dimension.
// The weight decay of a group is taken as it is; its lr_scale is multiplied by that of layer_lr_decay. Of
// several groups that match a parameter the later ones win, key by key.
// Throws SettingError when a group has no pattern, or one that matches no parameter.
std::vector<ParameterSetting> parameter_settings(const std::vector<ParameterShape>& parameters,
                                                 const SharedOptions& options, bool spared_by_default);

// Whether `pattern` is the whole of `name`: * stands for any text, ? for any one character.
bool matches(std::string_view pattern, std::string_view name);
bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

// How patterns that match nothing are told of: "<key> <has> PATTERNS, and <nothing> has such a name".
struct PatternMessage {
  const char* key;
  const char* has;
  const char* nothing;
};

// Throws SettingError for all patterns that match none of `names`, with the names nearest to each. Without
// any name, as where there is no model, there is nothing to tell.
void check_patterns(const PatternMessage& message, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names);

// The layer that a parameter belongs to: its name up to the first part that is a number ("blocks.3",
// "layer1.0"), else its first part ("conv1").
std::string layer_of(const std::string& parameter);

}  // namespace gputrain::optim
