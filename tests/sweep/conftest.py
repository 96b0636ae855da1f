import copy

import pytest

from commsim.sweep.run_sweep import run_sweep

SMALL = {
    "topology": {"name": "star", "n_hosts": 8, "bandwidth": ["100Gbps", "400Gbps"], "latency": "1us"},
    "collective": {"name": ["ring_all_reduce", "halving_doubling_all_reduce"], "ranks": [4, 8],
                   "size": {"from": "1KiB", "to": "1MiB", "scale": "log", "steps": 3}},
    "engine": {"name": "alpha-beta"},
}  # fmt: skip


@pytest.fixture
def small():
    """24 points that take a moment."""
    return copy.deepcopy(SMALL)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Results of these points, to be read."""
    folder = tmp_path_factory.mktemp("swept") / "r"
    run_sweep(copy.deepcopy(SMALL), folder, "serial")
    return folder
