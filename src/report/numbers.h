#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gputrain::report {

// How numbers look in lines that people read. What was not measured is "n/a", which for a fraction
// includes nan (0 of 0); other values that are not finite are "nan", "inf", "-inf".

std::string fixed(double value, int decimals);            // 2.314
std::string loss_text(double value);                      // 2.314; 4.2e-05 when three decimals would hide it
std::string norm_text(double value);                      // 0.87; 3.1e-03
std::string scientific(double value);                     // 1.0e-01
std::string rate_text(std::optional<double> per_second);  // 6,139; 826; 82.6; 8.26
std::string percent_text(double fraction, int decimals);  // 85.2%
std::string milliseconds_text(std::optional<double> seconds);  // 155 ms; 15.5 ms; 1.55 ms
std::string seconds_text(double seconds);                      // 1.2 s; 1m 05s; from an hour on 1h 02m

}  // namespace gputrain::report
