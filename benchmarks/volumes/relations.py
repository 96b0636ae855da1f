"""Relations between predictions: what must stay the same, be scaled, or not be less, whatever the number is."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import commsim as cs
from collectives import COLLECTIVES
from commsim.cli import main
from commsim.core.errors import InputError
from switch_model.systems import SYSTEMS

from .questions import Question

Relation = Callable[[Question], str | None]
RELATIONS: dict[str, Relation] = {}
CLOSE, EXACT = 1e-9, 0.0
# Packets count whole picoseconds, and may round each of a chain of them.
ROUNDED_S = 100e-12
# Packets of one moment go in the order of their flows, which numbers of hosts decide (tests/symmetries).
ORDER_OF_PACKETS = 0.03
# Pieces and partitions are cut by rules of the size; on paper ports serve in the order of readiness (tests/symmetries).
OF_PIECES, OF_PORTS = 0.035, 0.045
PIECES = {"n_chunks", "n_partitions"}
# Switches whose units take a constant time, which no scaling of a network scales.
WITH_UNITS = {"flare", "iswitch", "sharp"}
FLOWS = ("flow", "alpha-beta", "closed-form")
APART = ("star", "fully_connected")


def relation(check: Relation) -> Relation:
    """Register a relation: it returns what is wrong, nothing, or None where it says nothing of the question."""
    RELATIONS[check.__name__] = check
    return check


def differ(found: float, wanted: float, what: str, rel: float = CLOSE, abs_tol: float = 0.0) -> str:
    """Return what two numbers are that should be one."""
    is_same = found == wanted or math.isclose(found, wanted, rel_tol=rel, abs_tol=abs_tol)
    return "" if is_same else f"{what}: {found!r} in place of {wanted!r}"


def answered(words: list[str]) -> Any:
    """Return the JSON of a command line.

    Raises
    ------
    InputError
        If it is refused.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*words, "--json", "-"])
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code:
        raise InputError(err.getvalue().strip())
    return json.loads(out.getvalue())


def _is_cut(question: Question) -> bool:
    """Whether a rule of the size says into how many pieces it is cut."""
    return not PIECES.isdisjoint(COLLECTIVES[question.collective].parameters)


def _slack(question: Question) -> float:
    return max(1e-12, _is_cut(question) * OF_PIECES, (question.engine == "alpha-beta") * OF_PORTS)


def _is_named(question: Question, names: tuple[str, ...]) -> bool:
    return question.topology.startswith(names)


@relation
def size_and_rate(question: Question) -> str | None:
    """As many times the bytes at as many times the rate, without latency: the same time."""
    if question.engine == "packet" or question.is_in_switch or _is_cut(question):
        return None
    question = question._replace(latency=0, overhead=0)
    k = question.draw.choice((2, 4, 8))
    size = question.size
    return differ(
        question._replace(rate=question.rate * k).time(size=size * k), question.time(), f"size and rate x {k}"
    )


@relation
def times(question: Question) -> str | None:
    """All times twice as long, and all rates half: twice the time."""
    if question.collective in WITH_UNITS:
        return None
    other = question._replace(rate=question.rate / 2, latency=question.latency * 2, overhead=question.overhead * 2)
    return differ(other.time(), 2 * question.time(), "twice as slow", CLOSE, ROUNDED_S * (question.engine == "packet"))


