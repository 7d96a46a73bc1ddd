#include "kernels/half.h"

#include "kernels/random_math.h"
#include "support/catch.h"

#include <cmath>
#include <cstdint>
#include <limits>

using namespace gputrain::kernels;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A 16-bit type by its definition: sign, exponent with a bias, mantissa of `mantissa_bits`.
double value_of(unsigned bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits & 0x7fffU) >> mantissa_bits);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
}

struct Format {
  const char* name;
  int mantissa_bits;
  int bias;
  unsigned infinity;
  float (*widen)(std::uint16_t);
  std::uint16_t (*round)(float);
  std::uint16_t (*round_randomly)(float, std::uint64_t);
};
const Format kFormats[] = {
    {"float16", 10, 15, 0x7c00, half_to_float, float_to_half, float_to_half},
    {"bfloat16", 7, 127, 0x7f80, bfloat16_to_float, float_to_bfloat16, float_to_bfloat16}};

std::uint16_t word(unsigned bits) {
  return static_cast<std::uint16_t>(bits);
}

// How often `value` goes up to `upper` in `draws`; all others must go to `lower`.
int count_up(const Format& format, float value, unsigned lower, unsigned upper, int draws) {
  int up = 0;
  for (int i = 0; i < draws; ++i) {
    const std::uint16_t rounded =
        format.round_randomly(value, random_bits(17, static_cast<std::uint64_t>(i)));
    if (rounded != lower) REQUIRE(rounded == upper);
    up += rounded == upper;
  }
  return up;
}

}  // namespace

TEST_CASE("half: all 65536 values of both 16-bit types widen to what their bits say, and come back",
          "[kernels]") {
  for (const Format& format : kFormats) {
    for (unsigned bits = 0; bits < 65536; ++bits) {
      INFO(format.name << " " << bits);
      const double expected = value_of(bits, format.mantissa_bits, format.bias);
      const float wide = format.widen(word(bits));
      const std::uint16_t back = format.round(wide);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(wide));
        REQUIRE(std::isnan(format.widen(back)));
        continue;
      }
      REQUIRE(static_cast<double>(wide) == expected);
      REQUIRE(std::signbit(wide) == std::signbit(expected));
      REQUIRE(back == bits);
    }
  }
}

TEST_CASE("half: between any two neighbours the nearer is taken, and the even one from the middle",
          "[kernels]") {
  for (const Format& format : kFormats) {
    for (unsigned lower = 0; lower < format.infinity; ++lower) {
      INFO(format.name << " " << lower);
      const double low = value_of(lower, format.mantissa_bits, format.bias);
      const double high = lower + 1 < format.infinity
                              ? value_of(lower + 1, format.mantissa_bits, format.bias)
                              : 2 * low - value_of(lower - 1, format.mantissa_bits, format.bias);
      const auto middle = static_cast<float>((low + high) / 2);
      const unsigned even = lower + (lower & 1);
      REQUIRE(static_cast<double>(middle) == (low + high) / 2);
      REQUIRE(format.round(middle) == even);
      REQUIRE(format.round(std::nextafter(middle, 0.0F)) == lower);
      REQUIRE(format.round(std::nextafter(middle, kInfinity)) == lower + 1);
      REQUIRE(format.round(-middle) == (even | 0x8000U));
    }
  }
}

TEST_CASE("half: known values of float16", "[kernels]") {
  REQUIRE(float_to_half(0.0F) == 0x0000);
  REQUIRE(float_to_half(-0.0F) == 0x8000);
  REQUIRE(float_to_half(1.0F) == 0x3c00);
  REQUIRE(float_to_half(-2.0F) == 0xc000);
  REQUIRE(float_to_half(0.1F) == 0x2e66);
  REQUIRE(float_to_half(65504.0F) == 0x7bff);
  REQUIRE(float_to_half(65519.0F) == 0x7bff);
  REQUIRE(float_to_half(65520.0F) == 0x7c00);
  REQUIRE(float_to_half(0x1p-14F) == 0x0400);
  REQUIRE(float_to_half(0x1p-24F) == 0x0001);
  REQUIRE(float_to_half(0x1p-25F) == 0x0000);
  REQUIRE(float_to_half(0x1.8p-24F) == 0x0002);
  REQUIRE(float_to_half(1e-45F) == 0x0000);
  REQUIRE(float_to_half(-kInfinity) == 0xfc00);
  REQUIRE((float_to_half(kNan) & 0x7fff) > 0x7c00);
  REQUIRE(half_to_float(0x3555) == 0.333251953125F);
}

