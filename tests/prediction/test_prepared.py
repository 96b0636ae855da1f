import numpy as np
import pytest

from commsim.core.jit import Kernel
from commsim.prediction.build import prepare

STAR = "star:n_hosts=6,bandwidth=100Gbps,latency=1us"
TREE = "fat_tree:k=4,bandwidth=100Gbps,latency=1us"
TORUS = "torus:dims=3x3,bandwidth=100Gbps,latency=1us"


@pytest.mark.parametrize("method", ["auto", "events"])
@pytest.mark.parametrize(
    ("collective", "network", "routing", "jitter"),
    [
        ("ring_all_reduce", STAR, None, 0.0),
        ("ring_all_reduce", TREE, "ecmp", 1e-4),
        ("halving_doubling_all_reduce", TREE, "spray", 0.0),
        ("direct_all_to_all", TREE, "ecmp", 0.0),
        ("direct_all_to_all", TORUS, None, 1e-5),
        ("binomial_tree_all_reduce", TORUS, "ecmp", 0.0),
        ("switchml:pool=3,n_chunks=10", TREE, None, 0.0),
    ],
)
def test_what_is_interpreted_equals_what_is_compiled_to_the_last_bit(
    monkeypatch, collective, network, routing, jitter, method
):
    found = []
    for steps in (10**9, 0):
        monkeypatch.setattr(Kernel, "steps_left", steps)
        ready = prepare(collective, network, routing=routing, seed=3)
        found.append(ready.predict(1e6, start_jitter=jitter, seed=5, method=method))
        assert Kernel.steps_left < steps or not steps
    interpreted, compiled = found
    assert interpreted.method == compiled.method
    assert interpreted.time == compiled.time
    assert np.array_equal(interpreted.link_bytes, compiled.link_bytes)
