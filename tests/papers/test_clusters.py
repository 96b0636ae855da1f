import pytest

from commsim.papers.clusters import cluster_gain

ONE_JOB = "poisson:jobs=1,load=1,mean_gpus=1,max_gpus=1"


@pytest.mark.parametrize(("needs", "faster"), [(1, 1.0), (3, 1.0), (6, 2.0)])
def test_a_job_is_as_many_times_faster_as_it_gets_cpus_beyond_its_share(needs, faster):
    job = {"job": {"size": 0.0, "compute": 1.0, "cpu": needs}}
    gain = cluster_gain(ONE_JOB, "synergy", "fifo", hosts=4, gpus=8, cpu=24, models=job, seeds=[1])
    assert gain == pytest.approx(faster)  # a GPU's share is 24/8 CPUs


def test_a_policy_gains_nothing_over_itself_and_sharing_links_in_turn_gains():
    trace = "cassini:jobs=12,load=2"
    assert cluster_gain(trace, "fifo", "fifo", seeds=[1]) == 1.0
    known = {"policy": "fifo", "over": "fifo", "metric": "iteration_mean_s", "hosts": 8, "gpus": 1, "seeds": [1]}
    assert cluster_gain(trace, placing="ideal", over_placing="shuffled", **known) > 1.0
