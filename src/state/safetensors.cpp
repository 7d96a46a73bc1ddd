#include "state/safetensors.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace gputrain::state {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the safetensors package
constexpr std::size_t kMaxDimensions = 64;              // ATen's own limit
constexpr std::size_t kMaxDepth = 3;                    // {"name": {"shape": [1]}}
constexpr const char* kMetadataKey = "__metadata__";

struct DtypeName {
  at::ScalarType dtype;
  const char* name;
};
constexpr std::array kDtypes{
    DtypeName{at::ScalarType::Double, "F64"}, DtypeName{at::ScalarType::Float, "F32"},
    DtypeName{at::ScalarType::Half, "F16"},   DtypeName{at::ScalarType::BFloat16, "BF16"},
    DtypeName{at::ScalarType::Long, "I64"},   DtypeName{at::ScalarType::Int, "I32"},
    DtypeName{at::ScalarType::Short, "I16"},  DtypeName{at::ScalarType::Char, "I8"},
    DtypeName{at::ScalarType::Byte, "U8"},    DtypeName{at::ScalarType::Bool, "BOOL"}};

template <class... Parts>
[[noreturn]] void fail(const std::string& source, const Parts&... parts) {
  throw Error(ExitCode::kFileSystem, concat(source, ": ", parts...));
}

// ---- writing

const char* dtype_name(const std::string& source, const std::string& tensor, at::ScalarType dtype) {
  for (const DtypeName& known : kDtypes) {
    if (known.dtype == dtype) return known.name;
  }
  fail(source, tensor, " has the element type ", c10::toString(dtype), ", which safetensors cannot hold");
}

void check_names(const std::string& source, const NamedTensors& tensors) {
  std::set<std::string> names{kMetadataKey};
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) fail(source, "two tensors are called ", name);
    if (!tensor.defined()) fail(source, name, " is an undefined tensor");
  }
}

NamedTensors on_host_in_file_order(const NamedTensors& tensors) {
  NamedTensors ordered;
  for (const auto& [name, tensor] : tensors) ordered.emplace_back(name, tensor.detach().cpu().contiguous());
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    if (a.second.element_size() != b.second.element_size()) {
      return a.second.element_size() > b.second.element_size();
    }
    return a.first < b.first;
  });
  return ordered;
}

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

// The header and, before it, its length, padded so that the data starts at a multiple of 8 bytes.
std::string header_of(const std::string& source, const NamedTensors& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", dtype_name(source, name, tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    fail(source, "a name or a metadata text is not UTF-8");
  }
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return little_endian(text.size()) + text;
}

// ---- reading

// What nlohmann-json would let pass: a key given twice (the last one wins), any depth.
class StructureCheck final : public nlohmann::json_sax<Json> {
 public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem = concat("the header has the key ", name, " twice");
    return false;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem = concat("the header is not JSON, from its byte ", position, " on");
    return false;
  }

 private:
  bool enter() {
    keys_.emplace_back();
    if (keys_.size() <= kMaxDepth) return true;
    problem = concat("the header is nested more than ", kMaxDepth, " levels deep");
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
};

Json parse_json(std::string_view json, const std::string& source) {
  if (json.empty() || json.front() != '{') fail(source, "the header does not start with {");
  StructureCheck check;
  if (!Json::sax_parse(json.begin(), json.end(), &check)) fail(source, check.problem);
  return Json::parse(json.begin(), json.end());
}

Metadata read_metadata(const Json& object, const std::string& source) {
  if (!object.is_object()) fail(source, kMetadataKey, " is not a map of texts");
  Metadata metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) fail(source, kMetadataKey, ".", key, " is not a text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

at::ScalarType read_dtype(const Json& value, const std::string& where) {
  std::vector<std::string> names;
  for (const DtypeName& known : kDtypes) {
    if (value == known.name) return known.dtype;
    names.emplace_back(known.name);
  }
  fail(where, "dtype is ", value.dump(), "; expected ", join(names, ", ", " or "));
}

std::vector<std::uint64_t> read_integers(const Json& value, const std::string& where, const char* key) {
  const bool good = value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) {
                      return item.is_number_unsigned();
                    });
  if (!good) fail(where, key, " is not a list of whole numbers from 0 on");
  return value.get<std::vector<std::uint64_t>>();
}

