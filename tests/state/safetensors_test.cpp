#include "state/safetensors.h"

#include "base/error.h"
#include "support/catch.h"
#include "support/python.h"
#include "support/temporary_folder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>

#include <fstream>
#include <limits>

using namespace gputrain;
using namespace gputrain::testing;
using state::load_safetensors;
using state::NamedTensors;
using state::Safetensors;
using state::save_safetensors;

namespace {

at::Tensor counting(at::IntArrayRef shape, at::ScalarType dtype = at::ScalarType::Float) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return at::arange(count, at::TensorOptions().dtype(at::ScalarType::Float)).reshape(shape).to(dtype);
}

std::string length_field(std::uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

std::string file_of(const std::string& header, const std::string& data) {
  return length_field(header.size()) + header + data;
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// What loading says, without the path in front.
std::string problem_of(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder / "weights.safetensors";
  write(path, bytes);
  try {
    load_safetensors(path);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kFileSystem);
    const std::string text = error.what();
    REQUIRE(text.substr(0, path.string().size() + 2) == path.string() + ": ");
    return text.substr(path.string().size() + 2);
  }
  return "none";
}

std::string header_problem(const std::string& header, std::size_t data_bytes) {
  return problem_of(file_of(header, std::string(data_bytes, '\0')));
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":)" + tensor(dtype, shape, offsets) + "}";
}

NamedTensors one_of_each_type() {
  NamedTensors tensors;
  for (const auto& [name, dtype] :
       {std::pair("f64", at::kDouble), std::pair("f32", at::kFloat), std::pair("f16", at::kHalf),
        std::pair("bf16", at::kBFloat16), std::pair("i64", at::kLong), std::pair("i32", at::kInt),
        std::pair("i16", at::kShort), std::pair("i8", at::kChar), std::pair("u8", at::kByte),
        std::pair("bool", at::kBool)}) {
    tensors.emplace_back(name, counting({3}, dtype));
  }
  return tensors;
}

}  // namespace

TEST_CASE("safetensors: every element type comes back as it was", "[state]") {
  const TemporaryFolder folder;
  const state::Metadata metadata{{"format", "pt"}, {"note", "a \"b\""}};
  save_safetensors(folder / "w.safetensors", one_of_each_type(), metadata);
  const Safetensors read = load_safetensors(folder / "w.safetensors");
  CHECK(read.metadata == metadata);
  CHECK(read.tensors.size() == 10);
  for (const auto& [name, expected] : one_of_each_type()) {
    INFO(name);
    const at::Tensor& found = read.tensors.at(name);
    CHECK(found.scalar_type() == expected.scalar_type());
    CHECK(at::equal(found, expected));
  }
}

TEST_CASE("safetensors: strides do not matter, values are written in logical order", "[state]") {
  const TemporaryFolder folder;
  const at::Tensor plain = counting({2, 3, 5, 7});
  save_safetensors(folder / "a", {{"channels_last", plain.contiguous(at::MemoryFormat::ChannelsLast)},
                                  {"slice", plain.slice(3, 1, 7, 2)},
                                  {"transposed", counting({2, 3}).t()},
                                  {"expanded", counting({3}).expand({2, 3})}});
  const auto read = load_safetensors(folder / "a").tensors;
  CHECK(at::equal(read.at("channels_last"), plain));
  CHECK(read.at("channels_last").is_contiguous());
  CHECK(at::equal(read.at("slice"), plain.slice(3, 1, 7, 2)));
  CHECK(at::equal(read.at("transposed"), counting({2, 3}).t()));
  CHECK(at::equal(read.at("expanded"), counting({3}).expand({2, 3})));
}

