#include "recipe/compose.h"

#include "base/file.h"
#include "base/text.h"
#include "recipe/read.h"
#include "recipe/scalars.h"
#include "recipe/words.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

namespace gputrain::recipe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 2 << 20;  // more than read_text() takes: it says so, in its own words
constexpr std::size_t kDeepest = 16;
constexpr std::size_t kMostBases = 100;
constexpr std::size_t kMostValues = 100'000;  // of all bases together, each as often as it is included

// The value of the key `base`, no longer in the map.
std::optional<Node> take_bases(Node& root) {
  const auto found = std::find_if(root.map.begin(), root.map.end(),
                                  [](const Entry& entry) { return canonical(entry.key.scalar) == "base"; });
  if (found == root.map.end()) return std::nullopt;
  std::optional<Node> bases = std::move(found->value);
  root.map.erase(found);
  return bases;
}

// As short as the name can be: without `..` where a link does not give that another meaning.
std::string file_of(const Node& base) {
  const fs::path written = fs::path(base.origin.file).parent_path() / expand_home(base.scalar);
  const fs::path shorter = written.lexically_normal();
  std::error_code ignored;
  return (fs::equivalent(written, shorter, ignored) ? shorter : written).string();
}

// The same for all names of one file.
std::string identity(const std::string& file) {
  std::error_code error;
  const fs::path canonical_path = fs::weakly_canonical(file, error);
  return error ? file : canonical_path.string();
}

class Composer {
 public:
  Composer(const ComponentNames& components, Composed& composed)
      : components_(components), composed_(composed) {}

  void read(const std::string& path) {
    Document document = read_document(path);
    composed_.text = std::move(document.text);
    composed_.root = over_bases(std::move(document), path, identity(path));
    composed_.root.unreadable = is_incomplete_;
  }

 private:
  // A file whose bases are being read.
  struct Open {
    std::string file;
    std::string id;
    const Node* base = nullptr;  // the one that is being read
  };

  // What the base would have set is missing.
  void refuse(const Node& base, const std::string& text) {
    is_incomplete_ = true;
    composed_.problems.push_back({base.origin, text});
  }

  Node over_bases(Document document, const std::string& file, const std::string& id) {
    std::vector<Problem>& problems = composed_.problems;
    problems.insert(problems.end(), document.problems.begin(), document.problems.end());
    Node own = std::move(document.root);
    if (own.kind != Node::Kind::kMap) {
      is_incomplete_ = true;
      return own;
    }
    translate_words(own, problems, composed_.notices);
    const std::optional<Node> bases = take_bases(own);
    if (!bases) return own;
    Node root;
    root.kind = Node::Kind::kMap;
    root.origin = own.origin;
    open_.push_back({file, id});
    include_all(root, *bases);
    open_.pop_back();
    merge(root, std::move(own), components_, composed_.notices);
    return root;
  }

  void include_all(Node& root, const Node& bases) {
    if (bases.kind != Node::Kind::kList) {
      include(root, bases, "base", " or a list of files");
      return;
    }
    for (std::size_t i = 0; i < bases.list.size(); ++i) {
      include(root, bases.list[i], concat("base[", i, ']'), "");
    }
  }

  // Puts one base over `root`. `key` and `alternative` are for messages.
  void include(Node& root, const Node& base, const std::string& key, const char* alternative) {
    if (base.kind != Node::Kind::kScalar || base.scalar.empty()) {
      refuse(base, concat(key, " is ", show(base), "; expected a file", alternative));
      return;
    }
    if (base.scalar.find("${") != std::string::npos) {
      refuse(base,
             concat(key, " is ", show(base), "; expected the name of a file, since ${...} is read later"));
      return;
    }
    if (++included_ > kMostBases) {
      if (included_ == kMostBases + 1) refuse(base, concat("more than ", kMostBases, " bases are included"));
      return;
    }
    const Node* included = read_base(base);
    if (included == nullptr || included->kind != Node::Kind::kMap || values_ > kMostValues) return;
    values_ += extent_of(*included).values;
    if (values_ > kMostValues) {
      refuse(base, concat("with ", base.scalar, " the bases hold more than ", kMostValues, " values"));
      return;
    }
    merge(root, *included, components_, composed_.notices);
  }

  // A base over its own bases, or nullptr. Each file is read once, so that its problems are told once.
  const Node* read_base(const Node& base) {
    const std::string file = file_of(base);
    const std::string id = identity(file);
    open_.back().base = &base;
    if (is_open(id)) return nullptr;
    if (const auto known = read_.find(id); known != read_.end()) return &known->second;
    if (open_.size() > kDeepest) {
      refuse(base, concat("bases are nested more than ", kDeepest, " deep"));
      return nullptr;
    }
    Parsed<std::string> bytes = try_read_file(file, kMostBytes);
    if (!bytes.value) {
      refuse(base, concat("cannot read base ", file, ": ", bytes.error));
      return nullptr;
    }
    Node root = over_bases(read_text(std::move(*bytes.value), file), file, id);
    return &read_.emplace(id, std::move(root)).first->second;
  }

  // Whether the file is one whose bases are being read; that is a problem at the place where it starts.
  bool is_open(const std::string& id) {
    const auto first =
        std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.id == id; });
    if (first == open_.end()) return false;
    std::vector<std::string> chain;
    for (auto open = first; open != open_.end(); ++open) chain.push_back(open->file);
    chain.push_back(first->file);
    refuse(*first->base, concat("base ", first->base->scalar, " leads back here: ", join(chain, " -> ")));
    return true;
  }

  const ComponentNames& components_;
  Composed& composed_;
  std::vector<Open> open_;
  std::map<std::string, Node> read_;  // by identity()
  std::size_t included_ = 0;
  std::size_t values_ = 0;
  bool is_incomplete_ = false;  // a file could not be read
};

}  // namespace

Composed compose(const std::string& path, const ComponentNames& components) {
  Composed composed;
  Composer(components, composed).read(path);
  return composed;
}

Key base_key() {
  Key key;
  key.path = "base";
  key.type = Key::Type::kPaths;
  key.value = "[]";
  key.meaning = "recipes that this one is laid over, relative to this file; later ones win over earlier ones";
  return key;
}

}  // namespace gputrain::recipe