@relation
def more_bytes(question: Question) -> str | None:
    """More bytes take no less time."""
    size = question.size + question.draw.choice((1, 4, question.size, question.size // 3 + 1))
    before, after = question.time(), question.time(size=size)
    return "" if after >= before * (1 - _slack(question)) else f"{size} B take {after!r}, {question.size} B {before!r}"


@relation
def more_rate(question: Question) -> str | None:
    """Faster links take no more time."""
    k = question.draw.choice((1.01, 1.5, 2, 10))
    before, after = question.time(), question._replace(rate=question.rate * k).time()
    return "" if after <= before * (1 + _slack(question)) else f"rate x {k} takes {after!r}, before {before!r}"


@relation
def less_latency(question: Question) -> str | None:
    """Shorter cables take no more time."""
    before, after = question.time(), question._replace(latency=question.latency / 2).time()
    slack = max(_slack(question), ORDER_OF_PACKETS * (question.engine == "packet"))
    return "" if after <= before * (1 + slack) else f"half the latency takes {after!r}, before {before!r}"


@relation
def less_overhead(question: Question) -> str | None:
    """Messages that cost less take no more time."""
    before, after = question.time(), question._replace(overhead=question.overhead / 4).time()
    slack = max(_slack(question), ORDER_OF_PACKETS * (question.engine == "packet"))
    return "" if after <= before * (1 + slack) else f"a quarter of the overhead takes {after!r}, before {before!r}"


@relation
def renumbered(question: Question) -> str | None:
    """Equal hosts may change places."""
    if not _is_named(question, APART):
        return None
    n_hosts = len(cs.load_network(question.network).hosts)
    order = question.draw.sample(range(n_hosts), question.n_ranks)
    rel = ORDER_OF_PACKETS if question.engine == "packet" else 1e-12
    return differ(question.time(placement=order), question.time(), f"on hosts {order}", rel)


@relation
def renamed(question: Question) -> str | None:
    """Hosts and switches of other names, in the same order."""
    import dataclasses

    network = cs.load_network(question.network)
    other = dataclasses.replace(network, nodes=tuple(f"node-{i * 7}" for i in range(network.n_nodes)), name="renamed")
    return differ(question.time(network=other), question.time(network=network), "with other names", EXACT)


@relation
def units(question: Question) -> str | None:
    """Write the same quantities in other units."""
    network = f"{question.topology},bandwidth={question.rate / 8!r}GB/s,latency={question.latency / 1000!r}us"
    other = question.ask(network=network, size=f"{question.size}B", overhead=f"{question.overhead / 1000!r}us")
    return differ(other.time, question.time(), "in other units", 1e-12)


@relation
def doors(question: Question) -> str | None:
    """Ask the command line and Python: the same to the last bit."""
    words = ["run", question.collective, "--topology", question.network, "--ranks", str(question.n_ranks), "--engine",
             question.engine, "--overhead", f"{question.overhead!r}ns", "--size", str(question.size)]  # fmt: skip
    (row,) = answered(words)["results"]
    found = question.ask()
    wrong = [differ(row[key], value, key, EXACT) for key, value in
             (("time_s", found.time), ("n_ranks", found.n_ranks), ("bytes_on_wire", found.bytes_on_wire))]  # fmt: skip
    return next(filter(None, wrong), "")


@relation
def in_a_file(question: Question) -> str | None:
    """Put the network into a file, of any of our forms."""
    path = f"network-{question.seed}.{question.draw.choice(('toml', 'json', 'npz'))}"
    try:
        cs.save(cs.load_network(question.network), path)
        return differ(question.time(network=path), question.time(), f"of {path}", EXACT)
    finally:
        Path(path).unlink(missing_ok=True)


@relation
def many_sizes(question: Question) -> str | None:
    """Several sizes of one question, in any order, are the same as one by one."""
    if question.metadata["operation"] == "barrier":  # of which sizes have no effect
        return None
    sizes = [question.size, question.size * 2, max(1, question.size // 5)]
    question.draw.shuffle(sizes)
    scenario = cs.scenario_of(question.collective, question.network, **question.options())
    found = [one.time for one in cs.solve(scenario, sizes).results]
    wrong = [differ(time, question.time(size=size), f"{size} B among {sizes}", EXACT)
             for time, size in zip(found, sizes, strict=True)]  # fmt: skip
    return next(filter(None, wrong), "")


@relation
def one_group(question: Question) -> str | None:
    """One group of all ranks is no group."""
    return differ(question.time(groups=[list(range(question.n_ranks))]), question.time(), "one group", 1e-12)


def _jobs(question: Question, network: str, ranks: list[str], folder: str = ".") -> list[Any]:
    path = Path(folder) / f"jobs-{question.seed}.toml"
    path.write_text("".join(
        f'[[job]]\ncollective = "{question.collective}"\nranks = "{one}"\nsize = "{question.size}B"\n' for one in ranks
    ), encoding="utf-8")  # fmt: skip
    try:
        options = question.options(n_ranks=None)
        return list(cs.solve(cs.scenario_of(None, network, jobs=str(path), **options)).results)
    finally:
        path.unlink()


@relation
def job_alone(question: Question) -> str | None:
    """Ask for a file of one job."""
    (row,) = _jobs(question, question.network, [f"0-{question.n_ranks - 1}" if question.n_ranks > 1 else "0"])
    return differ(row.time, question.time(), "as a job", EXACT)


@relation
def jobs_apart(question: Question) -> str | None:
    """Two jobs that share no link cost what each costs alone."""
    n = question.n_ranks
    if n < 2 or not _is_named(question, ("star",)) or question.has_helpers:
        return None
    network = question._replace(topology=f"star:n_hosts={2 * n}").network
    rows = _jobs(question, network, [f"0-{n - 1}", f"{n}-{2 * n - 1}"])
    alone = question.time(network=network, placement=list(range(n)))
    rel = ORDER_OF_PACKETS if question.engine == "packet" else CLOSE
    wrong = [differ(row.time, alone, f"job {i} of two apart", rel) for i, row in enumerate(rows)]
    return next(filter(None, wrong), "")


@relation
def nothing(question: Question) -> str | None:
    """Options that change nothing."""
    draw, name = question.draw, cs.load_network(question.network).nodes[0]
    changes: list[dict[str, Any]] = [
        {"scale": [f"link:{name}:*=1"]}, {"fail": ["links:0"]}, {"iterations": 1}, {"placement": "packed"},
        {"placement": list(range(question.n_ranks))}, {"trace": True}, {"recv_overhead": "0ns"}, {"start_jitter": "0s"},
    ]  # fmt: skip
    change = draw.choice(changes)
    return differ(question.time(**change), question.time(), f"with {change}", 1e-12)


@relation
def methods(question: Question) -> str | None:
    """Every way of the flow engine has one time."""
    if question.engine != "flow":
        return None
    return differ(question.time(method="events"), question.time(), "by events", 1e-9)


@relation
def bound(question: Question) -> str | None:
    """Nothing takes less than the lower bound, wherever ranks stand."""
    costs = "0ns" if question.collective in SYSTEMS else f"{question.overhead!r}ns"
    operation = question.metadata["operation"]
    least = cs.lower_bound(operation, question.network, n_ranks=question.n_ranks, overhead=costs, anywhere=True)
    found, time = least.time(question.size), question.time()
    return "" if time >= found * (1 - CLOSE) else f"takes {time!r}, and the bound is {found!r}"


@relation
def ranked(question: Question) -> str | None:
    """Rankings are in order, and have the times that predictions have."""
    names = [question.collective, question.draw.choice(("ring_all_reduce", "direct_all_to_all", "ring_all_gather"))]
    operation = question.metadata["operation"]
    names = [name for name in dict.fromkeys(names) if COLLECTIVES[name].metadata["operation"] == operation]
    if question.engine not in ("flow", "alpha-beta") or question.n_ranks < 2:
        return None
    options = question.options()
    by_size = cs.rank(operation, question.network, question.size, algorithms=names, **options).by_size
    (rows,) = by_size.values()  # a barrier has no size
    found = [result.time for _, result in rows]
    if found != sorted(found):
        return f"ranking of {names} is not in order: {found}"
    wrong = [differ(result.time, question._replace(collective=name).time(), f"{name} in a ranking", EXACT)
             for name, result in rows if name in names]  # fmt: skip
    return next(filter(None, wrong), "")


@relation
def timeline(question: Question) -> str | None:
    """Transfers end when the collective does at the latest, and none begins before it or ends before it begins."""
    if question.engine == "closed-form" or question.n_ranks < 2:
        return None
    found = question.ask(trace=True)
    rows = found.timeline()
    start, done = np.asarray(rows["start_s"]), np.asarray(rows["done_s"])
    if len(start) and ((start < 0).any() or (done < start).any()):
        return f"transfers from {start.min()!r}, of {(done - start).min()!r} s"
    return differ(float(done.max(initial=0.0)), found.time, "end of the last transfer", 1e-9)


@relation
def bytes_sent(question: Question) -> str | None:
    """Twice the bytes are twice the bytes on all links, in the engines that have no packets."""
    if question.engine == "packet" or question.is_in_switch or question.size % 16 or _is_cut(question):
        return None
    once, twice = question.ask().bytes_on_wire, question.ask(size=2 * question.size).bytes_on_wire
    return differ(twice, 2 * once, "bytes on the wire of twice the size", 1e-9)


@relation
def engines(question: Question) -> str | None:
    """Rings on a star share no link: flows, paper and closed forms have one time, packets at least that."""
    if question.n_ranks < 2 or not question.collective.startswith("ring_") or question.collective.endswith("_v"):
        return None
    question = question._replace(topology=f"star:n_hosts={question.n_ranks}")
    flow = question.time(engine="flow")
    wrong = [
        differ(question.time(engine=one), flow, f"{one} beside flow", CLOSE) for one in ("alpha-beta", "closed-form")
    ]
    packet = question.time(engine="packet", size=min(question.size, 2**17))
    flow = question.time(engine="flow", size=min(question.size, 2**17))
    if packet < flow * (1 - CLOSE) - ROUNDED_S:
        wrong.append(f"packets take {packet!r}, and flows {flow!r}")
    return next(filter(None, wrong), "")


@relation
def twice(question: Question) -> str | None:
    """Ask the same question again, after another one."""
    first = question.time()
    with contextlib.suppress(InputError):
        question.time(size=question.size + 7)
    return differ(question.time(), first, "again", EXACT)
