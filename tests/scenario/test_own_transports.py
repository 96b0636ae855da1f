"""Jobs of one run whose packets are sent each in its own way, over the same queues."""

import numpy as np
import pytest

from commsim.scenario.read import scenario_of
from commsim.scenario.solve import solve
from commsim.scenario.together.composition import read_composition

TOPOLOGY = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=400Gbps"
JOB = '[[job]]\ncollective = "{}"\nranks = "{}"\nsize = "{}"\n{}\n'
BACKGROUND = '[[background]]\nkind = "poisson"\nload = 0.1\nsize = "100kB"\nuntil = "50us"\n{}\n'


@pytest.fixture
def played(tmp_path):
    def play(*entries, **options):
        path = tmp_path / "jobs.toml"
        path.write_text("".join(entries))
        options = {"engine": "packet", "seed": 3, **options}
        return solve(scenario_of(None, TOPOLOGY, jobs=read_composition(path), **options), [0.0])

    return play


def job(own="", collective="direct_all_to_all", ranks="0,4,8,12", size="1MB"):
    return JOB.format(collective, ranks, size, own)


def times(solution):
    return [result.time for result in solution.results]


def test_a_switch_system_beside_sprayed_and_paced_jobs_adds_exactly(played):
    found = played(
        job(collective="switchml", ranks="0,1,4,5"), job('preset = "uec"', ranks="3,7,10,11,12,13", size="4MB"),
        job('transport = "dcqcn"', "ring_all_reduce", "2,6,8,9,14,15", "2MB"), BACKGROUND.format('transport = "nscc"'),
    )  # fmt: skip
    assert found.results[0].counters["exact"] == 1
    for result, alone in zip(found.results, found.details.alone, strict=True):
        assert result.time >= alone * (1 - 1e-9)
    assert len(found.details.took)
    assert np.isfinite(found.details.took).all()


@pytest.mark.parametrize(
    ("own", "run"),
    [('preset = "uec"', {"packets": {"preset": "uec"}}),
     ('preset = "uec-credit"', {"packets": {"preset": "uec-credit"}}),
     ('transport = "dctcp"', {"transport": "dctcp"}), ('transport = "swift"', {"transport": "swift"})],
)  # fmt: skip
def test_jobs_that_say_what_the_run_says_take_the_same_to_the_last_bit(played, own, run):
    plain, other = job(), job(ranks="1,5,9,13", size="2MB")
    said = played(job(own), job(own, ranks="1,5,9,13", size="2MB"), BACKGROUND.format(own))
    asked = played(plain, other, BACKGROUND.format(""), **run)
    assert times(said) == times(asked)
    assert said.details.alone == asked.details.alone
    np.testing.assert_array_equal(said.details.took, asked.details.took)
    assert said.results[0].counters == asked.results[0].counters


@pytest.mark.parametrize("kept", ['transport = "dcqcn"', 'transport = "window"'])
def test_jobs_that_share_no_link_take_what_each_takes_alone(played, kept):
    found = played(job('transport = "nscc"', "ring_all_reduce", "0-3"), job(kept, "ring_all_reduce", "4-7"))
    assert times(found) == pytest.approx(list(found.details.alone), rel=1e-9)


def test_a_queue_is_as_full_as_each_job_says(played):
    plenty = job('transport = "nscc"\nbuffer = "20MB"', size="4MB")
    both = played(job('transport = "nscc"\nbuffer = "20kB"', size="4MB"), plenty)
    assert both.results[0].counters["trimmed"] > 0
    assert played(plenty).results[0].counters["trimmed"] == 0
