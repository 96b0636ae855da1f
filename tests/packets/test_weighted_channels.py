"""Packets of channels with weights (`tests/engine/test_pinned_and_weighted.py` has those of the flow engine)."""

import numpy as np
import pytest
from weighted_channels import side_by_side

from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.packets.transports.spraying import over_path
from commsim.prediction.build import prepare
from topologies.star import star


@pytest.mark.parametrize("ratio", [1, 2, 3, 12])
def test_packets_share_a_host_s_link_by_weight(ratio):
    ready = prepare(side_by_side([ratio, 1], [ratio, 1.0]), star(2), placement=Placement([0, 1]))
    done = ready.predict((ratio + 1) * 4e6, engine="packet", trace=True).trace.done
    np.testing.assert_allclose(done, done.max(), rtol=0.02)


def test_packets_of_two_hosts_share_a_switch_s_link_by_weight():
    program = Program(3, 4)
    program.copy([0, 3], src=[0, 1], dst=2, count=[3, 1], channel=[0, 1])
    ready = prepare(program.build(weights=[3.0, 1.0]), star(3), placement=Placement([0, 1, 2]))
    done = ready.predict(64e6, engine="packet", trace=True).trace.done
    np.testing.assert_allclose(done, done.max(), rtol=0.03)


def test_transports_that_share_as_they_find_refuse_weights():
    ready = prepare(side_by_side([3, 1], [3.0, 1.0]), star(2), placement=Placement([0, 1]))
    with pytest.raises(InputError, match="channels have weights; use the transport `window`, or the flow engine"):
        ready.predict(1e6, engine="packet", transport=over_path("dctcp"))
    heavy = prepare(side_by_side([3, 1], [3e5, 1.0]), star(2), placement=Placement([0, 1]))
    with pytest.raises(InputError, match="weights in a ratio of at most 1024, got 300000"):
        heavy.predict(1e6, engine="packet")
