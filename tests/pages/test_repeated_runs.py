"""Results simulated again: by their own scenario, on their own clock, and refused where they differ."""

import dataclasses

import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.pages.repeated_runs import MAX_RUNS, repeated, repeated_all
from commsim.pages.simulated_run import simulate_run
from commsim.prediction.build import prepare
from commsim.prediction.scenario import Wish

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


def solution(collective="ring_all_reduce", network=STAR, sizes=("1MiB",), **asked):
    return cs.solve(cs.scenario_of(collective, network, **({"overhead": "0us"} | asked)), sizes)


def test_a_time_that_is_another_one_now_is_refused():
    found = solution()
    other = dataclasses.replace(found.results[0], time=found.results[0].time * (1 + 1e-6))
    with pytest.raises(InputError, match=r"repeated, it takes 0\.00013\d+ s, not 0\.00013\d+ s: another version"):
        repeated(found, other)


def test_a_launch_comes_before_the_first_message_and_what_software_adds_is_spread_over_messages():
    found = solution("nccl_all_reduce", "dgx-h100", ["64MiB"])
    run = repeated(found, found.results[0])
    assert run.trace.done.max() == found.results[0].time
    launch = found.plan.at(2**26).before
    assert launch > 1e-6
    assert run.trace.start.min() == pytest.approx(launch)
    assert run.note.startswith(
        f"{launch * 1e6:.2f} us outside of messages come before the first; times of messages are "
    )
    assert (np.diff(np.stack([run.trace.start, run.trace.sent, run.trace.done]), axis=0) >= 0).all()


def test_late_starters_count_from_the_first_of_them():
    plan, wish = prepare("ring_all_reduce", STAR), Wish(start_jitter=1e-3, iterations=4, seed=7)
    known = plan.run(2**20, wish)
    run = simulate_run("late", plan, 2**20, wish, known.time)
    raw = plan.run(2**20, dataclasses.replace(wish, trace=True)).trace
    assert run.trace.done.max() == known.time < raw.done.max()
    np.testing.assert_allclose(raw.start - run.trace.start, raw.done.max() - known.time, rtol=1e-9)


def test_a_compressor_s_message_has_a_timeline_and_several_have_none():
    found = solution("ring_all_gather", compressor="top_k:density=0.01")
    run = repeated(found, found.results[0])
    assert run.trace.done.max() == found.results[0].time
    assert run.result.link_bytes.sum() == found.results[0].link_bytes.sum()
    np.testing.assert_allclose(run.n_bytes.sum(), found.results[0].bytes_on_wire)
    several = solution(compressor="power_sgd")
    with pytest.raises(InputError, match="power_sgd: 2 messages, one after the other, have no timeline"):
        repeated(several, several.results[0])


def test_of_many_results_the_first_are_shown_and_sizes_tell_them_apart():
    found = solution(sizes=[2**k for k in range(12, 12 + MAX_RUNS + 1)])
    runs, left_out = repeated_all([(found, result) for result in found.results])
    names = [run.name for run in runs]
    assert names == ["ring_all_reduce", *(f"ring_all_reduce, {size}" for size in ("8 KiB", "16 KiB", "32 KiB"))]
    assert left_out == {"ring_all_reduce, 64 KiB": f"only the first {MAX_RUNS} runs are shown in detail"}


def test_a_page_of_a_solution_says_what_it_says(tmp_path):
    pytest.importorskip("vl_convert")
    found = solution("switchml", sizes=["1MiB", "2MiB"], seed=3)
    cs.write_report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert found.said
    assert [text for text in map(str, found.said) if text not in page] == []
    assert all(repr(result.time) in page for result in found.results)


def test_only_auto_takes_the_engine_that_was_chosen():
    auto = Wish.of("auto", tolerance=0.1)
    assert auto.with_engine("flow") == Wish.of("flow")
    assert auto.with_engine("packet") == Wish.of("packet")
    assert Wish.of("packet", seed=3).with_engine("flow") == Wish.of("packet", seed=3)


def test_a_closed_form_has_no_timeline():
    with pytest.raises(InputError, match="a closed form has no single transfers"):
        cs.predict("ring_all_reduce", STAR, "1MiB", engine="closed-form", overhead="0us").timeline()
