#include "recipe/read.h"

#include "base/file.h"
#include "base/text.h"
#include "recipe/utf8.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>

namespace gputrain::recipe {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostNodes = 100'000;  // stops documents that grow through aliases
constexpr std::size_t kDeepest = 64;

struct Refused {};  // the rest of the document cannot be read; the reason is among the problems

// Builds a Node out of what yaml-cpp's parser reports. Its own tree (YAML::Node) loses duplicate keys, merge
// keys and the quotes of scalars.
class Builder : public YAML::EventHandler {
 public:
  Builder(const Origin& origin, std::vector<Problem>& problems) : origin_(origin), problems_(problems) {}

  Node take_root() { return std::move(root_); }
  bool saw_document() const { return documents_ > 0; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document starts here; expected one document per file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { finish(node_at(mark), anchor, mark); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    if (value.find('\0') != std::string::npos) refuse(mark, "the text holds a zero byte");
    Node node = node_at(mark);
    node.kind = Node::Kind::kScalar;
    node.scalar = value;
    node.quoted = tag == "!";
    finish(std::move(node), anchor, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override {
    merge(open_.back());
    close();
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto named = anchored_.find(anchor);
    if (named == anchored_.end()) refuse(mark, "the alias stands inside of what it names");
    const Extent extent = extent_of(named->second);
    if (open_.size() + extent.depth > kDeepest) refuse_depth(mark);
    count(extent.values, mark);
    add(named->second);
  }

 private:
  // A list or map whose end was not seen yet.
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::optional<Node> key;           // of a map, when its value comes next
    std::map<std::string, int> lines;  // of a map's keys, by canonical name
  };

  Origin place(const YAML::Mark& mark) const {
    Origin origin = origin_;
    if (!origin.argument.empty()) return origin;
    origin.line = mark.line + 1;
    origin.column = mark.column + 1;
    return origin;
  }

  Node node_at(const YAML::Mark& mark) const {
    Node node;
    node.origin = place(mark);
    return node;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& text) {
    problems_.push_back({place(mark), text});
    throw Refused{};
  }

  [[noreturn]] void refuse_depth(const YAML::Mark& mark) {
    refuse(mark, concat("lists and maps are nested more than ", kDeepest, " deep"));
  }

  // Plain scalars, lists and maps are reported with "?" or "", quoted scalars with "!".
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "tags (!...) are not read; write text in quotes, and other values plainly");
    }
  }

  void count(std::size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes) refuse(mark, concat("the document holds more than ", kMostNodes, " values"));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    check_tag(mark, tag);
    if (open_.size() + 1 > kDeepest) refuse_depth(mark);
    Node node = node_at(mark);
    node.kind = kind;
    open_.push_back({std::move(node), anchor, mark, std::nullopt, {}});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    finish(std::move(closed.node), closed.anchor, closed.mark);
  }

  void finish(Node node, YAML::anchor_t anchor, const YAML::Mark& mark) {
    count(1, mark);
    if (anchor != YAML::NullAnchor) {
      count(extent_of(node).values, mark);
      anchored_[anchor] = node;
    }
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& top = open_.back(); top.node.kind == Node::Kind::kList) {
      top.node.list.push_back(std::move(node));
    } else if (!top.key) {
      top.key = std::move(node);
    } else {
      add_entry(top, std::move(*top.key), std::move(node));
      top.key.reset();
    }
  }

  void add_entry(Open& top, Node key, Node value) {
    if (key.kind != Node::Kind::kScalar) {
      problems_.push_back({key.origin, "a key is not a word; expected key: value"});
      return;
    }
    const bool plain_null = value.kind == Node::Kind::kNull;
    if (const std::string meant = with_missing_space(key.scalar);
        plain_null && !key.quoted && !meant.empty()) {
      problems_.push_back({key.origin, concat(key.scalar, " is one word in YAML; expected ", meant)});
      return;
    }
    const auto [first, added] = top.lines.emplace(canonical(key.scalar), key.origin.line);
    if (!added) {
      const std::string where = first->second > 0 ? concat("; the first is in line ", first->second) : "";
      problems_.push_back({key.origin, concat(key.scalar, " is given twice", where)});
      return;
    }
    // yaml-cpp reports the null of `key:` where the next token stands.
    if (plain_null) value.origin = key.origin;
    top.node.map.push_back({std::move(key), std::move(value)});
  }

  // `<<: *base` gives the map the keys it has not itself; of several bases the first wins.
  void merge(Open& top) {
    std::vector<Entry>& entries = top.node.map;
    const auto is_merge = [](const Entry& entry) { return entry.key.scalar == "<<" && !entry.key.quoted; };
    const auto found = std::find_if(entries.begin(), entries.end(), is_merge);
    if (found == entries.end()) return;
    const Node bases = std::move(found->value);
    entries.erase(found);
    if (bases.kind == Node::Kind::kList) {
      for (const Node& base : bases.list) merge_base(top, base);
    } else {
      merge_base(top, bases);
    }
  }

  void merge_base(Open& top, const Node& base) {
    if (base.kind != Node::Kind::kMap) {
      problems_.push_back({base.origin, "<< takes a map, or a list of maps"});
      return;
    }
    for (const auto& [key, value] : base.map) {
      const bool is_new = top.lines.emplace(canonical(key.scalar), key.origin.line).second;
      if (is_new) top.node.map.push_back({key, value});
    }
  }

  Origin origin_;
  std::vector<Problem>& problems_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchored_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// Counted from 0. What parse() puts behind the text is not part of it.