TEST_CASE("safetensors: scalars, empty tensors and no tensors at all", "[state]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a", {{"scalar", at::scalar_tensor(7.5)}, {"empty", counting({0, 4})}});
  const auto read = load_safetensors(folder / "a").tensors;
  CHECK(read.at("scalar").dim() == 0);
  CHECK(read.at("scalar").item().toDouble() == 7.5);
  CHECK(read.at("empty").sizes() == at::IntArrayRef({0, 4}));
  save_safetensors(folder / "b", {});
  CHECK(load_safetensors(folder / "b").tensors.empty());
}

TEST_CASE("safetensors: the bytes are those of the format, wide types first, data aligned", "[state]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a",
                   {{"z", counting({2}, at::kByte)}, {"b", counting({1})}, {"a", counting({1})}});
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                             R"("z":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(text_of(folder / "a") == file_of(padded, std::string(9, '\0') + '\1'));
  CHECK(padded.size() % 8 == 0);
}

TEST_CASE("safetensors: a parameter that needs a gradient is saved as its values", "[state]") {
  const TemporaryFolder folder;
  const at::Tensor parameter = counting({3}).set_requires_grad(true);
  save_safetensors(folder / "a", {{"w", parameter}});
  CHECK_FALSE(load_safetensors(folder / "a").tensors.at("w").requires_grad());
}

