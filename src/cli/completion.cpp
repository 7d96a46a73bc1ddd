#include "cli/completion.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <map>

namespace gputrain::cli {
namespace {

using recipe::Key;

// What both shells understand. Lists are looked up by name: "commands", "options of run",
// "after run --output-dir", "place 1 of run", "rest of run", "maps", "keys", "values of precision", NAME,
// SHELL.
constexpr const char* kSearch = R"sh(
# Each line of standard input between $1 and $2.
_gputrain_wrap() {
  local _gputrain_line
  while IFS= read -r _gputrain_line; do printf '%s\n' "$1$_gputrain_line$2"; done
}

# What may stand for the placeholder $1 when $3 is typed, with $2 in front.
_gputrain_fill() {
  case $1 in
    FILE | FOLDER) printf '%s\n' "$1" ;;
    KEY) { _gputrain_list maps; _gputrain_list keys; } | _gputrain_wrap "$2" '' ;;
    KEY=VALUE)
      case $3 in
        '~'*) _gputrain_fill KEY "$2~" ;;
        *=*) _gputrain_list "values of ${3%%=*}" | _gputrain_wrap "$2${3%%=*}=" '' ;;
        *) _gputrain_list keys | _gputrain_wrap "$2" '=' ;;
      esac
      ;;
    ?*) _gputrain_list "$1" | _gputrain_wrap "$2" '' ;;
  esac
}

# What may stand at the last of the words given: FILE or FOLDER, or candidates, one a line.
_gputrain_candidates() {
  local chosen='' place=1 expected='' word=''
  shift
  while [ $# -gt 1 ]; do
    word=$1
    shift
    if [ -n "$expected" ]; then
      expected=''
      continue
    fi
    case $word in
      -*=*) ;;
      -*) expected=$(_gputrain_list "after $chosen $word") ;;
      *) if [ -z "$chosen" ]; then chosen=$word; else place=$((place + 1)); fi ;;
    esac
  done
  word=$1
  if [ -n "$expected" ]; then
    _gputrain_fill "$expected" '' "$word"
    return
  fi
  case $word in
    --*=*) _gputrain_fill "$(_gputrain_list "after $chosen ${word%%=*}")" "${word%%=*}=" "${word#*=}" ;;
    -*) _gputrain_list "options of $chosen" ;;
    *)
      if [ -z "$chosen" ]; then
        _gputrain_list commands
      else
        expected=$(_gputrain_list "place $place of $chosen")
        _gputrain_fill "${expected:-$(_gputrain_list "rest of $chosen")}" '' "$word"
      fi
      ;;
  esac
}
)sh";

