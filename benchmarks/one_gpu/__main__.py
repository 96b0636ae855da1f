"""Measure one GPU: ``python -m benchmarks.one_gpu FILE.json``."""

import sys

from benchmarks.one_gpu.measure import main

if len(sys.argv) != 2:
    sys.exit("usage: python -m benchmarks.one_gpu FILE.json")
main(sys.argv[1])
