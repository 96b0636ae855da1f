"""Messages cost the same in every engine, on networks whose hosts have one cable, many, or NICs."""

import pytest

import commsim as cs

MESH, CUBE, TORUS = "fully_connected:n_hosts=16", "hypercube:dimension=4", "torus:dims=4x4"
# No link of these is shared by two messages at once. Packets have headers, and closed forms one port.
QUESTIONS = [
    ("direct_all_to_all", MESH), ("pairwise_all_to_all", MESH), ("bruck_all_to_all", MESH), ("direct_scatter", MESH),
    ("recursive_doubling_all_reduce", MESH), ("ring_all_reduce", MESH), ("dissemination_barrier", MESH),
    ("halving_doubling_all_reduce", "fully_connected:n_hosts=8"), ("recursive_doubling_all_reduce", CUBE),
    ("halving_doubling_all_reduce", CUBE), ("recursive_doubling_all_gather", CUBE),
    ("ring_all_reduce", "ring:n_hosts=8"),
    ("torus_all_reduce", TORUS), ("ring_all_reduce", "dgx-h100"), ("recursive_doubling_all_reduce", "dgx-h100"),
    ("direct_all_to_all", "p4d"),
]  # fmt: skip


@pytest.mark.parametrize(("collective", "network"), QUESTIONS)
def test_four_engines_agree_on_what_messages_cost(collective, network):
    size = 0 if "barrier" in collective else "1KiB"
    times = {
        e: cs.predict(collective, network, size, engine=e, overhead="1us").time
        for e in ("flow", "packet", "alpha-beta")
    }
    times["closed-form"] = cs.predict(collective, network, size, engine="closed-form", overhead="1us").time
    assert times == {engine: pytest.approx(times["closed-form"], rel=1e-2) for engine in times}
    ideal = cs.predict(collective, network, size, overhead="0us").time
    assert times["flow"] > ideal + 0.9e-6


@pytest.mark.parametrize("collective", ["nccl", "nccl_all_gather", "nccl_all_to_all"])
def test_a_library_with_costs_of_its_own_gets_none_in_addition(collective):
    network = "dgx-h100@star:machines=2"
    with_overhead, without = (cs.predict(collective, network, "64KiB", overhead=o).time for o in ("1us", "0us"))
    assert with_overhead == without