// Bash cuts words at `=` and `:`, and replaces what follows the last cut alone.
constexpr const char* kBash = R"sh(
_gputrain() {
  local words=() typed glue='' cut='' found line i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    typed=${COMP_WORDS[i]}
    if [[ $i -gt 1 && ( $typed =~ ^[=:]+$ || ( -n $glue && -n $typed ) ) ]]; then
      words[${#words[@]} - 1]+=$typed
    else
      words+=("$typed")
    fi
    if [[ $typed =~ ^[=:]+$ ]]; then glue=yes; else glue=''; fi
  done
  typed=${words[${#words[@]} - 1]}
  if [[ $COMP_WORDBREAKS == *=* && $typed == *=* ]]; then cut=${typed%"${typed##*=}"}; fi
  if [[ $COMP_WORDBREAKS == *:* && ${typed#"$cut"} == *:* ]]; then cut=${typed%"${typed##*:}"}; fi
  COMPREPLY=()
  found=$(_gputrain_candidates "${words[@]}")
  case $found in
    FILE | FOLDER)
      local option=''
      if [[ $typed == --*=* ]]; then option=${typed%%=*}=; fi
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do
        if [[ -d ${line/#\~\//$HOME/} || ( $found == FILE && $line == *.y?(a)ml ) ]]; then
          line=$option$line
          COMPREPLY+=("${line#"$cut"}")
        fi
      done < <(compgen -f -- "${typed#"$option"}")
      ;;
    *)
      while IFS= read -r line; do
        if [[ -n $line && $line == "$typed"* ]]; then COMPREPLY+=("${line#"$cut"}"); fi
      done <<<"$found"
      if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
      ;;
  esac
}
complete -F _gputrain gputrain
)sh";

// Found by its name in a folder of $fpath, it is the function's body; read by `source`, it defines it. A bare
// `~key` is zsh's own to complete (as a home folder) and to refuse; `\~key` and `--unset key` come here.
constexpr const char* kZsh = R"sh(
_gputrain() {
  local -a found
  found=("${(@f)$(_gputrain_candidates "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}")}")
  case $found[1] in
    FILE)
      compset -P '--*='
      _files -g '*.(yaml|yml)'
      ;;
    FOLDER)
      compset -P '--*='
      _files -/
      ;;
    *)
      compadd -S '' -- ${(M)found:#*=}
      compadd -- ${found:#*=}
      ;;
  esac
}
if (( $funcstack[(I)_gputrain] )); then _gputrain "$@"; else compdef _gputrain gputrain; fi
)sh";

std::string quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string{c};
  return safe + "'";
}

// The function that prints a list by its name.
class Lists {
 public:
  void add(const std::string& name, const std::vector<std::string>& words) {
    if (words.empty()) return;
    cases_ += concat("    ", quoted(name), ") printf '%s\\n'");
    for (const std::string& word : words) cases_ += " " + quoted(word);
    cases_ += " ;;\n";
  }

  std::string function() const { return "_gputrain_list() {\n  case $1 in\n" + cases_ + "  esac\n}\n"; }

 private:
  std::string cases_;
};

void add_new(std::vector<std::string>& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

std::vector<std::string> values_of(const Key& key) {
  std::vector<std::string> values = key.words;
  if (key.type == Key::Type::kBoolean) values = {"true", "false"};
  if (key.type == Key::Type::kDevice) values = {"cpu", "cuda"};
  if (key.takes_auto) values.emplace_back("auto");
  return values;
}

// Keys of all kinds, each once, and what may be written for them where that can be listed.
struct RecipeWords {
  std::vector<std::string> maps;
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> values;

  explicit RecipeWords(const recipe::Catalogue& catalogue) {
    for (const Key& key : catalogue.keys) {
      if (key.path == "base") continue;  // only files name their base
      add(key);
      if (key.type != Key::Type::kComponent) continue;
      add(catalogue.name_key(key.path));
      for (const recipe::Kind* kind : catalogue.shown_kinds(key.path)) {
        for (const Key& own : kind->keys) add(own);
      }
    }
  }

 private:
  void add(const Key& key) {
    const bool is_map = key.type == Key::Type::kSection || key.type == Key::Type::kComponent;
    add_new(is_map ? maps : keys, key.path);
    for (const std::string& value : values_of(key)) add_new(values[key.path], value);
  }
};

void add_command(Lists& lists, const CommandSummary& command) {
  std::vector<std::string> names;
  for (const CommandSummary::Option& option : command.options) names.push_back(option.name);
  lists.add("options of " + command.name, names);
  for (const CommandSummary::Option& option : command.options) {
    if (!option.placeholder.empty())
      lists.add(concat("after ", command.name, ' ', option.name), {option.placeholder});
  }
  for (std::size_t i = 0; i < command.places.size(); ++i) {
    lists.add(concat("place ", i + 1, " of ", command.name), {command.places[i]});
  }
  if (!command.rest.empty()) lists.add("rest of " + command.name, {command.rest});
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandSummary>& commands,
                              const recipe::Catalogue& catalogue, const std::vector<std::string>& recipes) {
  if (shell != "bash" && shell != "zsh") {
    throw Error(ExitCode::kUsage, concat("there is no completion for ", shell, "; expected bash or zsh"));
  }
  Lists lists;
  std::vector<std::string> names;
  for (const CommandSummary& command : commands) {
    add_command(lists, command);
    if (!command.name.empty()) names.push_back(command.name);
  }
  lists.add("commands", names);
  lists.add("NAME", recipes);
  lists.add("SHELL", {"bash", "zsh"});
  const RecipeWords words(catalogue);
  lists.add("maps", words.maps);
  lists.add("keys", words.keys);
  for (const auto& [key, values] : words.values) lists.add("values of " + key, values);
  const bool is_bash = shell == "bash";
  return concat(is_bash ? "" : "#compdef gputrain\n", "# Made by `gputrain completion ", shell, "`.\n\n",
                lists.function(), kSearch, is_bash ? kBash : kZsh);
}

}  // namespace gputrain::cli
