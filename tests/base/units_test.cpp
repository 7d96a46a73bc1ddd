#include "base/units.h"

#include "support/catch.h"

using namespace gputrain;

TEST_CASE("units: bytes are read in 1000s and 1024s", "[base]") {
  const auto [text, bytes] = GENERATE(table<std::string, std::int64_t>({{"500MB", 500'000'000},
                                                                        {"11.5GiB", 12'348'030'976},
                                                                        {"1 KiB", 1024},
                                                                        {"3kB", 3000},
                                                                        {"7B", 7},
                                                                        {"2TB", 2'000'000'000'000},
                                                                        {"1TiB", 1'099'511'627'776}}));
  CAPTURE(text);
  CHECK(parse_bytes(text).value == bytes);
}

TEST_CASE("units: bytes without a unit, or too many, are refused", "[base]") {
  for (const char* text :
       {"", "500", "GiB", "-1GiB", "1gib", "1GiBs", "1  GiB", "infGiB", "9e30TiB", "1e999B"}) {
    CAPTURE(text);
    CHECK(!parse_bytes(text).value);
    CHECK(parse_bytes(text).error == "expected bytes with a unit, as in 500MB or 11.5GiB");
  }
}

TEST_CASE("units: durations are read in seconds", "[base]") {
  const auto [text, seconds] = GENERATE(table<std::string, double>({{"90s", 90},
                                                                    {"30min", 1800},
                                                                    {"2h", 7200},
                                                                    {"1d", 86400},
                                                                    {"250ms", 0.25},
                                                                    {"1.5 h", 5400},
                                                                    {"1e+06s", 1e6}}));
  CAPTURE(text);
  CHECK(parse_duration(text).value == seconds);
}

TEST_CASE("units: durations without a unit are refused", "[base]") {
  for (const char* text : {"", "90", "s", "-2h", "2x", "2 hours", "nans", "1e308d"}) {
    CAPTURE(text);
    CHECK(!parse_duration(text).value);
    CHECK(parse_duration(text).error == "expected a duration with a unit, as in 90s, 30min, 2h or 1d");
  }
}

TEST_CASE("units: bytes are shown in the largest unit that keeps a digit before the point", "[base]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.0 KiB");
  CHECK(format_bytes(1'048'575) == "1.0 MiB");
  CHECK(format_bytes(10'522'669'875) == "9.8 GiB");
  CHECK(format_bytes(-1536) == "-1.5 KiB");
  CHECK(format_bytes(INT64_MAX) == "8388608.0 TiB");
}

TEST_CASE("units: durations are shown with two digits that matter", "[base]") {
  CHECK(format_duration(0.44) == "0.4s");
  CHECK(format_duration(42.3) == "42s");
  CHECK(format_duration(59.6) == "1m");
  CHECK(format_duration(780) == "13m");
  CHECK(format_duration(3599) == "1h 00m");
  CHECK(format_duration(3725) == "1h 02m");
  CHECK(format_duration(183'600) == "2d 03h");
  CHECK(format_duration(1.0 / 0.0) == "n/a");
}

TEST_CASE("units: counts are shown in thousands", "[base]") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-123456) == "-123,456");
}

TEST_CASE("units: exact bytes are read back as the same number", "[base]") {
  CHECK(exact_bytes(12348030976) == "11.5GiB");
  CHECK(exact_bytes(1LL << 40) == "1TiB");
  CHECK(exact_bytes(1000) == "1000B");
  CHECK(exact_bytes(12348030977) == "12348030977B");
  for (const std::int64_t bytes : {1LL, 1024LL, 500000000LL, 12348030977LL, 3LL << 33}) {
    CHECK(parse_bytes(exact_bytes(bytes)).value == bytes);
  }
}
