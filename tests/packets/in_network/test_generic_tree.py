import pytest

from collectives import COLLECTIVES
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.prediction.collective_names import load_schedule

SHARP = COLLECTIVES["sharp"]
sharp, sharp_cost = SHARP.build, SHARP.metadata["cost"]


def test_small_messages_take_twice_the_height_of_the_tree_and_streams_the_time_of_the_links():
    tree = (4, 4, 5, 5, 6, 6, -1)
    link = LogGP(L=1.0, B=1e9)
    assert sharp_cost(4, 0.0, link, n_chunks=1, tree=tree) == 4.0
    small, large = 8.0, 1e12
    assert sharp_cost(4, small, link, n_chunks=1, tree=tree) == pytest.approx(4.0, rel=1e-6)
    assert sharp_cost(4, large, link, tree=tree) == pytest.approx(large / 1e9 * (1 + 3 / 256), rel=1e-2)
    assert sharp_cost(4, large, link, n_chunks=1, tree=tree) == pytest.approx(4 * large / 1e9, rel=1e-2)


def test_its_packets_are_those_of_the_system_and_do_not_change_the_schedule():
    assert load_schedule("sharp:mode=low_latency,n_chunks=3", 8) == sharp(8, n_chunks=3)


def test_another_mode_is_refused_on_the_command_line():
    with pytest.raises(InputError, match="sharp has no parameter 'mod'; did you mean mode"):
        load_schedule("sharp:mod=streaming", 4)
