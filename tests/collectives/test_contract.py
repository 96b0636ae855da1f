"""What holds for every registered collective; a new one is covered without a line here."""

import inspect
import math
import re
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import BLOCKING, COLLECTIVES, MAX_CHUNKS, MAX_RANKS
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.schedule import Schedule


def few_chunks(name: str, n_chunks: int = 3) -> dict[str, int]:
    return {key: n_chunks for key in ("n_chunks", "n_partitions") if key in COLLECTIVES[name].parameters}


@pytest.mark.sample(4, each="name")
@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", range(1, 34))
@pytest.mark.parametrize("name", COLLECTIVES)
def test_it_keeps_the_promise_of_its_operation(name, n_ranks):
    schedule = COLLECTIVES[name].build(n_ranks, **few_chunks(name))
    assert check(schedule).method == "exact"
    assert (schedule.name, schedule.operation) == (name, COLLECTIVES[name].metadata["operation"])


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if "root" in COLLECTIVES[name].parameters])
@given(n_ranks=st.integers(1, 20), data=st.data())
@settings(max_examples=settings().max_examples // 3)
def test_any_rank_may_be_the_root(name, n_ranks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    schedule = COLLECTIVES[name].build(n_ranks, root=root, **few_chunks(name))
    assert schedule.root == root
    check(schedule)


@pytest.mark.sample(1, each="name")
@pytest.mark.parametrize("n_ranks", [65, 128])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_it_is_also_right_beyond_the_sizes_that_are_counted_exactly(name, n_ranks):
    assert check(COLLECTIVES[name].build(n_ranks, **few_chunks(name))).failure_probability < 1e-12


@pytest.mark.parametrize("name", COLLECTIVES)
def test_one_rank_sends_nothing_and_takes_no_time(name):
    transfers = COLLECTIVES[name].build(1).expand()
    assert (transfers["src"] == transfers["dst"]).all()
    facts = COLLECTIVES[name].metadata
    link = LogGP(L=1.0, o=1.0, B=1.0, gamma=1.0)
    assert facts["cost"] is None or facts["cost"](1, 1e6, link) == 0
    assert facts["bounds"] is None or facts["bounds"](1, 1e6, link) == (0, 0)


# The times of NCCL's rings and trees come from the costs of its primitives, and not from L, o, B and gamma.
BY_PRIMITIVES = {
    f"{library}_{what}"
    for library in ("nccl", "rccl")
    for what in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
}


@pytest.mark.parametrize("name", sorted(set(COLLECTIVES) - BY_PRIMITIVES))
def test_it_has_a_closed_form_or_bounds_that_grow_with_every_cost(name):
    facts = COLLECTIVES[name].metadata
    assert (facts["cost"] is None) != (facts["bounds"] is None)
    times = facts["cost"] or (lambda *args: facts["bounds"](*args)[1])
    base = times(6, 1e6, LogGP(L=1e-6, o=1e-6, B=1e9))
    assert math.isfinite(base)
    assert times(6, 2e6, LogGP(L=1e-6, o=1e-6, B=1e9)) > base
    assert times(6, 1e6, LogGP(L=2e-6, o=1e-6, B=1e9)) > base
    assert times(6, 1e6, LogGP(L=1e-6, o=2e-6, B=1e9)) > base
    assert times(6, 1e6, LogGP(L=1e-6, o=1e-6, B=2e9)) < base
    reducing = times(6, 1e6, LogGP(L=1e-6, o=1e-6, B=1e9, gamma=1e-8))  # so slow that no pipeline hides it
    assert (reducing > base) == OPERATIONS[facts["operation"]].reduces


@pytest.mark.parametrize("name", COLLECTIVES)
def test_the_docstring_has_its_sections_and_the_cost_in_its_first_line(name):
    doc = inspect.getdoc(COLLECTIVES[name].build) or ""
    for section in ("Parameters", "Returns", "References"):
        assert f"\n{section}\n{'-' * len(section)}\n" in doc, section
    for parameter in COLLECTIVES[name].parameters.keys() - {BLOCKING}:
        assert re.search(rf"^{parameter} : ", doc, re.MULTILINE), parameter
    first_line = doc.split("\n", 1)[0]
    assert re.search(r"S/B|S/\(\w+B\)", first_line), first_line


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_parameter_is_annotated_and_the_first_is_the_number_of_ranks(name):
    hints = typing.get_type_hints(COLLECTIVES[name].build)
    assert hints["return"] is Schedule
    assert hints.keys() - {"return"} == COLLECTIVES[name].parameters.keys()
    assert next(iter(COLLECTIVES[name].parameters)) == "n_ranks"
    assert all(p.default is not p.empty for p in list(COLLECTIVES[name].parameters.values())[1:])


@pytest.mark.sample(1, each="name")
@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize(
    ("n_ranks", "message"),
    [
        (0, "needs at least 1 rank, got n_ranks=0"),
        (-3, "needs at least 1 rank, got n_ranks=-3"),
        (2.0, "n_ranks must be a whole number, got 2.0"),
        ("4", "n_ranks must be a whole number, got '4'"),
        (MAX_RANKS + 1, f"is built for at most {MAX_RANKS} ranks, got n_ranks={MAX_RANKS + 1}"),
    ],
)
def test_ranks_that_make_no_sense_are_refused(name, n_ranks, message):
    with pytest.raises(InputError, match=f"^{name}:? {re.escape(message)}$"):
        COLLECTIVES[name].build(n_ranks)


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if "n_chunks" in COLLECTIVES[name].parameters])
@pytest.mark.parametrize(
    ("n_chunks", "message"),
    [(0, "needs at least 1 chunk, got n_chunks=0"), (MAX_CHUNKS + 1, f"is built for at most {MAX_CHUNKS} chunks")],
)
def test_chunks_that_make_no_sense_are_refused(name, n_chunks, message):
    with pytest.raises(InputError, match=f"{name} {message}"):
        COLLECTIVES[name].build(4, n_chunks=n_chunks)


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if "root" in COLLECTIVES[name].parameters])
@pytest.mark.parametrize("root", [-1, 4])
def test_a_root_that_is_no_rank_is_refused(name, root):
    with pytest.raises(InputError, match=rf"{name}: root must be a rank 0\.\.3, got {root}"):
        COLLECTIVES[name].build(4, root=root)
