"""No answer of any engine is faster than the bytes over the capacity of cuts."""

import dataclasses

import pytest

from commsim.core.errors import InputError, PhysicsError
from commsim.prediction.bounds.floor import floor_of
from commsim.prediction.build import prepare


def test_the_check_fires_when_a_cost_is_halved():
    plan = prepare("ring_all_reduce", "star:n_hosts=8,bandwidth=100Gbps,latency=0us")
    right = plan.predict(2**26)
    with pytest.raises(PhysicsError, match=r"engine flow gives .* but the capacity (out of|into)"):
        plan.checked(dataclasses.replace(right, time=right.time / 2))
    assert plan.checked(right) is right


def test_a_formula_that_does_not_see_a_cut_is_refused_with_its_name():
    plan = prepare("direct_all_to_all", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,oversubscription=4")
    for engine in ("closed-form", "alpha-beta"):
        with pytest.raises(InputError, match=r"the capacity out of rack leaf0 .*use engine flow"):
            plan.predict(2**25, engine=engine)
    assert plan.predict(2**25).time >= floor_of(plan).per_byte * 2**25


def test_what_carries_no_bytes_has_no_floor():
    assert floor_of(prepare("dissemination_barrier", "star:n_hosts=4")).per_byte == 0