// Bytes of a tensor of this shape. A dimension of 0 makes it 0, but must not hide that the others
// overflow: ATen multiplies them for its strides.
std::uint64_t bytes_of(const std::vector<std::uint64_t>& shape, std::size_t element_size,
                       const std::string& where) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = element_size;
  bool empty = false;
  for (const std::uint64_t size : shape) {
    empty = empty || size == 0;
    const std::uint64_t factor = std::max<std::uint64_t>(size, 1);
    if (factor > kMost / bytes) fail(where, "shape has too many elements to count");
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

TensorEntry read_entry(const std::string& name, const Json& object, const std::string& source) {
  const std::string where = source + ": " + name;
  const bool complete = object.is_object() && object.size() == 3 && object.contains("dtype") &&
                        object.contains("shape") && object.contains("data_offsets");
  if (!complete) fail(where, "expected a map of dtype, shape and data_offsets");
  TensorEntry entry;
  entry.name = name;
  entry.dtype = read_dtype(object["dtype"], where);
  const auto shape = read_integers(object["shape"], where, "shape");
  if (shape.size() > kMaxDimensions) fail(where, "shape has more than ", kMaxDimensions, " dimensions");
  const std::uint64_t bytes = bytes_of(shape, c10::elementSize(entry.dtype), where);
  entry.shape.assign(shape.begin(), shape.end());

  const auto offsets = read_integers(object["data_offsets"], where, "data_offsets");
  if (offsets.size() != 2) fail(where, "data_offsets has ", offsets.size(), " numbers; expected 2");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
    fail(where, "data_offsets are ", entry.begin, " to ", entry.end, "; dtype and shape take ", bytes,
         " bytes");
  }
  return entry;
}

// Together the tensors are the data, each byte once.
void check_cover(const std::vector<TensorEntry>& entries, std::uint64_t data_bytes,
                 const std::string& source) {
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != covered) {
      fail(source, entry.name, " starts at byte ", entry.begin, " of the data; expected ", covered,
           ", where the tensor before it ends");
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    fail(source, "the tensors take ", covered, " bytes, the file has ", data_bytes,
         " bytes of data; was it cut off?");
  }
}

std::uint64_t regular_file_size(const std::filesystem::path& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) fail(path.string(), "no such file");
  if (!std::filesystem::is_regular_file(status)) fail(path.string(), "not a file");
  const std::uint64_t size = std::filesystem::file_size(path, problem);
  if (problem) fail(path.string(), problem.message());
  return size;
}

void read_exactly(std::ifstream& file, char* target, std::uint64_t bytes, const std::string& source) {
  if (bytes == 0) return;
  file.read(target, static_cast<std::streamsize>(bytes));
  if (!file) fail(source, "cannot be read to its end");
}

std::uint64_t from_little_endian(const std::array<char, kLengthBytes>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

// A zip archive (torch.save) or a bare pickle. Neither is ever opened: a pickle runs code.
bool is_pickle(const std::array<char, kLengthBytes>& start) {
  return std::string_view(start.data(), 4) == "PK\x03\x04" || (start[0] == '\x80' && start[1] <= '\x05');
}

std::string read_header_text(std::ifstream& file, std::uint64_t file_bytes, const std::string& source) {
  if (file_bytes < kLengthBytes) {
    fail(source, "not a safetensors file: ", file_bytes, " bytes; its header's length alone takes ",
         kLengthBytes);
  }
  std::array<char, kLengthBytes> start{};
  read_exactly(file, start.data(), start.size(), source);
  const std::uint64_t length = from_little_endian(start);
  if (length > file_bytes - kLengthBytes || length > kMaxHeaderBytes) {
    if (is_pickle(start)) {
      fail(source, "a pickle (torch.save), which can run code when it is read; expected safetensors");
    }
    fail(source, "not a safetensors file: its header would take ", length, " bytes; at most ",
         std::min(file_bytes - kLengthBytes, kMaxHeaderBytes), " are possible");
  }
  std::string text(length, '\0');
  read_exactly(file, text.data(), length, source);
  return text;
}

at::Tensor read_tensor(std::ifstream& file, const TensorEntry& entry, const std::string& source) {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.dtype));
  char* bytes = static_cast<char*>(tensor.data_ptr());
  read_exactly(file, bytes, entry.end - entry.begin, source);
  const auto is_bad_bool = [](char byte) { return byte != 0 && byte != 1; };
  if (entry.dtype == at::ScalarType::Bool && std::any_of(bytes, bytes + tensor.nbytes(), is_bad_bool)) {
    fail(source, entry.name, " is BOOL and has a byte that is neither 0 nor 1");
  }
  return tensor;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  check_names(path.string(), tensors);
  const NamedTensors ordered = on_host_in_file_order(tensors);
  const std::string header = header_of(path.string(), ordered, metadata);
  std::vector<std::string_view> parts{header};
  for (const auto& [name, tensor] : ordered) {
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  write_atomically(path, parts);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& source) {
  SafetensorsHeader header;
  const Json parsed = parse_json(json, source);
  for (const auto& [name, object] : parsed.items()) {
    if (name == kMetadataKey) {
      header.metadata = read_metadata(object, source);
    } else {
      header.entries.push_back(read_entry(name, object, source));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_cover(header.entries, data_bytes, source);
  return header;
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  const std::string source = path.string();
  const std::uint64_t file_bytes = regular_file_size(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(source, "cannot be opened for reading");
  const std::string text = read_header_text(file, file_bytes, source);
  SafetensorsHeader header = parse_safetensors_header(text, file_bytes - kLengthBytes - text.size(), source);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (const TensorEntry& entry : header.entries) {
    result.tensors.emplace(entry.name, read_tensor(file, entry, source));
  }
  return result;
}

}  // namespace gputrain::state
