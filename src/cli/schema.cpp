#include "recipe/schema.h"

#include "cli/commands.h"
#include "recipe/reference.h"
#include "run/plan.h"
#include "run/standard_output.h"

namespace gputrain::cli {

void schema(bool markdown) {
  run::to_stdout(markdown ? recipe::reference(run::catalogue()) : recipe::json_schema(run::catalogue()));
}

}  // namespace gputrain::cli
