#pragma once

#include "base/text.h"
#include "recipe/bind.h"
#include "recipe/catalogue.h"
#include "recipe/scalars.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gputrain::recipe {

// A kind of model, data set, optimizer ...: chosen by name in the recipe, with keys of its own.
// Product is what it builds, Context what the build needs besides the options.
template <class Product, class... Context>
struct Component {
  // A component whose settings were read; with problems in them it has no `build`.
  struct Bound {
    std::string name;
    Describe describe;  // over the values as read
    std::function<Product(Context...)> build;
  };

  std::string name;
  std::string meaning;
  Describe describe;  // over the defaults
  // `elsewhere`: as in Hints.
  std::function<Bound(const Node& settings, const std::string& prefix, const std::vector<KnownKey>& elsewhere,
                      std::vector<Problem>& problems)>
      bind;
};

// A component with the keys of Options, for which there is describe(Visitor&, Options&).
template <class Options, class Product, class... Context>
Component<Product, Context...> component(const std::string& name, const std::string& meaning,
                                         Product (*build)(const Options&, Context...)) {
  Component<Product, Context...> made;
  made.name = name;
  made.meaning = meaning;
  made.describe = [](Visitor& visitor) {
    Options defaults;
    describe(visitor, defaults);
  };
  made.bind = [name, build](const Node& settings, const std::string& prefix,
                            const std::vector<KnownKey>& elsewhere, std::vector<Problem>& problems) {
    const std::size_t problems_before = problems.size();
    auto options = std::make_shared<Options>();
    const auto describe_options = [options](Visitor& visitor) { describe(visitor, *options); };
    for (Problem& problem : bind(settings, prefix, describe_options, {"name"}, {name, elsewhere})) {
      problems.push_back(std::move(problem));
    }
    typename Component<Product, Context...>::Bound bound{name, describe_options, {}};
    if (problems.size() == problems_before) {
      bound.build = [options, build](Context... context) { return build(*options, context...); };
    }
    return bound;
  };
  return made;
}

// The component that `choice` names, its settings read; a default-made Bound and one more problem when there
// is none of that name, without one when the name could not be read. `kind` is the recipe's key: "model".
// `elsewhere`: as in Hints.
template <class Product, class... Context>
typename Component<Product, Context...>::Bound choose(const std::vector<Component<Product, Context...>>& all,
                                                      const Choice& choice, const std::string& kind,
                                                      const std::vector<KnownKey>& elsewhere,
                                                      std::vector<Problem>& problems) {
  const Node* written = choice.settings.find("name");
  if (choice.settings.unreadable || (written && written->unreadable)) return {};
  std::vector<std::string> names;
  for (const auto& candidate : all) {
    if (candidate.name == choice.name) return candidate.bind(choice.settings, kind, elsewhere, problems);
    if (!is_for_tests(candidate.name)) names.push_back(candidate.name);
  }
  const std::string expected = concat("; expected ", join(names, ", ", " or "));
  if (choice.name.empty() && written) {
    problems.push_back({written->origin, concat(kind, ".name is ", show(*written), expected)});
    return {};
  }
  if (choice.name.empty()) {
    problems.push_back({choice.settings.origin, kind + ".name is missing" + expected});
    return {};
  }
  std::string text = kind + ".name is " + choice.name + expected;
  if (const std::string guess = nearest(choice.name, names); !guess.empty())
    text += "; did you mean " + guess + "?";
  problems.push_back({written ? written->origin : choice.settings.origin, text});
  return {};
}

// What a catalogue says of one component: its kinds with their keys.
template <class Product, class... Context>
std::vector<Kind> kinds(const std::vector<Component<Product, Context...>>& all,
                        const std::string& component) {
  std::vector<Kind> kinds;
  for (const auto& candidate : all) {
    kinds.push_back({candidate.name, candidate.meaning, keys(candidate.describe, component)});
  }
  return kinds;
}

}  // namespace gputrain::recipe
