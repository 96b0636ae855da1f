"""Points per second of a sweep with one and with two processes.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The executor
is made, and a sweep run on it, before: its processes have then imported and loaded all that they need.
``extra_info["points_per_second"]`` says what the time means; the issue's limits, 10,000 points of
``examples/sweep_10k.toml`` in 60 s on 2 processors and a factor of 1.8 between the two, stand beside it.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from commsim.core.files.whole_files import read_tree
from commsim.sweep.config import read_config
from commsim.sweep.executors import open_pool
from commsim.sweep.plan import plan_sweep
from commsim.sweep.points import points
from commsim.sweep.run_sweep import run_sweep

pytest.importorskip("pyarrow")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/sweep_10k.toml"

N_POINTS = 1000


@pytest.fixture
def tenth() -> dict[str, Any]:
    """Return the example with one bandwidth of five and one latency of two: 1000 points."""
    tree = read_tree(EXAMPLE)
    tree["topology"] = {"bandwidth": "100Gbps", "latency": "500ns"}
    return tree


@pytest.mark.parametrize("jobs", [1, 2])
def test_points_per_second(benchmark: Any, tmp_path: Path, tenth: dict[str, Any], jobs: int) -> None:
    """A tenth of the example, from the file to shards."""
    run = itertools.count()
    with open_pool("process", jobs) as pool:

        def sweep() -> None:
            done = run_sweep(tenth, tmp_path / f"{next(run)}", pool.executor)
            assert (done.n_done, done.n_failed) == (N_POINTS, 0)

        benchmark.pedantic(sweep, rounds=3, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["points_per_second"] = N_POINTS / benchmark.stats.stats.median
        benchmark.extra_info["issue"] = "10,000 points in 60 s with 2 processes, 1.8 times those of one"


def test_points_are_walked(benchmark: Any) -> None:
    """From the file to the points, with their filters and hashes: what the driver does beside waiting."""
    config = read_config(EXAMPLE)
    assert benchmark(lambda: sum(1 for _ in points(config))) == 10_000


def test_a_plan_is_made(benchmark: Any) -> None:
    """Count and measure the example."""
    config = read_config(EXAMPLE)
    plan = benchmark.pedantic(plan_sweep, (config,), warmup_rounds=1)
    assert plan.n_points == 10_000
    benchmark.extra_info.update(work_s=plan.work, uncertain_s=plan.uncertain)
