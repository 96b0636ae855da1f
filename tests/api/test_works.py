"""Kinds of work: what each declares, that nothing else gets through, and that packages may bring others."""

import dataclasses
from types import SimpleNamespace

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.extensions import house
from commsim.prediction.build import CollectiveWork
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import CORE_ENGINES, Engine, Scenario, Wish, engine_of
from commsim.prediction.solve import require_options
from commsim.prediction.work_plan import OPTIONS, Work

STAR = "star:n_hosts=8"
ENGINES = {**CORE_ENGINES, **house().engines}
FIELDS = {field.name for value in (Scenario, Wish, *ENGINES.values()) for field in dataclasses.fields(value)}


@pytest.mark.parametrize("work", ["", *house().works])
def test_a_kind_takes_options_that_exist(work):
    assert (house().works[work] if work else CollectiveWork).TAKES <= FIELDS


def test_every_option_that_has_a_name_of_its_own_sets_a_field():
    assert OPTIONS.keys() <= FIELDS | {field.name for field in dataclasses.fields(CollectiveWork)}


def test_each_kind_is_asked_for_by_its_keyword():
    asked = {"groups": {"groups": [[0, 1]]}, "compressed gradients": {"compressor": "sign"}, "a collective": {}}
    assert {
        name: scenario_of("ring_all_reduce", STAR, **({"overhead": "0us"} | given)).work.NAME
        for name, given in asked.items()
    } == {name: name for name in asked}


def test_an_option_that_a_kind_does_not_take_is_refused(monkeypatch):
    asked = scenario_of("ring_all_reduce", STAR, groups=[[0, 1]], trace=True, overhead="0us")
    require_options(asked)
    kind = type(asked.work)
    monkeypatch.setattr(kind, "TAKES", kind.TAKES - {"trace"})
    with pytest.raises(InputError, match=r"^trace is not modelled for groups$"):
        require_options(asked)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"groups": [[0, 1]], "compressor": "sign"}, "compressor is not modelled for groups"),
        ({"traffic": "incast:senders=3", "n_ranks": 4}, "ranks is not modelled for traffic, whose messages"),
        ({"traffic": "incast:senders=3", "operation": "all_gather"}, "operation is not modelled for traffic, whose"),
        ({"work": "traffic:incast:senders=3", "groups": [[0, 1]]}, "groups is not modelled for traffic, whose"),
    ],
)
def test_works_that_exclude_each_other_are_not_made(given, refusal):
    with pytest.raises(InputError, match=f"^{refusal}"):
        scenario_of(None, STAR, **given)


def test_a_work_by_its_name_is_that_of_its_keyword():
    by_name, by_keyword = ({"work": "compressor:sign"}, {"compressor": "sign"})
    times = [cs.predict("ring_all_gather", STAR, "1MiB", **given).time for given in (by_name, by_keyword)]
    assert times[0] == times[1] != cs.predict("ring_all_gather", STAR, "1MiB").time


class RingWork(Work):
    """A ring of some ranks: a work that no package of ours has."""

    NAME = "a ring"

    def __init__(self, n_ranks):
        self.n_ranks = int(n_ranks)

    def plan(self, scenario):
        ring = CollectiveWork("ring_all_reduce", self.n_ranks)
        return ring.plan(dataclasses.replace(scenario, work=ring))


def test_a_work_of_an_installed_package_is_asked_for_by_its_name(monkeypatch):
    monkeypatch.setattr("commsim.prediction.read.house", lambda: type("H", (), {"works": {"ring": RingWork}}))
    by_name = cs.solve(scenario_of(None, STAR, work="ring:4"), ["1MiB"]).results
    assert [one.time for one in by_name] == [cs.predict("ring_all_reduce", STAR, "1MiB", n_ranks=4).time]
    with pytest.raises(InputError, match=r"^start jitter is not modelled for a ring$"):
        cs.solve(scenario_of(None, STAR, work=RingWork(4), start_jitter="1us"), ["1MiB"])


def test_an_engine_of_an_installed_package_is_asked_for_by_its_name(monkeypatch):
    tables = SimpleNamespace(engines={"twice": TwiceEngine})
    monkeypatch.setattr("commsim.prediction.scenario.house", lambda: tables)
    whole = cs.predict("ring_all_reduce", STAR, "1MiB").time
    assert cs.predict("ring_all_reduce", STAR, "1MiB", engine="twice").time == 2 * whole
    with pytest.raises(InputError, match=r"^unknown engine 'thrice'; known: flow"):
        cs.predict("ring_all_reduce", STAR, "1MiB", engine="thrice")


@dataclasses.dataclass(frozen=True)
class TwiceEngine(Engine):
    NAME = "twice"

    def simulation(self, paths, wish):
        def simulate(size, **options):
            result = paths.simulate(size, trace=wish.trace, **options)
            return dataclasses.replace(result, time=2 * result.time, engine="twice")

        return simulate


@pytest.mark.parametrize(
    ("engine", "options", "refusal"),
    [
        ("packet", {"method": "events"}, "method goes with engine flow, got engine packet"),
        ("alpha-beta", {"flaps": ()}, "flap goes with engine flow or packet, got engine alpha-beta"),
        ("flow", {"transport": "dctcp"}, "transport goes with engine packet or auto, got engine flow"),
        ("flow", {"watch": "links"}, "watch goes with engine packet, got engine flow"),
    ],
)
def test_an_option_of_another_engine_is_refused(engine, options, refusal):
    with pytest.raises(InputError, match=f"^{refusal}$"):
        engine_of(engine, **options)


def test_another_wish_has_the_options_that_its_engine_can_have():
    wish = Wish.of(method="events", seed=3)
    assert wish.but(flaps=None, watch=None, trace=True) == Wish.of(method="events", seed=3, trace=True)
    with pytest.raises(TypeError):
        wish.but(watch="links")
