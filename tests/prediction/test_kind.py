"""Kinds of work: what each declares, and that nothing else gets through."""

import dataclasses
from types import SimpleNamespace

import pytest

from commsim.core.errors import InputError
from commsim.extensions import house
from commsim.prediction.build import COLLECTIVE
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import Scenario, Wish
from commsim.prediction.solve import OPTIONS, WORKS, kind_of

STAR = "star:n_hosts=8"
FIELDS = {field.name for value in (Scenario, Wish) for field in dataclasses.fields(value)}


@pytest.mark.parametrize("work", WORKS)
def test_a_kind_honours_fields_that_exist_and_the_one_that_asks_for_it(work):
    assert {work} <= house().works[work].honours <= FIELDS
    assert COLLECTIVE.honours <= FIELDS


def test_every_option_that_has_a_name_of_its_own_sets_a_field():
    assert OPTIONS.keys() <= FIELDS


def test_each_kind_is_asked_for_by_its_field():
    asked = {"groups": {"groups": [[0, 1]]}, "compressed gradients": {"compressor": "sign"}, "a collective": {}}
    assert {
        name: kind_of(scenario_of("ring_all_reduce", STAR, **({"overhead": "0us"} | given))).name
        for name, given in asked.items()
    } == {name: name for name in asked}


def test_a_field_that_a_new_kind_does_not_name_is_refused():
    asked = scenario_of("ring_all_reduce", STAR, groups=[[0, 1]], trace=True, overhead="0us")
    kind = kind_of(asked)
    narrow = dataclasses.replace(kind, honours=kind.honours - {"trace"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("commsim.prediction.solve.house", lambda: SimpleNamespace(works={"groups": narrow}))
        with pytest.raises(InputError, match=r"^trace is not modelled for groups$"):
            kind_of(asked)
