#!/bin/sh
# Everything that needs a GPU, in one go (under eight minutes): the tests on it, then what decoding, verifying,
# batches and both libraries' loops cost on architectures of 1.5B and 8B with random weights. Offline; it needs the
# packages of pyproject.toml and about 25 GB of the GPU's memory. The embedded pair's exactness on the GPU is tested too if
# its weights are on this computer.
set -e
cd "$(dirname "$0")/.."
python3 -m pytest tests/test_gpu.py
python3 -m benchmarks.gpu --out "${OUT:-benchmarks/results/gpu}" "$@"
