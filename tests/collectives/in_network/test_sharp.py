import pytest

from collectives.in_network.sharp import sharp, sharp_cost
from commsim.core.cost import LogGP
from commsim.core.errors import InputError

pytestmark = pytest.mark.nojit


def test_low_latency_is_one_message_per_link_and_streaming_many():
    assert sharp(8, "low_latency").n_chunks == 1
    assert sharp(8).n_chunks == 256
    assert sharp(8, n_chunks=3).n_chunks == 3


def test_small_messages_take_twice_the_height_of_the_tree_and_streams_the_time_of_the_links():
    tree = (4, 4, 5, 5, 6, 6, -1)
    link = LogGP(L=1.0, B=1e9)
    assert sharp_cost(4, 0.0, link, "low_latency", tree=tree) == 4.0
    small, large = 8.0, 1e12
    assert sharp_cost(4, small, link, "low_latency", tree=tree) == pytest.approx(4.0, rel=1e-6)
    assert sharp_cost(4, large, link, tree=tree) == pytest.approx(large / 1e9 * (1 + 3 / 256), rel=1e-2)
    assert sharp_cost(4, large, link, "low_latency", tree=tree) == pytest.approx(4 * large / 1e9, rel=1e-2)


def test_another_mode_is_refused_on_the_command_line():
    from commsim.run.inputs import load_schedule

    with pytest.raises(InputError, match="sharp: mode must be one of streaming, low_latency, got 'fast'"):
        load_schedule("sharp:mode=fast", 4)


def test_another_mode_is_refused_from_python():
    with pytest.raises(InputError, match="sharp: mode must be one of streaming, low_latency, got 'fast'"):
        sharp(4, "fast")
