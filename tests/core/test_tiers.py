import pytest

from commsim.core.metrics.network_metrics import measure
from commsim.core.network import Network
from commsim.core.tiers import tiers

pytestmark = pytest.mark.nojit


def test_what_no_host_reaches_is_in_no_tier():
    network = Network("x", tuple("abst"), [0, 0, 1, 1], [0, 2, 3], [2, 1, 2], 1.0, 0.0)
    assert tiers(network).tolist() == [0, 0, 1, -1]
    assert measure(network).tier_sizes == (2, 1)
