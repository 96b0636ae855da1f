import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numeric_run import run_reference
from one_run import run_once
from thread_transport import ThreadTransport, World

from commsim.core.errors import BackendError, InputError
from commsim.prediction.build import prepare
from commsim.real import calibrate as calibration
from commsim.real.busy import QUIET, quiet_ones
from commsim.real.calibrate import Calibration, rising
from commsim.real.kept_passes import KeptPasses
from commsim.real.steps import TimedStep, exchange, schedule_of, start_sets, time_step, train, usual_steps

# A machine that is a formula: what each step takes, in seconds, by what it does.
START, PER_BYTE = 5e-6, 1e-10
FACTOR = {("copy", False): 1.0, ("copy", True): 1.6, ("reduce", False): 2.0, ("reduce", True): 2.5}
RELAYED, GAP, LOCAL = 1.4, 0.6, 0.3


def formula(step: TimedStep) -> float:
    if not step.ops:
        return START
    if step.ops == ("local",):
        return START + LOCAL * message(step.size)
    fresh = FACTOR[step.ops[0], step.two_way] * message(step.size)
    if len(step.ops) == 2:
        return START + fresh + RELAYED * FACTOR[step.ops[1], step.two_way] * message(step.size)
    if step.length > 1:
        return START + fresh * (1 + GAP * (step.length - 1))
    return START + fresh


def message(size: float) -> float:
    return 2e-6 + size * PER_BYTE


def calibrated(
    monkeypatch, noise: float = 0.0, busy=lambda _: 0.0, passes: int = 6, slow=(), memory: float = np.inf
) -> Calibration:
    rng, shares = np.random.default_rng(5), iter(range(1000))
    monkeypatch.setattr(
        calibration,
        "time_step",
        lambda _, step, **__: dict(slow).get(step, 1.0) * formula(step) * rng.lognormal(0, noise),
    )

    class Meter:
        def __init__(self, transport) -> None:
            pass

        def share(self) -> float:
            return busy(next(shares))

    monkeypatch.setattr(calibration, "Busy", Meter)
    transport = ThreadTransport(World(2), 0)
    found = Calibration(transport, usual_steps(memory))
    found.run(passes)
    return found


def test_passes_between_which_something_else_is_timed_count_all(monkeypatch) -> None:
    """Steps take three times as long in six of nine passes; what was timed between the passes did, too."""

    def time_of(**options) -> float:
        calibrated(monkeypatch, busy=lambda i: 0.0 if i < 9 else 0.5)  # sets the meter, and reads it six times
        passes = iter(range(1000))
        found = Calibration(ThreadTransport(World(2), 0), usual_steps(2.0**21), **options)
        for _ in range(9):
            factor = 1.0 if next(passes) < 3 else 3.0
            monkeypatch.setattr(calibration, "time_step", lambda _, step, by=factor: by * formula(step))
            found.run_pass()
        return float(found.network().curves.times("copy", True, False, 0.0, np.array([2.0**20]))[0][0])

    wanted = FACTOR["copy", True] * message(2.0**20)
    assert time_of(paired=True) == pytest.approx(3 * wanted, rel=1e-6)
    assert time_of() == pytest.approx(wanted, rel=1e-6)


def test_the_curves_of_a_machine_that_is_a_formula_are_the_formula(monkeypatch) -> None:
    curves = calibrated(monkeypatch).network().curves
    sizes = np.array([1024.0, 65536.0, 2.0**24])
    for (op, two_way), factor in FACTOR.items():
        for relayed in (False, True):
            wanted = factor * (RELAYED if relayed else 1.0) * np.array([message(size) for size in sizes])
            got, busy = curves.times(op, two_way, relayed, 0.0, sizes)
            np.testing.assert_allclose(got, wanted, rtol=1e-9)
            np.testing.assert_allclose(busy[:2], GAP * factor * np.array([message(s) for s in sizes[:2]]), rtol=1e-9)
    np.testing.assert_allclose(
        curves.times("local", False, False, 0.0, sizes)[0], LOCAL * np.array([message(s) for s in sizes]), rtol=1e-9
    )
    assert curves.start(1e6) == pytest.approx(START)
    assert not curves.mark


def test_collectives_of_that_machine_are_predicted_from_its_steps_alone(monkeypatch) -> None:
    network = calibrated(monkeypatch).network()
    m = 65536.0
    for name, size, wanted in (
        ("binomial_broadcast", m, message(m)),
        ("ring_all_gather", 2 * m, 1.6 * message(m)),
        ("ring_all_reduce", 2 * m, 2.5 * message(m) + RELAYED * 1.6 * message(m)),
    ):
        assert prepare(name, network).predict(size).time == pytest.approx(START + wanted, rel=1e-9), name


