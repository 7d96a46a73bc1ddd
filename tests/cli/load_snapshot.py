"""Whether a file is a snapshot of memory as pytorch.org/memory_viz reads it, of a run of some steps."""

import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
assert snapshot["segments"], "nothing is held"
trace = max(snapshot["device_traces"], key=len)
assert len(trace) > 100, f"{len(trace)} entries"
assert all("frames" in entry for entry in trace), "an entry has no frames"
names = {frame["name"] for entry in trace for frame in entry["frames"]}
assert any("at::" in name for name in names), f"no function of LibTorch among {len(names)}"
