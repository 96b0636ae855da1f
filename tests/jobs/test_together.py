"""Jobs that share a network: what each gets alone, exact sums beside other traffic, and background load."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.jobs.background import WEB_SEARCH, draw_messages, mean_size
from commsim.jobs.composition import Background, read_composition
from commsim.jobs.several_jobs import prepare_jobs
from commsim.packets.transports.spraying import over_path
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"
TWO_RINGS = """
[[job]]
name = "left"
collective = "ring_all_reduce"
ranks = "0-3"
size = "256kB"
[[job]]
name = "right"
collective = "ring_all_reduce"
ranks = [4, 5, 6, 7]
size = "512kB"
start = "100us"
"""
SWITCH_AND_RING = """
[[job]]
collective = "{system}"
ranks = "0,1,4,5"
size = "256kB"
[[job]]
collective = "ring_all_reduce"
ranks = "2,6,3"
size = "256kB"
[[background]]
kind = "incast"
senders = 3
size = "64kB"
every = "40us"
until = "100us"
"""


def together(tmp_path, text, network=LEAF_SPINE, seed=0):
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    return prepare_jobs(read_composition(path), load_network(network), seed=seed)


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_job_alone_takes_the_paths_that_it_has_beside_others(tmp_path, engine, seed):
    """ECMP hashed it anew: beside a job on other racks it took 0.86 times as long as alone."""
    both = (("ring_all_reduce", "0-7"), ("direct_all_to_all", "8-15"))
    text = "".join(f'[[job]]\ncollective="{name}"\nranks="{ranks}"\nsize="1MB"\n' for name, ranks in both)
    found = together(tmp_path, text, "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps", seed)
    times = [result.time for result in found.predict(engine=engine)[0]]
    assert times == pytest.approx([found.alone(k).predict(engine=engine)[0][0].time for k in (0, 1)], rel=1e-9)


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_jobs_that_share_no_link_take_what_each_takes_alone(tmp_path, engine):
    found = together(tmp_path, TWO_RINGS)
    results, _, _ = found.predict(engine=engine)
    for result, entry in zip(results, found.entries, strict=True):
        star = f"star:n_hosts={len(entry.ranks)},bandwidth=100Gbps,latency=1us"
        alone = prepare("ring_all_reduce", star).predict(entry.size, engine=engine)
        assert result.time == pytest.approx(alone.time, rel=1e-9)


def test_weights_share_a_link_in_proportion_in_both_engines(tmp_path):
    text = "".join(
        f'[[job]]\nname="{name}"\ncollective="binomial_broadcast"\nranks=[{a},{b}]\nsize="4MB"\nweight={weight}\n'
        for name, a, b, weight in (("light", 0, 2, 1), ("heavy", 0, 1, 3))
    )
    for engine in ("flow", "packet"):
        light, heavy = together(tmp_path, text, "star:n_hosts=3,bandwidth=100Gbps,latency=1us").predict(engine=engine)[
            0
        ]
        # 3/4 of the rate for the heavy one, and then the whole rate for what is left: 4/3 and 2 times its time alone
        assert heavy.time / light.time == pytest.approx(2 / 3, rel=0.02)


@pytest.mark.parametrize(("system", "transport"), [("switchml", "window"), ("atp", "dctcp")])
def test_switches_add_up_exactly_beside_other_traffic(tmp_path, system, transport):
    found = together(tmp_path, SWITCH_AND_RING.format(system=system))
    results, took, ideal = found.predict(engine="packet", transport=over_path(transport))
    assert results[0].counters["exact"] == 1
    alone = found.alone(0).predict(engine="packet")[0][0]
    assert results[0].time > alone.time
    assert len(took) == 9
    assert (took > 0.999 * ideal).all()  # none faster than its bytes at the rate of its path
    again = found.predict(engine="packet", transport=over_path(transport))
    assert [r.time for r in again[0]] == [r.time for r in results]


def test_two_switch_jobs_alone_are_packets_too(tmp_path):
    text = "".join(f'[[job]]\nname="{n}"\ncollective="switchml"\nranks={r}\nsize="64kB"\n' for n, r in
                   (("a", [0, 1]), ("b", [2, 3])))  # fmt: skip
    results, _, _ = together(tmp_path, text).predict(engine="packet")
    assert [r.counters["exact"] for r in results] == [1, 1]


def test_priorities_go_first(tmp_path):
    text = "".join(
        f'[[job]]\nname="{name}"\ncollective="binomial_broadcast"\nranks=[0,{b}]\nsize="4MB"\npriority={p}\n'
        for name, b, p in (("second", 2, 1), ("first", 1, 0))
    )
    found = together(tmp_path, text, "star:n_hosts=3,bandwidth=100Gbps,latency=0s")
    second, first = found.predict()[0]
    assert (first.time, second.time) == pytest.approx((320e-6, 640e-6), rel=1e-9)
    second, first = found.predict(engine="packet")[0]
    on_wire = 320e-6 * 4178 / 4096
    assert (first.time, second.time) == pytest.approx((on_wire, 2 * on_wire), rel=0.01)


SWITCHES_AND_RING = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=10Gbps,latency=1us"


def at_priorities(tmp_path, *jobs):
    """Times in packets of jobs (collective, ranks, priority) that share leaves and the spine."""
    text = "".join(
        f'[[job]]\nname="{k}"\ncollective="{collective}"\nranks={ranks}\nsize="128kB"\npriority={priority}\n'
        for k, (collective, ranks, priority) in enumerate(jobs)
    )
    results, _, _ = together(tmp_path, text, SWITCHES_AND_RING).predict(engine="packet")
    assert all(r.counters.get("exact", 1) == 1 for r in results)
    return [r.time for r in results]


@pytest.mark.parametrize("other", ["switchml", "ring_all_reduce"])
def test_packets_of_a_switch_system_go_first_or_last(tmp_path, other):
    mine, others = [0, 1, 4, 5], [2, 6, 3, 7]
    (alone,) = at_priorities(tmp_path, ("switchml", mine, 0))
    equal, _ = at_priorities(tmp_path, ("switchml", mine, 3), (other, others, 3))
    first, after = at_priorities(tmp_path, ("switchml", mine, 0), (other, others, 1))
    last, before = at_priorities(tmp_path, ("switchml", mine, 2), (other, others, 1))
    # a packet that is being sent is not interrupted, at any of the hops
    assert alone <= first < 1.1 * alone
    assert 1.2 * alone < equal < last
    assert before < after
    assert at_priorities(tmp_path, ("switchml", mine, 0), (other, others, 0))[0] == equal


DGX = "dgx-h100:net=roce@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=8"


def nccl_beside(tmp_path, other, mine="0-15", others="16-31"):
    text = "".join(
        f'[[job]]\nname="{k}"\ncollective="{collective}"\nranks="{ranks}"\nsize="1MB"\n'
        for k, (collective, ranks) in enumerate((("nccl_all_reduce", mine), (other, others)))
    )
    return together(tmp_path, text, DGX)


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("other", ["nccl_all_reduce", "ring_all_reduce"])
def test_a_call_of_nccl_that_shares_no_link_has_its_launch_hops_and_rest(tmp_path, engine, other):
    found = nccl_beside(tmp_path, other)
    by_itself = [prepare(name, DGX, n_ranks=16).predict(1e6, engine=engine).time for name in ("nccl_all_reduce", other)]
    alone = [found.alone(k).predict(engine=engine)[0][0].time for k in (0, 1)]
    assert alone == pytest.approx(by_itself, rel=1e-12)
    assert [r.time for r in found.predict(engine=engine)[0]] == pytest.approx(by_itself, rel=1e-9)


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_calls_of_nccl_through_one_spine_share_its_links_but_not_their_launches(tmp_path, engine):
    found = nccl_beside(tmp_path, "nccl_all_reduce", "0-7,16-23", "8-15,24-31")
    alone = [found.alone(k).predict(engine=engine)[0][0].time for k in (0, 1)]
    together_times = [r.time for r in found.predict(engine=engine)[0]]
    for one, both in zip(alone, together_times, strict=True):
        assert 1.02 * one < both < 1.5 * one


def test_calls_of_nccl_together_leave_links_their_time():
    """What NCCL's formula has less than the messages is no more than the bytes of all calls leave."""
    network = load_network("dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2,hosts_per_leaf=16")
    groups = [[k, k + 8, k + 16, k + 24] for k in range(4)]
    found = solve(scenario_of("nccl_all_gather", network, groups=groups), [2.0**24]).results
    needed = (sum(result.link_bytes for result in found) / network.bandwidth).max()
    alone = (found[0].link_bytes / network.bandwidth).max()
    assert max(result.time for result in found) >= needed > 1.5 * alone


