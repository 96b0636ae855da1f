"""A call's time never falls with its size, as long as algorithm, protocol and the number of channels stay."""

from itertools import pairwise

import pytest

from collectives.nccl.call import NEWEST, NcclCall
from collectives.nccl.rules import cut_call
from commsim.prediction.build import prepare

# What the rounding of a call's pieces to a sixteenth of the largest leaves of a time.
ROUNDING = 1e-4


@pytest.mark.sample(5)
@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "protocol"), [
    ("tree", "ll"), ("tree", "ll128"), ("tree", "simple"), ("ring", "ll"), ("ring", "ll128"), ("ring", "simple"),
])  # fmt: skip
@pytest.mark.parametrize(("topology", "n_ranks", "n_nodes"), [("dgx-h100", 8, 1), ("dgx-h100@star:machines=2", 16, 2)])
def test_a_larger_call_never_takes_less(topology, n_ranks, n_nodes, algorithm, protocol):
    here = prepare(f"nccl_all_reduce:algorithm={algorithm},protocol={protocol}", topology)
    of_channels: dict[int, list[float]] = {}
    for size in range(1024, 200_000, 4099):
        channels = here.launch.parameters(size)["channels"]
        call = NcclCall("all_reduce", size, n_ranks, n_nodes, algorithm, protocol, channels, NEWEST, heads=8)
        of_channels.setdefault(len(cut_call(call)), []).append(here.predict(size).time)
    assert sum(map(len, of_channels.values())) > len(of_channels)  # some sizes share their channels
    for times in of_channels.values():
        assert all(after >= before * (1 - ROUNDING) for before, after in pairwise(times))
