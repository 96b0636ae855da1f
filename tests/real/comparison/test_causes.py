"""A cause is named only where the model with it gives the times that were measured."""

import pytest

from commsim.formats.measurement import Measurement
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.real.comparison.causes import explain_cause
from commsim.real.comparison.pairs import Pair

SIZES = [2**10, 2**16, 2**20, 2**24]
STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


def told(measured, sizes=SIZES, collective="ring_all_reduce", network=STAR):
    """What is said of these times, or of a factor of the predicted ones."""
    solution = solve(scenario_of(collective, network, overhead="0us"), sizes)
    predicted = [result.time for result in solution.results]
    times = [measured * time for time in predicted] if isinstance(measured, float) else measured
    rows = zip(sizes, times, predicted, strict=True)
    pairs = [Pair(Measurement("all_reduce", size, time, 4), expected) for size, time, expected in rows]
    return explain_cause(solution, pairs)


def times_on(network, sizes=SIZES, collective="ring_all_reduce", **options):
    return [
        result.time
        for result in solve(scenario_of(collective, network, **({"overhead": "0us"} | options)), sizes).results
    ]


@pytest.mark.parametrize(
    ("slower", "cause"),
    [
        (STAR.replace("100Gbps", "50Gbps"), "1/2 of the rate of links"),
        (STAR.replace("100Gbps", "12.5Gbps"), "1/8 of the rate of links"),
        (STAR.replace("1us", "51us"), "50 us more latency of links"),
    ],
)
def test_what_the_model_reproduces_is_named(slower, cause):
    said = told(times_on(slower))
    assert said.startswith("cause that gives these times in the model: ")
    assert f"{cause} (within 0%)" in said


def test_a_factor_at_every_size_is_no_lack_of_bandwidth():
    said = told(1.9)
    assert said.startswith("cause: none that was tried in the model gives these times: 1/2 of the rate of links, ")
    assert "more latency of links" in said


DGX, NCCL, LARGE = "dgx-h100@star:machines=2", "nccl_all_reduce", [2**20, 2**24, 2**28, 2**30]


def test_nccl_that_is_slower_at_every_size_has_not_half_of_its_nics():
    assert told(1.9, LARGE, NCCL, DGX).startswith("cause: none that was tried")


def test_an_algorithm_that_nccl_was_forced_to_is_found_by_its_times():
    said = told([1.05 * time for time in times_on(DGX, LARGE, f"{NCCL}:algorithm=ring")], LARGE, NCCL, DGX)
    assert said == "cause that gives these times in the model: NCCL takes ring at every size (within 5%)"


@pytest.mark.slow
def test_half_of_the_nics_are_told_from_links_at_half_of_their_rate():
    fewer = tuple(f"link:m{machine}.nic{nic}:switch0" for machine in (0, 1) for nic in (1, 3, 5, 7))
    network = "dgx-h100@star:machines=2,bandwidth=100Gbps"
    plain = times_on(network, LARGE, NCCL)
    half = times_on(network, LARGE, NCCL, fail=fewer)
    assert max(h / p for h, p in zip(half, plain, strict=True)) > 1.5
    said = told(half, LARGE, NCCL, network)
    assert "half of the NICs (within 0%)" in said
