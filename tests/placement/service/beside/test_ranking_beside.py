"""What new jobs cost beside those that run: the times are those of the command line, and no better start is left."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.placement.cluster import read_cluster
from commsim.placement.evaluation import evaluate
from commsim.placement.scores import ScoreSettings
from commsim.placement.service.beside import kept_jobs
from commsim.placement.service.beside.finalists_beside import LONGEST
from commsim.placement.service.beside.kept_jobs import KeptJobs, seeds_of, with_links
from commsim.placement.service.beside.ranking_beside import RankingBeside
from commsim.placement.service.limits import require_work
from commsim.training.sharing.periodic import read_jobs

GENERATORS = ("packed", "spread", "random")


def drawn_jobs(rng, n, hosts, gpus):
    """Jobs of one to three phases on pairs of GPUs that are drawn, some with a start."""
    seats = [f"h{i}" for i in rng.permutation(np.repeat(np.arange(hosts), gpus // 2))]
    rows = []
    for i in range(n):
        period = float(rng.choice([80.0, 100.0, 117.3, 150.0, 240.0]))
        edges = np.sort(rng.uniform(0, period, 2 * int(rng.integers(1, 4)))).round(3).reshape(-1, 2).tolist()
        phases = [{"offset_ms": a, "dur_ms": round(b - a, 3), "rate_Gbps": float(rng.integers(10, 80))}
                  for a, b in edges if b - a > 0.1]  # fmt: skip
        if phases and rng.random() < 0.3:
            phases[0]["overlap_ms"] = phases[0]["dur_ms"] / 2
        taken = [seats.pop() for _ in range(int(rng.integers(2, 5)))]
        row = {"job": f"j{i}", "gpus": 2 * len(taken), "iter_time_ms": period, "phases": phases}
        rows.append(row | {"placement": [name for name in taken for _ in range(2)]})
        if rng.random() < 0.3:
            rows[-1]["start_ms"] = round(float(rng.uniform(0, period / 2)), 3)
    return read_jobs(rows)


def drawn(seed, n=7):
    rng = np.random.default_rng(seed)
    spec = f"leaf_spine:n_leaves=4,n_spines={rng.integers(1, 3)},hosts_per_leaf=4,bandwidth=50Gbps"
    cluster = read_cluster({"topology": {"spec": spec}, "hosts": {"gpus": 4}})
    *running, new = drawn_jobs(rng, n, 16, 4)
    return cluster, running, dataclasses.replace(new, placement=None, start=None)


def kept_on(cluster, running):
    seeds = seeds_of(cluster)
    return KeptJobs.none(cluster, seeds).changed(with_links(cluster, running, seeds)), seeds


@pytest.mark.parametrize("longest", [0.0, LONGEST], ids=["formula", "simulated"])
@pytest.mark.parametrize("seed", [*range(4), 38])
def test_times_are_those_of_all_jobs_at_their_starts(seed, longest):
    """A simulation has the same links in the same order, so that even jobs that drift take the same to the last bit.

    Of 38, links in another order are 1.5e-3 apart; of 6, a start that was read from JSON, in nanoseconds, is 1.4e-2.
    """
    cluster, running, new = drawn(seed)
    kept, seeds = kept_on(cluster, running)
    ranking = RankingBeside(kept, seeds, [new])
    ranked = ranking.rank(4, GENERATORS, 0, longest)
    of_row = {} if longest else {"simulated": 0}
    for one in ranked:
        row = ranking.row(one)
        assert not (longest and one.is_estimate)
        placed = [job.job for job in kept.jobs.values()]
        placed.append(dataclasses.replace(one.jobs[0], start=float(one.shift[-1])))
        settings = ScoreSettings(seed=row["hash_seed"], hashes=1, **of_row)
        after, before = (evaluate(cluster, jobs, settings=settings) for jobs in (placed, placed[:-1]))
        for name, ms in row["predicted_iteration_ms"].items():
            assert ms == pytest.approx(after.predicted[name] * 1e3, rel=1e-11)
            assert row["alone_iteration_ms"][name] == pytest.approx(after.alone[name] * 1e3, rel=1e-9)
        lost = {name: (after.predicted[name] - time) / after.periods[name] for name, time in before.predicted.items()}
        assert row["cost"]["added"] == pytest.approx(
            {k: v for k, v in lost.items() if abs(v) > 1e-6}, rel=1e-6, abs=1e-9
        )
        own = after.predicted[new.name] / new.period
        assert row["cost"]["own"] == pytest.approx({new.name: own}, abs=1e-9)
        assert row["cost"]["total"] == pytest.approx(own - 1 + sum(lost.values()), abs=1e-9)
        links = {one.link: one.score for one in after.links if new.name in one.jobs}
        assert {one["link"]: one["score"] for one in row["links"]} == pytest.approx(links, abs=1e-9)


def test_candidates_that_would_take_too_long_to_simulate_are_said_to_be_estimates():
    """Of the four, one costs what the job loses by its own links: there nobody waits for another."""
    cluster, running, new = drawn(3)
    kept, seeds = kept_on(cluster, running)
    ranking = RankingBeside(kept, seeds, [new])
    ranked = ranking.rank(4, GENERATORS, 0, 0.0)
    assert [one.is_estimate for one in ranked] == [False, True, True, True]
    assert any(line.startswith("3 of 4 candidates are estimates") for line in ranking.remarks(ranked))
    assert not any("estimates" in line for line in ranking.remarks(ranking.rank(4, GENERATORS, 0)))


def test_jobs_that_come_one_by_one_are_as_jobs_that_come_together():
    cluster, running, new = drawn(3)
    together, seeds = kept_on(cluster, running)
    each = KeptJobs.none(cluster, seeds)
    for job in sorted(running, key=lambda job: job.start is None):  # as all at once: those with a start first
        each = each.changed(with_links(cluster, [job], seeds))
        each.of(0)
    extra = with_links(
        cluster, [dataclasses.replace(new, name="gone", placement=("h0", "h5", *["h9"] * (new.n_gpus - 2)))], seeds
    )
    each = each.changed(extra)
    each.of(1)
    each = each.changed({}, ("gone",))
    for h in range(len(seeds)):
        for name, kept in together.jobs.items():
            i, j = list(together.jobs).index(name), list(each.jobs).index(name)
            assert kept.job.start == each.jobs[name].job.start
            for field in ("alone", "final"):
                assert getattr(together.of(h)[2], field)[i] == pytest.approx(
                    getattr(each.of(h)[2], field)[j], rel=1e-12
                )


def two_racks(n_gpus=2):
    spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=50Gbps"
    return read_cluster({"topology": {"spec": spec}, "hosts": {"gpus": n_gpus}})


def across(name, offset, up, period, rate, hosts, **more):
    phases = [{"offset_ms": offset, "dur_ms": up, "rate_Gbps": rate}]
    row = {"job": name, "gpus": 2, "iter_time_ms": period, "phases": phases, "placement": hosts}
    return read_jobs([row | more])[0]


def test_a_start_is_in_the_middle_of_the_window_in_which_nothing_is_lost():
    cluster = two_racks()
    old = across("old", 0.0, 60.0, 200.0, 40.0, ["h0", "h4"], start_ms=10.0)
    new = across("new", 100.0, 40.0, 200.0, 40.0, ["h1", "h5"])
    kept, seeds = kept_on(cluster, [old])
    row = (ranking := RankingBeside(kept, seeds, [new])).row(ranking.rank(1, GENERATORS, 0)[0])
    # the phase of the new one may begin from 70 to 170 ms: its start is 170 to 270 less its offset of 100
    assert row["shifts_ms"]["new"] == pytest.approx(20.0, abs=1e-6)
    assert row["window_ms"]["new"] == pytest.approx(100.0, abs=1e-6)
    assert row["windows_ms"]["new"] == pytest.approx([-30.0, 70.0], abs=1e-6)  # under the names of `commsim place`
    assert row["slack_ms"]["new"] == pytest.approx(50.0, abs=1e-6)
    apart = RankingBeside(kept, seeds, [across("apart", 0.0, 40.0, 200.0, 40.0, ["h2", "h2"])])
    assert apart.row(apart.rank(1, GENERATORS, 0)[0])["windows_ms"] == {}
    assert row["cost"]["total"] == 0.0


def test_a_window_is_that_of_bins_where_one_of_several_hashes_has_too_many_edges(monkeypatch):
    found = iter(([0.25, 0.5], [np.nan]))
    monkeypatch.setattr(kept_jobs, "starts_within", lambda *_: np.array(next(found)))
    met = SimpleNamespace(row={"whole": [1000]}, quantum=1e-3)
    assert kept_jobs._exact_window(met, [((), ()), ((), ())], 0, 3, 2) is None


@pytest.mark.parametrize("seed", range(8))
def test_no_start_of_a_grid_has_less_excess(seed):
    rng = np.random.default_rng(seed)
    cluster, names = two_racks(4), [("h0", "h4"), ("h1", "h5"), ("h2", "h6")]
    *old, new = [
        across(
            f"j{i}",
            float(rng.uniform(0, 50)),
            float(rng.uniform(20, 60)),
            float(rng.choice([100, 200])),
            35.0,
            list(at),
        )
        for i, at in enumerate(names)
    ]
    kept, seeds = kept_on(cluster, old)
    ranking = RankingBeside(kept, seeds, [new])
    row = ranking.row(ranking.rank(1, GENERATORS, 0)[0])
    score, jobs = row["score_min"], [one.job for one in kept.jobs.values()]

    def at(start):
        return evaluate(cluster, [*jobs, dataclasses.replace(new, start=float(start % new.period))]).score_min

    for start in np.arange(0, new.period, 1e-3):
        assert at(start) <= score + 1e-6
    # the window ends where the excess rises: 10 us outside of it, and not 1 us inside
    begin, end = (ms / 1e3 for ms in row["windows_ms"][new.name])
    assert [at(begin + 1e-6), at(end - 1e-6)] == pytest.approx([score] * 2, abs=2e-5)
    assert max(at(begin - 1e-5), at(end + 1e-5)) < score - 1e-6


def test_work_is_limited_not_the_number_of_jobs():
    require_work(1001, 64, 10, simulated=False)
    with pytest.raises(InputError, match="at most of 100000 GPUs"):
        require_work(1, 1_000_000, 1, simulated=False)
    with pytest.raises(InputError, match="64 GPUs times 20000 candidates is at most 1000000, got 1280000"):
        require_work(1, 64, 20_000, simulated=False)
    with pytest.raises(InputError, match="1000 jobs with those that run, 30000 links times 10 candidates is at most"):
        require_work(1000, 64, 10, simulated=False, n_links=30_000)
    with pytest.raises(InputError, match="1000 jobs squared times 10 simulated candidates"):
        require_work(1000, 64, 10, simulated=True)
