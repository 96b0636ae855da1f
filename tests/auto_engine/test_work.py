import pytest

from commsim.auto_engine.work import estimated_seconds
from commsim.run import prepare
from topologies.star import star


def test_packets_cost_by_size_and_the_other_engines_do_not():
    ready = prepare("ring_all_reduce", star(8))
    small, large = estimated_seconds(ready, 2**20), estimated_seconds(ready, 2**30)
    assert large["packet"] > 20 * small["packet"]
    assert all(large[engine] == small[engine] for engine in ("closed-form", "alpha-beta", "flow"))
    assert list(large) == ["closed-form", "alpha-beta", "flow", "packet"]


def test_a_packet_is_counted_on_every_link_that_it_crosses():
    ready = prepare("ring_send_recv", star(4))
    per_byte = (estimated_seconds(ready, 2**30)["packet"] - estimated_seconds(ready, 2**29)["packet"]) / 2**29
    assert per_byte == pytest.approx(4 * 2 / 4096 * 1.5e-7)
