import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.cables import link_names
from commsim.core.errors import InputError
from commsim.core.scaling import scale_links
from topologies.leaf_spine import leaf_spine

pytestmark = pytest.mark.nojit


def slowed(network, scaled):
    return {
        name for name, rate in zip(link_names(network), scaled.bandwidth / network.bandwidth, strict=True) if rate != 1
    }


def test_links_of_a_pattern_are_scaled_in_both_directions():
    network = leaf_spine(2, 2, 2)
    scaled = scale_links(network, 0.5, pattern="leaf0->spine*")
    assert slowed(network, scaled) == {"leaf0->spine0", "leaf0->spine1", "spine0->leaf0", "spine1->leaf0"}
    assert set(scaled.bandwidth / network.bandwidth) == {0.5, 1.0}
    assert scaled.name == f"{network.name} with 4 links at 0.5 of their rate"


@settings(deadline=None, max_examples=30)
@given(part=st.floats(0, 1), seed=st.integers(0, 2**40), factor=st.floats(1e-3, 1e3))
def test_a_part_of_the_cables_is_drawn(part, seed, factor):
    network = leaf_spine(4, 4, 2)
    scaled = scale_links(network, factor, part=part, seed=seed)
    names = slowed(network, scaled)
    assert len(names) == (2 * round(part * 16) if factor != 1 else 0)
    assert {name for name in names if name.startswith("h") or "->h" in name} == set()
    assert {"->".join(reversed(name.split("->"))) for name in names} == names
    assert np.array_equal(scaled.bandwidth, scale_links(network, factor, part=part, seed=seed).bandwidth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"factor": 0.0, "part": 1}, "links are scaled by a positive factor, got 0"),
        ({"factor": float("inf"), "part": 1}, "positive factor, got inf"),
        ({"factor": 2.0}, "by a pattern, or by how many there are; by one of the two"),
        ({"factor": 2.0, "part": 1, "pattern": "*"}, "by one of the two"),
        ({"factor": 2.0, "pattern": "x*"}, "has no link like 'x\\*'; they are called as in h0->leaf0"),
        ({"factor": 2.0, "part": 5}, "there are 4 links between nodes .* that forward, got 5"),
    ],
)
def test_what_cannot_be_scaled_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        scale_links(leaf_spine(2, 2, 2), **arguments)
