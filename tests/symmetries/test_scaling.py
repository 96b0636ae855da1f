"""Half the latencies and overheads and twice the rates: half the time, if constants of hardware are scaled alike."""

import dataclasses

import pytest
from drawn_questions import ENGINES, Question, drawn_questions

import commsim as cs
from collectives import COLLECTIVES
from commsim.nccl import gpu_costs
from switch_model.system import MAX_TIMES
from switch_model.systems import SystemSpec

# Fixed times and rates. Of a switch system: occupation and latency of its units, and its timeout.
OF_SWITCHES = tuple(MAX_TIMES)
# Of NCCL's primitives and plugins: launch, hops, slices, loops, exchanges; rates of a channel and of a copying CPU.
NCCL_TIMES = ("launch", "hop_ll", "hop_ll128", "hop_simple", "slice", "nvls_loop", "nvls_head", "p2p_ll", "p2p_simple",
              "p2p_chunk", "announce", "post")  # fmt: skip
NCCL_RATES = ("rate_ll", "rate_ll128", "rate_simple", "nvls_rate", "copy")
# Collectives whose switches take time to add.
WITH_UNITS = {"flare", "iswitch", "sharp"}
STAR = "star:n_hosts=9,bandwidth=100Gbps,latency=2us"
MACHINES = "dgx-h100@star:machines=2"
PINNED = (
    "nccl_all_reduce:algorithm=ring,protocol=ll128,channels=8",
    "nccl_all_reduce:algorithm=tree,protocol=simple,channels=4",
    "nccl_all_gather:algorithm=ring,protocol=ll,channels=4",
    "nccl_broadcast:algorithm=ring,protocol=simple,channels=4",
)


def twice_as_fast(network):
    """Return a network on which everything takes half the time."""
    halved = {name: getattr(network, name) / 2 for name in ("latency", "overhead", "recv_overhead", "gamma")}
    return dataclasses.replace(network, bandwidth=network.bandwidth * 2, **halved)


def half(time, engine="flow"):
    """Return half of a time, within 1e-9; packets count whole picoseconds, and may round each of a chain of them."""
    return pytest.approx(time / 2, rel=1e-9, abs=100e-12 if engine == "packet" else 0.0)


def scaled(value, times, rates=()):
    """Return a value of hardware with half the times and twice the rates."""
    factors = dict.fromkeys(times, 0.5) | dict.fromkeys(rates, 2.0)
    return dataclasses.replace(
        value, **{name: getattr(value, name) * by for name, by in factors.items() if hasattr(value, name)}
    )


@pytest.fixture
def faster_switches(monkeypatch):
    """Return a function after whose call all switch systems take half the time."""
    of_system = SystemSpec.at

    def start():
        monkeypatch.setattr(SystemSpec, "at", lambda spec, *size: scaled(of_system(spec, *size), OF_SWITCHES))

    return start


@pytest.fixture
def faster_gpus(monkeypatch):
    """Return a function after whose call NCCL's primitives and plugins take half the time."""
    read = gpu_costs.read_costs

    def read_scaled(text):
        costs = read(text)
        return dataclasses.replace(costs, **{
            name: {key: scaled(one, NCCL_TIMES, NCCL_RATES) for key, one in getattr(costs, name).items()}
            for name in ("primitives", "plugins")
        })  # fmt: skip

    def start():
        monkeypatch.setattr(gpu_costs, "read_costs", read_scaled)
        gpu_costs.costs.cache_clear()

    yield start
    monkeypatch.undo()
    gpu_costs.costs.cache_clear()


@pytest.mark.parametrize("engine", ENGINES)
def test_everything_twice_as_fast_takes_half_the_time(engine, faster_switches):
    asked = drawn_questions(engine)
    faster_switches()
    for question, answer in asked:
        again = question.ask(network=twice_as_fast(question.network)).time
        assert again == half(answer.time, engine), question


@pytest.mark.parametrize("engine", ENGINES)
def test_only_named_switches_have_constants(engine, faster_switches):
    """Without their constants scaled, times of these alone do not halve."""
    network = cs.scenario_of("ring_all_reduce", STAR, overhead="0us").network
    names = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["systems"]]
    asked = [Question(name, network, 8192, 8, engine) for name in names]
    assert {one.collective for one in asked} > WITH_UNITS

    def left():
        ratio = {one.collective: one.ask().time / one.ask(network=twice_as_fast(network)).time for one in asked}
        return {name for name, found in ratio.items() if found != pytest.approx(2, rel=1e-6)}

    assert left() == WITH_UNITS
    before = {one.collective: one.ask().time for one in asked}
    faster_switches()
    after = {one.collective: one.ask(network=twice_as_fast(network)).time for one in asked}
    assert after == {name: half(time, engine) for name, time in before.items()}


@pytest.mark.parametrize("collective", PINNED)
@pytest.mark.parametrize("network", ["dgx-h100", MACHINES])
def test_nccl_with_its_choices_pinned_takes_half_the_time(collective, network, faster_gpus):
    """Which algorithm, protocol and channels NCCL takes follows from constants of its own; these are given here."""
    slow = cs.scenario_of(collective, network, overhead="0us").network
    sizes, engines = ("16KiB", "4MiB"), ("flow", "alpha-beta")
    before = [cs.predict(collective, slow, size, engine=e, overhead="0us").time for size in sizes for e in engines]
    faster_gpus()
    after = [
        cs.predict(collective, twice_as_fast(slow), size, engine=e, overhead="0us").time
        for size in sizes
        for e in engines
    ]
    assert after == [half(time) for time in before]
