import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.placement.clusters.generated_traces import GENERATORS, power_of_two_counts
from commsim.placement.clusters.models import MODELS, profile
from commsim.placement.clusters.reading_summary import ReadingSummary
from commsim.placement.clusters.traces import load_trace

NAMES = tuple(MODELS)


@pytest.mark.parametrize("kind", ["poisson", "philly", "helios"])
def test_the_load_is_what_was_asked_for(kind):
    jobs = GENERATORS[kind](512, NAMES, 2000, 0.8, seed=3, days=7.0)
    work = sum(job.n_gpus * job.duration for job in jobs)
    assert work / (512 * 7 * 86400) == pytest.approx(0.8)
    assert 6.5 * 86400 < jobs[-1].submit <= 7 * 86400
    assert all(job.n_gpus & (job.n_gpus - 1) == 0 for job in jobs)
    free = GENERATORS[kind](512, NAMES, 2000, 0.8, seed=3)
    span = sum(job.n_gpus * job.duration for job in free) / (0.8 * 512)
    assert free[-1].submit == pytest.approx(span, rel=0.02)


@pytest.mark.parametrize(("mean", "largest"), [(1.93, 128), (3.72, 2048), (8.0, 64), (60.0, 64), (1.0, 1)])
def test_counts_have_the_published_mean(mean, largest):
    drawn = power_of_two_counts(np.random.default_rng(0), 400_000, mean, largest)
    assert drawn.mean() == pytest.approx(mean, rel=0.03)
    assert drawn.max() <= largest


def test_durations_are_heavy_tailed():
    durations = np.array([job.duration for job in GENERATORS["philly"](512, NAMES, 20_000, 0.8, seed=1)])
    assert np.median(durations) == pytest.approx(900, rel=0.05)
    assert durations.mean() == pytest.approx(900 * np.exp(2.0), rel=0.2)  # exp(sigma**2 / 2) times the median


def test_the_same_seed_gives_the_same_trace_and_another_one_another():
    texts = [f"poisson:jobs=50,load=0.9,seed={seed},deadlines=0.5,elastic=0.5" for seed in (1, 1, 2)]
    a, b, c = (load_trace(text, 64, MODELS) for text in texts)
    assert a == b != c
    assert 5 < sum(job.deadline is not None for job in a) < 45
    assert 5 < sum(job.max_gpus > job.n_gpus for job in a) < 45
    assert all(job.deadline >= job.submit + 1.2 * job.duration * 0.999 for job in a if job.deadline is not None)


def test_a_file_that_says_nothing_of_models_gets_drawn_ones_as_logs_do(tmp_path):
    """A scheduler's log has submissions, GPUs and durations: `job,submit_s,gpus,duration_s` was refused."""
    path = tmp_path / "t.csv"
    path.write_text("job,submit_s,gpus,duration_s\n" + "".join(f"j{i},{i},4,100\n" for i in range(40)))
    said = ReadingSummary()
    jobs = load_trace(str(path), 64, MODELS, 1, said)
    assert len({job.model for job in jobs} & {*MODELS}) > 3
    assert jobs == load_trace(str(path), 64, MODELS, 1) != load_trace(str(path), 64, MODELS, 2)
    assert said.told() == ["40 jobs: the trace has neither model nor iter_time_ms: a model is drawn for each (--seed)"]
    path.write_text("job,submit_s,gpus,duration_s,model\na,0,4,100,\n")
    with pytest.raises(InputError, match="give a model or iter_time_ms, one of the two"):
        load_trace(str(path), 64, MODELS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("poisson:jobs=0,load=0.9", "jobs must be 1..1e"),
        ("poisson:jobs=5,load=0", "load must be"),
        ("poisson:jobs=5,load=0.9,sigma=9", "sigma must be 0..4"),
        ("poisson:jobs=5,load=0.9,mean_gpus=100", "mean_gpus must be 1..64"),
        ("poisson:jobs=5", "poisson needs load"),
        ("poisson:jobs=5,load=0.9,lod=1", "did you mean load"),
        ("poisson:jobs=5,load=0.9,seed=-1", "seed"),
        ("uniform:jobs=5", "a trace is FILE.csv"),
        ("trace.json", "a trace is FILE.csv"),
    ],
)
def test_bad_arguments_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        load_trace(text, 512, MODELS)


@pytest.mark.parametrize("parallel", ["data", "model", "mixed"])
def test_jobs_as_in_cassini_load_the_testbed_as_asked_for(parallel):
    jobs = load_trace(f"cassini:jobs=3000,load=0.9,seed=4,parallel={parallel}", 24, MODELS)
    assert {job.n_gpus for job in jobs} == set(range(1, 13))
    # 200 to 1,000, both included: each of these 801 counts is drawn 3.7 times on average
    assert (min(job.iterations for job in jobs), max(job.iterations for job in jobs)) == (200, 1000)
    periods = [profile(MODELS[job.model], "one", job.n_gpus, job.n_gpus, 6.25e9).period for job in jobs]
    work = sum(job.n_gpus * job.iterations * period for job, period in zip(jobs, periods, strict=True))
    assert work / (24 * jobs[-1].submit) == pytest.approx(0.9, rel=0.01)
    assert any(job.model.startswith("gpt") for job in jobs) == (parallel == "model")


def test_an_unknown_parallelism_is_refused():
    with pytest.raises(InputError, match="parallel must be data, model, mixed, got 'x'"):
        load_trace("cassini:jobs=5,load=0.9,parallel=x", 24, MODELS)