TEST_CASE("safetensors: what the format cannot hold is refused, and nothing is written", "[state]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const NamedTensors& tensors) -> std::string {
    try {
      save_safetensors(folder / "a", tensors);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string path = (folder / "a").string();
  CHECK(refusal({{"w", counting({1})}, {"w", counting({1})}}) == path + ": two tensors are called w");
  CHECK(refusal({{"__metadata__", counting({1})}}) == path + ": two tensors are called __metadata__");
  CHECK(refusal({{"w", at::Tensor()}}) == path + ": w is an undefined tensor");
  CHECK(refusal({{"w", counting({1}, at::kComplexFloat)}}) ==
        path + ": w has the element type ComplexFloat, which safetensors cannot hold");
  CHECK(refusal({{"\xff", counting({1})}}) == path + ": a name or a metadata text is not UTF-8");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("safetensors: a folder that is not there is named", "[state]") {
  CHECK_THROWS_WITH(save_safetensors("/nonexistent/a", {}),
                    ContainsSubstring("cannot write /nonexistent/a: No such file or directory"));
  CHECK_THROWS_WITH(load_safetensors("/nonexistent/a"), "/nonexistent/a: no such file");
  CHECK_THROWS_WITH(load_safetensors("/tmp"), "/tmp: not a file");
}

TEST_CASE("safetensors: unordered headers and empty tensors in between are valid", "[state]") {
  const TemporaryFolder folder;
  write(folder / "a",
        file_of(R"({"b":)" + tensor("U8", "[1]", "[2,3]") + R"(,"empty":)" + tensor("F32", "[0]", "[2,2]") +
                    R"(,"a":)" + tensor("U8", "[2]", "[0,2]") + "}  ",
                "\1\2\3"));
  const auto read = load_safetensors(folder / "a").tensors;
  CHECK(at::equal(read.at("a"), counting({4}, at::kByte).slice(0, 1, 3)));
  CHECK(at::equal(read.at("b"), counting({4}, at::kByte).slice(0, 3)));
  CHECK(read.at("empty").numel() == 0);
}

TEST_CASE("safetensors: lengths that cannot be are refused before memory is taken", "[state]") {
  const std::string good = one_tensor("U8", "[1]", "[0,1]");
  const std::string none = "not a safetensors file: its header would take ";
  CHECK(problem_of("") == "not a safetensors file: 0 bytes; its header's length alone takes 8");
  CHECK(problem_of("1234567") == "not a safetensors file: 7 bytes; its header's length alone takes 8");
  CHECK(problem_of(length_field(std::uint64_t{1} << 63) + "{}") ==
        none + "9223372036854775808 bytes; at most 2 are possible");
  CHECK(problem_of(length_field(std::numeric_limits<std::uint64_t>::max()) + "{}") ==
        none + "18446744073709551615 bytes; at most 2 are possible");
  CHECK(problem_of(length_field(3) + "{}") == none + "3 bytes; at most 2 are possible");
  CHECK(problem_of(length_field(0)) == "the header does not start with {");
  CHECK(problem_of(file_of(good, "")) ==
        "the tensors take 1 bytes, the file has 0 bytes of data; was it cut off?");
}

TEST_CASE("safetensors: a length above the cap is refused though the file is as large", "[state]") {
  const TemporaryFolder folder;
  const auto path = folder / "sparse";
  write(path, length_field(100'000'001) + "{");
  std::filesystem::resize_file(path, 200'000'000);
  CHECK_THROWS_WITH(
      load_safetensors(path),
      ContainsSubstring("its header would take 100000001 bytes; at most 100000000 are possible"));
}

TEST_CASE("safetensors: headers that are not maps of tensors are refused", "[state]") {
  CHECK(header_problem("[]", 0) == "the header does not start with {");
  CHECK(header_problem(" {}", 0) == "the header does not start with {");
  CHECK(header_problem("{", 0) == "the header is not JSON, from its byte 2 on");
  CHECK(header_problem("{} x", 0) == "the header is not JSON, from its byte 4 on");
  CHECK(header_problem("{\"\xff\":1}", 0) == "the header is not JSON, from its byte 3 on");
  CHECK(header_problem(R"({"w":1})", 0) == "w: expected a map of dtype, shape and data_offsets");
  CHECK(header_problem(R"({"w":{"dtype":"U8","shape":[0]}})", 0) ==
        "w: expected a map of dtype, shape and data_offsets");
  CHECK(header_problem(R"({"__metadata__":{"a":1}})", 0) == "__metadata__.a is not a text");
  CHECK(header_problem(R"({"__metadata__":[]})", 0) == "__metadata__ is not a map of texts");
  CHECK(header_problem(
            "{\"w\":" + tensor("U8", "[1]", "[0,1]") + ",\"w\":" + tensor("U8", "[1]", "[0,1]") + "}", 1) ==
        "the header has the key w twice");
  CHECK(header_problem("{\"w\":" + std::string(10000, '['), 0) ==
        "the header is nested more than 3 levels deep");
  std::string deep = "{\"w\":";
  for (int i = 0; i < 10000; ++i) deep += "{\"a\":";
  CHECK(header_problem(deep, 0) == "the header is nested more than 3 levels deep");
}

TEST_CASE("safetensors: types, shapes and offsets that do not agree are refused", "[state]") {
  const std::string types = "expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL";
  CHECK(header_problem(one_tensor("F99", "[1]", "[0,4]"), 4) == "w: dtype is \"F99\"; " + types);
  CHECK(header_problem(one_tensor("I16", "[2]", "[0,8]"), 8) ==
        "w: data_offsets are 0 to 8; dtype and shape take 4 bytes");
  CHECK(header_problem(one_tensor("F32", "[2]", "[8,0]"), 8) ==
        "w: data_offsets are 8 to 0; dtype and shape take 8 bytes");
  CHECK(header_problem(one_tensor("F32", "[2]", "[0,8]"), 7) ==
        "the tensors take 8 bytes, the file has 7 bytes of data; was it cut off?");
  CHECK(header_problem(one_tensor("F32", "[1]", "[0,4]"), 5) ==
        "the tensors take 4 bytes, the file has 5 bytes of data; was it cut off?");
  CHECK(header_problem(one_tensor("F32", "[1]", "[4,8]"), 8) ==
        "w starts at byte 4 of the data; expected 0, where the tensor before it ends");
  CHECK(header_problem(one_tensor("U8", "[1]", "[0,1,2]"), 1) == "w: data_offsets has 3 numbers; expected 2");
  CHECK(header_problem(one_tensor("U8", "[1]", "[-1,0]"), 1) ==
        "w: data_offsets is not a list of whole numbers from 0 on");
  CHECK(header_problem(one_tensor("U8", "[1.0]", "[0,1]"), 1) ==
        "w: shape is not a list of whole numbers from 0 on");
  CHECK(header_problem(one_tensor("U8", "[18446744073709551616]", "[0,1]"), 1) ==
        "w: shape is not a list of whole numbers from 0 on");
  CHECK(header_problem(one_tensor("U8", "[4294967296,4294967296]", "[0,0]"), 0) ==
        "w: shape has too many elements to count");
  CHECK(header_problem(one_tensor("F32", "[0,4294967296,4294967296]", "[0,0]"), 0) ==
        "w: shape has too many elements to count");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK(header_problem(one_tensor("U8", "[" + ones + "]", "[0,1]"), 1) ==
        "w: shape has more than 64 dimensions");
}

TEST_CASE("safetensors: tensors that overlap or leave holes are refused", "[state]") {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":)" + tensor("U8", "[2]", first) + R"(,"b":)" + tensor("U8", "[2]", second) + "}";
  };
  CHECK(header_problem(two("[0,2]", "[1,3]"), 3) ==
        "b starts at byte 1 of the data; expected 2, where the tensor before it ends");
  CHECK(header_problem(two("[0,2]", "[0,2]"), 2) ==
        "b starts at byte 0 of the data; expected 2, where the tensor before it ends");
  CHECK(header_problem(two("[0,2]", "[3,5]"), 5) ==
        "b starts at byte 3 of the data; expected 2, where the tensor before it ends");
}

TEST_CASE("safetensors: a BOOL that is neither 0 nor 1 is refused", "[state]") {
  CHECK(problem_of(file_of(one_tensor("BOOL", "[2]", "[0,2]"), "\1\2")) ==
        "w is BOOL and has a byte that is neither 0 nor 1");
}

TEST_CASE("safetensors: pickles are recognised and never read", "[state]") {
  const std::string expected =
      "a pickle (torch.save), which can run code when it is read; expected safetensors";
  CHECK(problem_of("PK\x03\x04" + std::string(100, 'x')) == expected);
  CHECK(problem_of("\x80\x02}q\x01." + std::string(100, 'x')) == expected);
}

TEST_CASE("safetensors: the safetensors package reads what we write", "[state][python]") {
  if (test_python() == nullptr)
    GPUTRAIN_SKIP("GPUTRAIN_TEST_PYTHON is not set: no safetensors package to read with");
  const TemporaryFolder folder;
  NamedTensors tensors = one_of_each_type();
  tensors.emplace_back("channels_last", counting({1, 2, 1, 2}).contiguous(at::MemoryFormat::ChannelsLast));
  tensors.emplace_back("empty", counting({0, 4}));
  tensors.emplace_back("scalar", at::scalar_tensor(7.5));
  save_safetensors(folder / "w.safetensors", tensors, {{"format", "pt"}});
  const ShellResult read = run_python("state/read_safetensors.py", folder / "w.safetensors");
  CHECK(read.exit_code == 0);
  CHECK(read.output ==
        "metadata {'format': 'pt'}\n"
        "bf16 BF16 [3] [0.0, 1.0, 2.0]\n"
        "bool BOOL [3] [False, True, True]\n"
        "channels_last F32 [1, 2, 1, 2] [0.0, 1.0, 2.0, 3.0]\n"
        "empty F32 [0, 4] []\n"
        "f16 F16 [3] [0.0, 1.0, 2.0]\n"
        "f32 F32 [3] [0.0, 1.0, 2.0]\n"
        "f64 F64 [3] [0.0, 1.0, 2.0]\n"
        "i16 I16 [3] [0, 1, 2]\n"
        "i32 I32 [3] [0, 1, 2]\n"
        "i64 I64 [3] [0, 1, 2]\n"
        "i8 I8 [3] [0, 1, 2]\n"
        "scalar F32 [] [7.5]\n"
        "u8 U8 [3] [0, 1, 2]\n");
}
