import pytest

from commsim.core.errors import InputError
from commsim.schedulers.tiers import parse_tiers

pytestmark = pytest.mark.nojit


def test_rates_and_ratios_are_read():
    tiers = parse_tiers("1=100Gbps, 2=4:2,3=50GB/s")
    assert tiers.uplink(1, 0.0, "x") == 12.5e9
    assert tiers.uplink(2, 8 * 12.5e9, "x") == 4 * 12.5e9
    assert tiers.uplink(3, 1.0, "x") == 50e9
    tiers.require_used(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("100Gbps", "TIER=RATE"),
        ("1=100", "needs a unit"),
        ("1=1Gbps,1=2Gbps", "tier 1 twice"),
        ("1=2:1", "tier 1, the link of a node, has nothing below it"),
        ("1=1Gbps,2=0:1", "positive numbers"),
        ("", "TIER=RATE"),
    ],
)
def test_what_is_no_table_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_tiers(text)


def test_a_tier_that_is_missing_or_too_much_is_named():
    tiers = parse_tiers("1=1Gbps,4=1Gbps")
    with pytest.raises(InputError, match=r"how fast tier 2 is \(switch a to b\)"):
        tiers.uplink(2, 1.0, "switch a to b")
    with pytest.raises(InputError, match=r"has a tier 4, but there are 1..2"):
        tiers.require_used(2)
