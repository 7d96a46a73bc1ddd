#pragma once

namespace gputrain::cli {

// Makes the process safe from what happens to its streams: a reader of standard error that goes away, or a
// limit on file sizes, becomes an error of that write and not the end of the run; closed standard streams are
// opened on /dev/null, so that no file of the run takes their place.
void guard_standard_streams();

}  // namespace gputrain::cli
