"""No answer is faster than the lower bound of its placement, with machines and faults as without."""

import numpy as np
import pytest

from commsim.prediction.bounds.cuts import floor_of
from commsim.prediction.build import prepare
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of, solve
from commsim.ranking.synthesis.bound import bound_for

MACHINES = ("", "dgx-h100@", "dgx-a100@")
FABRICS = ("star:{n}", "leaf_spine:{n},n_leaves=4,n_spines=2,oversubscription=4", "fat_tree:{f}")
FAULTS = ({}, {"fail": ["links:1"]}, {"scale": ["links:50%=0.1"]})
COLLECTIVES = ("nccl", "ring_all_reduce", "direct_all_to_all", "double_tree_all_reduce", "binomial_broadcast")


def drawn(seed):
    """Draw a network with faults, and a collective that may run there."""
    rng = np.random.default_rng(seed)
    machine = MACHINES[rng.integers(len(MACHINES))]
    fabric = FABRICS[rng.integers(len(FABRICS))]
    if machine:
        network = machine + fabric.format(n="machines=4", f="k=4")
    else:
        hosts = "hosts_per_leaf=2" if fabric.startswith("leaf") else "n_hosts=8"
        network = fabric.format(n=hosts, f="k=4")
    faults = {} if "star" in fabric else FAULTS[rng.integers(len(FAULTS))]
    collective = COLLECTIVES[rng.integers(0 if machine else 1, len(COLLECTIVES))]
    size = int(2 ** rng.integers(14, 27))
    return scenario_of(
        collective,
        network,
        seed=seed if faults else None,
        n_ranks=16 if machine else 8,
        **({"overhead": "0us"} | faults),
    ), size


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(60))
def test_no_drawn_scenario_is_below_its_lower_bound(seed):
    scenario, size = drawn(seed)
    plan = plan_of(scenario)
    (result,) = solve(scenario, [size], plan=plan).results
    assert result.time >= bound_for(plan.at(size)).time(size) * (1 - 1e-9)


@pytest.mark.deep
@pytest.mark.slow
def test_oversubscription_and_faults_slow_nccl_down_through_every_way():
    where = "dgx-h100@leaf_spine:machines=8,n_leaves=4,n_spines=4,oversubscription={}"
    times = [prepare("nccl_all_reduce", where.format(k)).predict(2**28).time for k in (1, 4, 16)]
    assert times[0] < times[1] < times[2]
    slow = solve(scenario_of("nccl_all_reduce", where.format(1), scale=["links:50%=0.05"], seed=1), [2**28])
    assert slow.results[0].time > 1.5 * times[0]


def test_sparse_data_has_no_floor():
    assert floor_of(prepare("agsparse:density=0.01", "star:n_hosts=4")).per_byte == 0
