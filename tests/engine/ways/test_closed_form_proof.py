import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.engine.ways.closed_form_proof import carriers


@pytest.mark.parametrize(
    "name", ["ring_all_reduce", "pairwise_all_to_all", "halving_doubling_all_reduce", "double_tree_all_reduce"]
)
@pytest.mark.parametrize("framing", [None, Framing(1000, 50)])
def test_connections_carry_what_all_transfers_together_say(name, framing):
    schedule = COLLECTIVES[name].build(8)
    found = carriers(schedule)
    wanted = {}
    for one in schedule.expand():
        key = int(one["src"]), int(one["dst"]), int(one["channel"])
        wanted[key] = wanted.get(key, 0.0) + (framing or Framing()).on_wire(np.float64(one["count"] * 1500.0))
    ours = found.on_wire(1500.0, framing)
    assert {
        (*ends, channel): n
        for ends, channel, n in zip(map(tuple, found.ends.tolist()), found.channel.tolist(), ours.tolist(), strict=True)
    } == wanted