def test_noise_of_a_third_moves_whole_runs_by_less_than_a_tenth_in_the_median(monkeypatch) -> None:
    curves = calibrated(monkeypatch, noise=0.33, passes=10).network().curves
    sizes = 1024.0 * 2 ** np.arange(15)
    errors = [
        (curves.start(0.0) + curves.times(op, two_way, False, 0.0, sizes)[0])
        / [START + factor * message(size) for size in sizes]
        - 1
        for (op, two_way), factor in FACTOR.items()
    ]
    assert np.median(np.abs(errors)) < 0.1
    width = [(c.high - c.low) / c.seconds for c in curves.curves if c.step == "copy"]
    assert 0.5 < np.median(np.concatenate(width)) < 1.2  # 80 % of that noise is 0.85 wide


def test_disturbed_passes_are_made_again_and_left_out(monkeypatch) -> None:
    again = calibrated(monkeypatch, busy=lambda number: 0.5 if number == 2 else 0.01)
    assert len(again.busy) == 7
    assert not again.network().curves.mark


def test_a_machine_that_is_never_quiet_is_marked_and_not_waited_for(monkeypatch) -> None:
    busy = calibrated(monkeypatch, busy=lambda _: 0.4)
    assert len(busy.busy) == 6
    assert busy.network().curves.mark == "other processes took 40% of the cores"


def test_three_quiet_passes_say_more_than_ten_disturbed_ones() -> None:
    assert quiet_ones([0.5] * 7 + [0.0] * 3) == [7, 8, 9]
    assert quiet_ones([0.5] * 8 + [0.0] * 2) == list(range(10))
    assert quiet_ones([0.5, 0.0]) == [1]


def test_times_that_spread_widely_are_marked(monkeypatch) -> None:
    assert "times spread by" in calibrated(monkeypatch, noise=1.0).network().curves.mark


def test_one_step_that_was_disturbed_in_every_pass_is_named(monkeypatch) -> None:
    """It spreads by nothing, and all larger messages would inherit its time."""
    step = TimedStep(("copy",), True, 65536)
    disturbed = calibrated(monkeypatch, slow={step: 100.0}).network().curves
    found = re.fullmatch(r"messages of 65536 bytes took (\S+) times as long as those of (\d+)", disturbed.mark)
    assert found
    assert int(found[2]) > step.size
    assert float(found[1]) > 10


@pytest.mark.parametrize("noise", [2.0, 4.0])
def test_any_noise_gives_curves(monkeypatch, noise) -> None:
    curves = calibrated(monkeypatch, noise=noise, passes=1).network().curves
    assert all(np.isfinite(curve.seconds).all() for curve in curves.curves)


