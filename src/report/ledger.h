#pragma once

#include "profile/ledger.h"

#include <string>
#include <vector>

namespace gputrain::report {

// The table that people read, a line each: classes at the start and at the peak, and the layers that keep
// most for backward. docs/ledger.md explains it.
std::vector<std::string> ledger_lines(const profile::RunLedger& ledger);

// Name and bytes of each class that has any, a line each.
std::vector<std::string> class_lines(const profile::Ledger& ledger);

// memory/ledger.json, as docs/ledger.md lists it; with a newline at its end.
std::string ledger_json(const profile::RunLedger& ledger);

}  // namespace gputrain::report
