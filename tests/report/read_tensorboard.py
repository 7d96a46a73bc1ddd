"""Prints the scalars of an event folder as TensorBoard reads them: a tag a line, then step:value pairs."""

import sys

from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

folder = sys.argv[1]
# 0: keep every value; the default thins them out.
accumulator = EventAccumulator(folder, size_guidance={SCALARS: 0})
accumulator.Reload()
for tag in sorted(accumulator.Tags()[SCALARS]):
    pairs = (f"{event.step}:{event.value:.6g}" for event in accumulator.Scalars(tag))
    print(tag, *pairs)
print("first wall time", accumulator.FirstEventTimestamp())
