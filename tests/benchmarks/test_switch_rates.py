"""The table of steady rates: that the engine meets the bounds, which know nothing of it."""

import pytest

from benchmarks.switch.rates import Case, cases, measure, round_trip
from switch_model.systems import SYSTEMS

CASES = cases()


@pytest.mark.parametrize("case", [c for c in CASES if c.gbps == 100], ids=lambda c: f"{c.name}, {c.n_workers} workers")
def test_the_packet_engine_reaches_the_bound_at_100_gbps(case: Case) -> None:
    row = measure(case)
    assert row["simulated"] == pytest.approx(row["bound"], rel=0.02)
    assert row["simulated"] < row["bound"] * (1 + 1e-6)  # type: ignore[operator]


def test_below_a_round_trip_of_slots_the_rate_is_what_they_carry_in_one() -> None:
    system = SYSTEMS["switchml_udp"].build(pool_size=8)
    row = measure(Case("few slots", system, 100, 4))
    assert row["bound"] == pytest.approx(8 * 256 / round_trip(system, 100))
    assert row["bound"] < 0.5 * row["line_rate"]  # type: ignore[operator]
    assert row["simulated"] == pytest.approx(row["bound"], rel=0.02)


def test_every_format_stands_at_three_rates_and_measured_ones_below_their_bound() -> None:
    assert {c.gbps for c in CASES} == {10, 25, 100}
    known = [c for c in CASES if c.published is not None]
    assert [c.n_workers for c in known] == [4, 8, 16]
    for case in known:
        assert 0.97 < case.published * 1e6 / case.system.line_rate(100e9 / 8) < 1  # type: ignore[operator]
