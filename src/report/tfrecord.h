#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gputrain::report {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

// One record of a TFRecord file: length, its masked checksum, the bytes, theirs; integers little-endian.
// Source: tensorflow/core/lib/io/record_writer.h and tensorflow/core/lib/hash/crc32c.h (the mask).
std::string tfrecord(std::string_view bytes);

}  // namespace gputrain::report
