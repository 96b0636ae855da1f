import copy

import pytest

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