def test_rising_values_are_the_nearest_that_do_not_descend() -> None:
    from scipy.optimize import isotonic_regression

    values = np.random.default_rng(1).lognormal(0, 1, 40)
    got = rising(values)
    assert (np.diff(got) >= 0).all()
    np.testing.assert_allclose(np.log(got), isotonic_regression(np.log(values)).x, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(rising(np.sort(values)).round(12), np.sort(values).round(12))


@pytest.mark.parametrize("n_ranks", [2, 3, 4, 5])
def test_two_ways_every_rank_sends_and_receives_once_a_hop(n_ranks: int) -> None:
    for schedule in (
        schedule_of(TimedStep(("reduce", "copy"), True, 1024), n_ranks),
        exchange(n_ranks, over_sent=True),
        train(n_ranks, 2, all_pairs=True),
    ):
        transfers = schedule.expand()
        for hop in (0, 1):
            now = transfers[transfers["hop"] == hop]
            assert sorted(now["src"]) == sorted(now["dst"]) == list(range(n_ranks))
            assert (now["src"] != now["dst"]).all()


@pytest.mark.parametrize("n_ranks", [2, 3, 4, 5])
def test_one_way_no_rank_sends_and_receives_at_once(n_ranks: int) -> None:
    first, then = schedule_of(TimedStep(("reduce", "copy"), False, 1024), n_ranks).expand().reshape(2, -1)
    assert not set(first["src"]) & set(first["dst"])
    assert list(first["src"]) == list(then["dst"])


def test_cases_of_the_steps_are_those_of_their_names(monkeypatch) -> None:
    """The engine finds in each schedule the case under which its time is kept."""
    from commsim.engine.message_costs import RELAYED as RELAYS
    from commsim.engine.message_costs import TWO_WAY

    network = calibrated(monkeypatch).network()
    for step in usual_steps():
        if step.ops not in ((), ("local",)) and step.length * step.size < 2**20 and not step.working_set:
            cases = prepare(schedule_of(step, 2), network).plan.cases
            last = cases[-1]
            assert bool(last & TWO_WAY) == step.two_way
            assert bool(last & RELAYS) == (len(step.ops) == 2)


@pytest.mark.parametrize("ops", [("copy",), ("reduce", "reduce"), ("local",), ("reduce", "copy")])
def test_steps_move_what_they_say(ops) -> None:
    schedule = schedule_of(TimedStep(ops, True, 16, length=3), 2)
    inputs = np.random.default_rng(0).standard_normal((2, 2 * schedule.n_chunks)).astype(np.float32)
    got = World(2).run(lambda t: run_once(t, schedule, inputs[t.rank]))
    np.testing.assert_array_equal(np.stack(got), run_reference(schedule, inputs))


def test_all_ranks_get_the_same_times() -> None:
    step = TimedStep(("reduce", "copy"), True, 4096)
    first, second = World(2).run(lambda t: time_step(t, step, warmup=1, repeats=2))
    assert first == second > 0


def test_steps_are_timed_in_all_the_memory_that_they_name() -> None:
    for step in usual_steps():
        schedule = schedule_of(step, 2)
        assert schedule.n_chunks * step.size >= step.working_set
    assert start_sets()[0] == 2 * 1024
    assert QUIET < 0.5


def test_a_calibration_for_small_runs_times_fewer_steps_and_predicts_them_as_a_whole_one(monkeypatch) -> None:
    memory, sizes = 2.0**20, 1024.0 * 2 ** np.arange(10)
    assert len(usual_steps(memory)) < 0.8 * len(usual_steps())
    assert max(step.working_set for step in usual_steps(memory) if step.size > 1024) == 8 << 20
    whole, part = (calibrated(monkeypatch, noise=0.0, memory=m).network().curves for m in (np.inf, memory))
    for case in itertools.product(("copy", "reduce", "local"), (False, True), (False, True), (0.0, memory / 2, memory)):
        np.testing.assert_array_equal(whole.times(*case, sizes), part.times(*case, sizes))
    assert whole.start(memory) == part.start(memory)


def test_one_rank_alone_cannot_be_calibrated() -> None:
    with pytest.raises(BackendError, match="at least 2 ranks: start it with mpirun -n 2"):
        Calibration(ThreadTransport(World(1), 0))


def gone_on(path) -> list:
    """Return the calibrations of two ranks that take over what is kept, or what they raise."""
    world = World(2)

    def one(rank: int):
        fresh = Calibration(ThreadTransport(world, rank))
        try:
            KeptPasses(fresh, path).go_on()
        except InputError as error:
            return error
        return fresh

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(2)))


def test_a_calibration_that_was_cut_off_goes_on_from_its_passes(monkeypatch, tmp_path) -> None:
    """It announced 823 s, and kept nothing."""
    path = tmp_path / "here.toml"
    cut = calibrated(monkeypatch, noise=0.1, passes=3, busy=lambda i: 0.01 * i)
    kept = KeptPasses(cut, path)
    kept.write()
    for later in gone_on(path):
        assert later.busy == cut.busy == [0.0, 0.01, 0.02]
        np.testing.assert_array_equal(later.timed(), cut.timed())
        later.run(3)  # which are there
        assert len(later.busy) == 3
        later.run(5)
        assert len(later.busy) == 5
    assert gone_on(path)[0].network().curves == cut.network().curves
    kept.remove()
    assert list(tmp_path.iterdir()) == []
    assert [len(one.busy) for one in gone_on(path)] == [0, 0]


def test_passes_of_another_machine_are_measured_anew_and_damaged_ones_refused_by_all_ranks(monkeypatch, tmp_path):
    path = tmp_path / "here.toml"
    kept = KeptPasses(calibrated(monkeypatch, passes=2), path)
    kept.write()
    tree = json.loads(kept.path.read_text())
    kept.path.write_text(json.dumps({**tree, "machine": "another"}))
    assert [len(one.busy) for one in gone_on(path)] == [0, 0]
    tree["passes"][1]["times_s"][0] = -1.0
    for wrong in (tree, {**tree, "passes": [{"busy": 0.0}]}, {**tree, "passes": [{"busy": 0.0, "times_s": [1.0]}]}):
        kept.path.write_text(json.dumps(wrong))
        for error in gone_on(path):
            assert re.search(r"here\.toml\.passes\.json: passes must have \d+ times above 0", str(error))