int last_line(std::string_view text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return static_cast<int>(ends) - (!text.empty() && text.back() == '\n' ? 1 : 0);
}

std::string_view line_of(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// What is likely wrong with a line that YAML does not understand, "" where nothing comes to mind.
std::string explain_line(std::string_view line) {
  const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  if (line.substr(0, indent).find('\t') != std::string_view::npos) {
    return "a tab indents this line; expected spaces";
  }
  std::string_view words = line.substr(indent);
  if (words.substr(0, 2) == "- ") words.remove_prefix(2);
  if (const std::string meant = with_missing_space(words); !meant.empty()) {
    return concat("no space follows the colon; expected ", meant);
  }
  return "";
}

struct Place {
  int line = 0;
  int column = 0;
};

// Finds the quotation mark or bracket that nothing closes: of several the last.
class OpenEnds {
 public:
  explicit OpenEnds(std::string_view text) : text_(text) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' && starts_token()) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if ((c == '"' || c == '\'') && starts_token()) {
        skip_quoted();
      } else {
        if ((c == '[' || c == '{') && starts_token()) open_.push_back(here_);
        if ((c == ']' || c == '}') && !open_.empty()) open_.pop_back();
        step();
      }
    }
  }

  std::optional<Place> last() const {
    return open_.empty() ? std::nullopt : std::optional<Place>(open_.back());
  }

 private:
  // Elsewhere these characters belong to a plain word: it's, a#b, x[1].
  bool starts_token() const {
    return at_ == 0 || std::string_view(" \t\r\n[{,").find(text_[at_ - 1]) != std::string_view::npos;
  }

  void step() {
    const bool ends_line = text_[at_++] == '\n';
    if (ends_line) here_ = {here_.line + 1, 0};
    // Columns count characters: the further bytes of one in UTF-8 are left out.
    const bool goes_on = at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80;
    if (!ends_line && !goes_on) ++here_.column;
  }

  void skip_quoted() {
    const char mark = text_[at_];
    open_.push_back(here_);
    step();
    while (at_ < text_.size()) {
      const bool is_escape = mark == '"' && text_[at_] == '\\';
      const bool is_doubled = mark == '\'' && text_.substr(at_, 2) == "''";
      if (text_[at_] == mark && !is_doubled) {
        open_.pop_back();
        step();
        return;
      }
      step();
      if ((is_escape || is_doubled) && at_ < text_.size()) step();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Place here_;
  std::vector<Place> open_;
};

bool is_open_bracket(const YAML::Exception& error) {
  return error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW || error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW;
}

bool is_open_end(const YAML::Exception& error) {
  return error.msg == YAML::ErrorMsg::DOC_IN_SCALAR || is_open_bracket(error);
}

std::string explain_error(const YAML::Exception& error) {
  namespace msg = YAML::ErrorMsg;
  static const std::map<std::string_view, std::string_view> explained = {
      {msg::DOC_IN_SCALAR, "the closing quotation mark of a text is missing"},
      {msg::END_OF_SEQ_FLOW, "the closing ] of a list is missing"},
      {msg::END_OF_MAP_FLOW, "the closing } of a map is missing"},
      {msg::END_OF_MAP, "this line is not key: value"},
      {msg::MAP_VALUE,
       "this colon is out of place; is the line indented too far, or is text not in quotes?"}};
  const auto found = explained.find(error.msg);
  return found != explained.end() ? std::string(found->second) : "this is not YAML: " + error.msg;
}

// Whether one of the lines, counted from 0, holds a substitution.
bool holds_reference(std::string_view text, int first, int last) {
  for (int line = first; line <= last; ++line) {
    if (line_of(text, line).find("${") != std::string_view::npos) return true;
  }
  return false;
}

Problem syntax_problem(const YAML::Exception& error, std::string_view text, const Origin& origin) {
  Problem problem{origin, explain_error(error)};
  const auto open = is_open_end(error) ? OpenEnds(text).last() : std::nullopt;
  const int last = last_line(text);
  if (is_open_bracket(error) &&
      holds_reference(text, open ? open->line : 0, std::min(error.mark.line, last))) {
    problem.text += "; put ${...} in quotes inside { } and [ ]";
  }
  if (!origin.argument.empty() || error.mark.is_null()) return problem;
  if (open) {
    problem.origin.line = open->line + 1;
    problem.origin.column = open->column + 1;
    return problem;
  }
  problem.origin.line = std::min(error.mark.line, last) + 1;
  problem.origin.column = error.mark.line > last ? 1 : error.mark.column + 1;
  // The parser may notice a word without its colon only in the next line.
  for (const int line : {error.mark.line, error.mark.line - 1}) {
    if (line < 0) continue;
    const std::string_view written = line_of(text, line);
    const std::string explained = explain_line(written);
    if (explained.empty()) continue;
    problem.origin.line = line + 1;
    problem.origin.column = static_cast<int>(written.find_first_not_of(" \t")) + 1;
    problem.text = explained;
    break;
  }
  return problem;
}

std::optional<Node> parse(std::string_view text, const Origin& origin, std::vector<Problem>& problems) {
  // yaml-cpp closes quotes that are open at the end of the text; at the end of a document it does not.
  std::istringstream stream(concat(text, "\n...\n"));
  Builder builder(origin, problems);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const int last = last_line(text) + 1;
    const auto is_behind = [&](const Problem& problem) { return problem.origin.line > last; };
    problems.erase(std::remove_if(problems.begin(), problems.end(), is_behind), problems.end());
    problems.push_back(syntax_problem(error, text, origin));
    return std::nullopt;
  }
  return builder.saw_document() ? builder.take_root() : Node{};
}

