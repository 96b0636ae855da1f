"""Jobs of one run whose packets are sent each in its own way, over the same queues."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.jobs.composition import read_composition
from commsim.jobs.table_of_jobs import parts_of_jobs, rows_of_jobs
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.report.answer import Table

TOPOLOGY = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=400Gbps"
JOB = '[[job]]\ncollective = "{}"\nranks = "{}"\nsize = "{}"\n{}\n'
BACKGROUND = '[[background]]\nkind = "poisson"\nload = 0.1\nsize = "100kB"\nuntil = "50us"\n{}\n'


@pytest.fixture
def played(tmp_path):
    def play(*entries, **options):
        path = tmp_path / "jobs.toml"
        path.write_text("".join(entries))
        options = {"engine": "packet", "seed": 3, **options}
        return solve(scenario_of(None, TOPOLOGY, jobs=read_composition(path), **({"overhead": "0us"} | options)), [0.0])

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
    plenty = job('transport = "nscc"\nbuffer = "20MB"', "direct_gather", size="4MB")
    both = played(job('transport = "nscc"\nbuffer = "20kB"', "direct_gather", size="4MB"), plenty)
    assert both.results[0].counters["trimmed"] > 0
    assert played(plenty).results[0].counters["trimmed"] == 0


def test_the_table_says_how_each_job_sends_where_they_differ(played):
    found = played(job('preset = "uec"'), job('transport = "dcqcn"', ranks="1,5,9,13"), job(ranks="2,6,10,14"))
    assert found.details.transports == ("nscc mixed", "dcqcn", "window")
    table = next(part for part in parts_of_jobs(found) if isinstance(part, Table))
    assert [row[-1] for row in table.rows] == ["nscc mixed", "dcqcn", "window"]
    assert table.columns[-1] == "transport"
    assert "transports by job" in table.title
    assert [row["transport"] for row in rows_of_jobs(found)] == ["nscc mixed", "dcqcn", "window"]
    same = played(job('transport = "dctcp"'), job('transport = "dctcp"', ranks="1,5,9,13"))
    assert not same.details.transports
    assert "transport" not in rows_of_jobs(same)[0]


def test_a_job_whose_transport_wants_pauses_is_told_that_the_fabric_has_none(played):
    jobs = job('preset = "roce"'), job('preset = "uec"', ranks="1,5,9,13")
    (told,) = (one for one in played(*jobs).derived if one.code == "no-pauses")
    assert told.text.startswith("0:direct_all_to_all: no link pauses")
    paused = played(*jobs, packets={"pause_at": "200kB", "resume_at": "160kB"})
    assert "no-pauses" not in [one.code for one in paused.derived]


@pytest.mark.parametrize(
    ("key", "flag"),
    [("pause_at", "--pause"), ("resume_at", "--pause"), ("loss", "--loss"), ("loss_burst", "--loss-burst"),
     ("shared_buffer", "--shared-buffer"), ("alpha", "--buffer-alpha"), ("class_weights", "--class-weights")],
)  # fmt: skip
def test_what_is_the_fabrics_no_job_says(played, key, flag):
    with pytest.raises(InputError, match=rf"line 5: job\[0\]\.{key} is the fabric's, .* give it to the run, {flag}$"):
        played(job(f"{key} = 0.1"))


def test_losses_of_the_run_are_a_jobs_own_by_itself_too(played):
    own = job('transport = "nscc"')
    lossy, clean = (played(own, packets={"loss": loss}) for loss in (0.05, 0.0))
    assert lossy.results[0].counters["drops_loss"] > 0
    assert lossy.details.alone == (lossy.results[0].time,)
    assert lossy.details.alone > clean.details.alone


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_a_flap_costs_jobs_what_it_costs_each_by_its_name(played, engine):
    how = {} if engine == "flow" else {"packets": {"preset": "uec"}}
    jobs = job(), job(ranks="1,5,9,13", size="2MB")
    how["hashes"] = 1  # the median of each may be another draw
    found = played(*jobs, engine=engine, flap=["link:leaf0:spine0@10us+20us"], detection="5us", **how)
    whole = played(*jobs, engine=engine, **how)
    for late, early in zip(found.results, whole.results, strict=True):
        assert late.counters["flap_lost_s"] == pytest.approx(late.time - early.time, abs=1e-12)
    assert found.details.alone == whole.details.alone
    costs = {one.text.partition(" B:")[0]: one for one in found.remarks if one.code == "flap-cost"}
    lost = [late.time > early.time * (1 + 1e-9) for late, early in zip(found.results, whole.results, strict=True)]
    assert len(costs) == sum(lost)
    assert ("0:direct_all_to_all: 1000000" in costs) == lost[0]


@pytest.mark.parametrize(
    ("jobs", "said"),
    [((job('transport = "nscc"'), job('transport = "dcqcn"', ranks="1,5")), "all jobs keep to a path, or all spray"),
     ((job(collective="switchml"), job(ranks="1,5")), "flaps are not modelled for packets of switch systems")],
)  # fmt: skip
def test_flaps_that_cannot_be_are_refused(played, jobs, said):
    with pytest.raises(InputError, match=said):
        played(*jobs, flap=["link:leaf0:spine0@10us+20us"])


@pytest.mark.parametrize("others", [(), (job(ranks="1,5"),)])
def test_a_switch_system_sends_as_it_does_and_not_as_its_job_says(played, others):
    with pytest.raises(InputError, match="packets of a switch system keep to the links of its tree"):
        played(job('transport = "dctcp"', collective="switchml"), *others)