def test_background_load_is_what_was_asked_for():
    network = load_network("star:n_hosts=16,bandwidth=100Gbps")
    until, load = 20e-3, 0.4
    drawn = draw_messages(network, (Background("poisson", until, load, 1e6),), seed=1)
    expected = load * 16 * 12.5e9 * until / 1e6
    assert abs(len(drawn.start) - expected) < 4 * np.sqrt(expected)
    assert (drawn.src != drawn.dst).all()
    assert (np.diff(drawn.start) >= 0).all()
    web = draw_messages(network, (Background("poisson", until, load),), seed=1)
    spread = WEB_SEARCH[-1, 0] / np.sqrt(len(web.size))
    assert abs(web.size.mean() - mean_size(None)) < spread
    same, other = (draw_messages(network, (Background("poisson", until, load),), seed=s) for s in (1, 2))
    assert np.array_equal(same.size, web.size)
    assert not np.array_equal(other.size, web.size)


JOB = '[[job]]\ncollective = "ring_all_reduce"\nranks = "0-3"\nsize = "1MB"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"at least one \[\[job\]\]"),
        (JOB.replace("0-3", "0-9"), "ranks are different numbers 0..7"),
        (JOB.replace("0-3", "0,0"), "ranks are different numbers"),
        (JOB.replace('"0-3"', '"a"'), "ranks such as"),
        (JOB.replace("1MB", "0B"), "more than 0"),
        (JOB + "weight = 0\n", "above 0"),
        (JOB + 'sise = "1MB"\n', "did you mean size"),
        (JOB + JOB.replace("collective", 'name="0:ring_all_reduce"\ncollective'), "are called"),
        (JOB + '[[background]]\nkind="poisson"\nload=1.2\nuntil="1ms"\n', "at most 1"),
        (JOB + '[[background]]\nkind="poisson"\nload=0.6\nuntil="1ms"\n' * 2, "add up to 1.2"),
        (JOB + '[[background]]\nkind="poison"\nload=0.6\nuntil="1ms"\n', "poisson"),
        (JOB + '[[background]]\nkind="poisson"\nload=0.6\nsize="1B"\nuntil="1s"\n', "more than the 20000"),
        (JOB + '[[background]]\nkind="incast"\nsenders=9\nsize="1kB"\nuntil="1ms"\n', "needs 10 hosts"),
    ],
)
def test_a_file_that_cannot_be_run_says_what_would_be_right(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        together(tmp_path, text)


def test_the_command_line_prints_jobs_and_background(tmp_path, capsys):
    from commsim.cli import main

    path = tmp_path / "jobs.toml"
    path.write_text(SWITCH_AND_RING.format(system="switchml"))
    args = ["run", "--topology", LEAF_SPINE, "--jobs", str(path)]
    assert main([*args, "--engine", "packet"]) == 0
    out = capsys.readouterr().out
    assert "2 jobs and 9 background messages" in out
    assert "yes" in out
    assert main([*args, "ring_all_reduce"]) == 2
    assert main([*args, "--engine", "closed-form"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 2


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_background_has_a_priority_of_its_own(tmp_path, engine):
    """Smaller numbers go first: background that yields costs a job less than background that goes before it."""
    text = '[[job]]\ncollective = "ring_all_reduce"\nranks = "0,4,1,5"\nsize = "256kB"\n{}[[background]]\n'
    text += 'kind = "incast"\nsenders = 5\nsize = "64kB"\nevery = "20us"\nuntil = "100us"\n{}'
    times = [
        together(tmp_path, text.format(own, theirs)).predict(engine=engine)[0][0].time
        for own, theirs in (("", "priority = 1\n"), ("", ""), ("priority = 1\n", ""))
    ]
    assert times == sorted(set(times))