std::string explain_root(const Node& root) {
  if (root.kind == Node::Kind::kNull) return "the recipe is empty; expected keys, as in max_steps: 100";
  const std::string meant = with_missing_space(root.scalar);
  if (!meant.empty()) return concat("no space follows the colon; expected ", meant);
  return "the recipe is not a map; expected lines of key: value";
}

}  // namespace

std::string with_missing_space(std::string_view scalar) {
  const std::size_t colon = scalar.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == scalar.size()) return "";
  const auto belongs_to_key = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  const std::string_view key = scalar.substr(0, colon);
  const std::string_view value =
      scalar.substr(colon + 1, scalar.find_first_of(" \t\r\n,}", colon) - colon - 1);
  if (value.empty() || value.front() == '/' || !std::all_of(key.begin(), key.end(), belongs_to_key))
    return "";
  return concat(key, ": ", value);
}

Document read_document(const std::string& path) {
  // One byte more than allowed tells a file that is too large.
  Parsed<std::string> read = try_read_file(path, kMostBytes + 1);
  if (read.value) return read_text(std::move(*read.value), path);
  Document document;
  document.root.origin.file = path;
  document.problems.push_back({document.root.origin, "cannot read the recipe: " + read.error});
  return document;
}

Document read_text(std::string text, const std::string& file) {
  Document document;
  document.root.origin.file = file;
  document.text = std::move(text);
  Origin origin = document.root.origin;
  if (document.text.size() > kMostBytes) {
    document.problems.push_back({origin, concat("the recipe is larger than ", format_bytes(kMostBytes))});
    return document;
  }
  std::string_view content = document.text;
  if (content.substr(0, 3) == "\xEF\xBB\xBF") content.remove_prefix(3);
  if (const std::optional<BadByte> bad = find_bad_byte(content)) {
    origin.line = bad->line;
    origin.column = bad->column;
    document.problems.push_back({origin, bad->text});
    return document;
  }
  std::optional<Node> root = parse(content, origin, document.problems);
  if (!root) return document;
  if (root->kind != Node::Kind::kMap) {
    document.problems.push_back(
        {root->kind == Node::Kind::kNull ? origin : root->origin, explain_root(*root)});
    return document;
  }
  document.root = std::move(*root);
  document.root.origin = origin;  // the recipe as a whole, not its first key
  return document;
}

Node read_value(std::string_view text, const Origin& origin, std::vector<Problem>& problems) {
  Node node;
  node.origin = origin;
  if (const std::optional<BadByte> bad = find_bad_byte(text)) {
    problems.push_back({origin, bad->text});
    node.unreadable = true;
    return node;
  }
  if (text.empty() || text == "~" || text == "null") return node;
  if (std::string_view("[{\"'").find(text.front()) == std::string_view::npos) {
    node.kind = Node::Kind::kScalar;
    node.scalar = text;
    return node;
  }
  node.unreadable = true;
  return parse(text, origin, problems).value_or(node);
}

}  // namespace gputrain::recipe
