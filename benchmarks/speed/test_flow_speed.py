"""How much processor time and memory the flow engine takes on the issue's cases.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limits stand beside the numbers in ``extra_info``: a ring of 1,024 ranks at most 2 s of CPU and 500 MB, with and
without late starters; a direct all-to-all of 256 ranks at most 1 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.placement import place
from commsim.core.result import Result
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from topologies.fat_tree import fat_tree

SIZE = 2.0**30
# Collective, ranks, latest start in seconds, and the limit in seconds of CPU.
CASES = {
    "ring": ("ring_all_reduce", 1024, 0.0, 2.0),
    "ring_with_late_starters": ("ring_all_reduce", 1024, 1e-3, 2.0),
    "direct_all_to_all": ("direct_all_to_all", 256, 0.0, 1.0),
}


def predict(collective: str, n_ranks: int, latest: float) -> Result:
    """Build, plan and simulate one collective of 1 GiB on a fat tree of 1,024 hosts."""
    network = fat_tree(16)
    schedule = COLLECTIVES[collective].build(n_ranks)
    plan = plan_flows(network, [FlowJob(schedule, place(network, n_ranks))])
    return simulate_flows(plan, SIZE, starts=np.random.default_rng(0).uniform(0.0, latest, n_ranks))[0]


def peak_memory(case: str) -> float:
    """Run a case in a process of its own, whose kernels are compiled; return its largest resident size in MB.

    Not from ``getrusage``: on Linux a child starts with the largest size that its parent had before it.
    """
    program = (
        "import sys; from benchmarks.speed.test_flow_speed import CASES, predict; predict(*CASES[sys.argv[1]][:3]); "
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, case], capture_output=True, text=True, check=True, env=environment
    )
    return float(done.stdout.split()[-1]) * 1024 / 1e6


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(timer=time.process_time, group="flow engine, CPU seconds")
def test_plan_and_simulate(benchmark: Any, case: str) -> None:
    """Measure building, planning and simulating together."""
    collective, n_ranks, latest, limit = CASES[case]
    result = benchmark.pedantic(predict, (collective, n_ranks, latest), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {
        "simulated_s": result.time,
        "transfers": result.counters["transfers"],
        "limit_cpu_s": limit,
        "limit_MB": 500,
        "peak_MB": peak_memory(case),
    }
    assert result.time > 0