TEST_CASE("half: known values of bfloat16", "[kernels]") {
  REQUIRE(float_to_bfloat16(1.0F) == 0x3f80);
  REQUIRE(float_to_bfloat16(-0.0F) == 0x8000);
  REQUIRE(float_to_bfloat16(3.14159265F) == 0x4049);
  REQUIRE(float_to_bfloat16(0x1.01p0F) == 0x3f80);
  REQUIRE(float_to_bfloat16(0x1.03p0F) == 0x3f82);
  REQUIRE(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
  REQUIRE(float_to_bfloat16(kInfinity) == 0x7f80);
  REQUIRE(bfloat16_to_float(float_to_bfloat16(float_of(0x7f800001))) != kInfinity);
  REQUIRE(bfloat16_to_float(0x4049) == 3.140625F);
}

TEST_CASE("half: random rounding leaves what the type holds, and what is not finite", "[kernels]") {
  for (const Format& format : kFormats) {
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const float wide = format.widen(word(bits));
      for (const std::uint64_t random : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        INFO(format.name << " " << bits << " with random bits " << random);
        const std::uint16_t rounded = format.round_randomly(wide, random);
        if (std::isnan(wide)) {
          REQUIRE(std::isnan(format.widen(rounded)));
        } else {
          REQUIRE(rounded == bits);
        }
      }
    }
  }
}

TEST_CASE("half: random rounding takes one of the two neighbours, as often as its nearness says",
          "[kernels]") {
  constexpr int kDraws = 100000;
  for (const Format& format : kFormats) {
    // Small subnormals, the last subnormal and the first normal, and numbers of middling and large size.
    for (const unsigned lower : {0U, 1U, 5U, (1U << format.mantissa_bits) - 1, 1U << format.mantissa_bits,
                                 format.infinity / 2, format.infinity / 2 + 77, format.infinity - 2}) {
      for (const double part : {1.0 / 64, 0.25, 0.5, 0.8125}) {
        for (const unsigned sign : {0U, 0x8000U}) {
          const double low = value_of(lower | sign, format.mantissa_bits, format.bias);
          const double high = value_of((lower + 1) | sign, format.mantissa_bits, format.bias);
          const auto value = static_cast<float>(low + part * (high - low));
          INFO(format.name << " " << (lower | sign) << " and " << part << " of the way to the next");
          REQUIRE(static_cast<double>(value) == low + part * (high - low));
          const int up = count_up(format, value, lower | sign, (lower + 1) | sign, kDraws);
          const double deviation = std::sqrt(part * (1 - part) / kDraws);
          REQUIRE(std::abs(static_cast<double>(up) / kDraws - part) < 6 * deviation);
        }
      }
    }
  }
}

TEST_CASE("half: random rounding reaches infinity only where rounding to the nearest does", "[kernels]") {
  const std::uint64_t ones = ~std::uint64_t{0};
  REQUIRE(float_to_half(65505.0F, ones) == 0x7bff);
  REQUIRE(float_to_half(std::nextafter(65520.0F, 0.0F), ones) == 0x7bff);
  REQUIRE(float_to_half(-65519.0F, ones) == 0xfbff);
  REQUIRE(float_to_half(65520.0F, 0) == 0x7c00);
  REQUIRE(float_to_half(-1e30F, 0) == 0xfc00);
  const float limit = float_of(0x7f7f8000);
  REQUIRE(float_to_bfloat16(std::nextafter(limit, 0.0F), ones) == 0x7f7f);
  REQUIRE(float_to_bfloat16(-std::nextafter(limit, 0.0F), ones) == 0xff7f);
  REQUIRE(float_to_bfloat16(limit, 0) == 0x7f80);
}
