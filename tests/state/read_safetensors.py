"""Prints a safetensors file as the safetensors package reads it: metadata, then a tensor a line."""

import sys

import numpy
import safetensors

NUMPY_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
    "BOOL": "?",
}

path = sys.argv[1]
with safetensors.safe_open(path, framework="numpy") as file:
    print("metadata", file.metadata())
with open(path, "rb") as file:
    tensors = dict(safetensors.deserialize(file.read()))
for name, tensor in sorted(tensors.items()):
    dtype, data = str(tensor["dtype"]), bytes(tensor["data"])
    if dtype == "BF16":  # numpy has no bfloat16: the upper half of a float32
        values = (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    else:
        values = numpy.frombuffer(data, NUMPY_TYPES[dtype])
    print(name, dtype, tensor["shape"], values.tolist())
