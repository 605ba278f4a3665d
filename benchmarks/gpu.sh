#!/bin/sh
# Everything that needs a GPU, in one go (about five minutes): the tests, then the timings on a 1.5B
# architecture with random weights. Needs the packages of pyproject.toml, and no weights.
set -e
cd "$(dirname "$0")/.."
python3 -m pytest tests/test_gpu.py
python3 -m benchmarks.overhead --quick --out "${OUT:-benchmarks/results}/overhead-gpu.json"
