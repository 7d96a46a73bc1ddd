#!/usr/bin/env bash
# Installs the build in $1 elsewhere, and trains with what was installed, from an empty folder.
set -euo pipefail

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >/dev/null
mkdir "$prefix/work"
cd "$prefix/work"
unset LD_LIBRARY_PATH
cat >tiny.yaml <<'END'
device: cpu
max_steps: 2
micro_batch_size: 2
model: { name: mlp }
data: { name: synthetic, shape: [1, 4, 4], num_classes: 2, samples: 8, pool: 4 }
END
"$prefix/bin/gputrain" --version
"$prefix/bin/gputrain" run tiny.yaml
test -s runs/tiny/model.safetensors
"$prefix/bin/gputrain" check "$prefix/share/gputrain/configs/resnet50-synthetic.yaml" >/dev/null
