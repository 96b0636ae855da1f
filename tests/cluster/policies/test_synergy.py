import pytest

from commsim.cluster.assumptions import HostKind


def test_hungry_jobs_are_put_beside_modest_ones_and_get_their_cpus(replay, cluster_of):
    """Two hosts of 8 GPUs and 32 CPUs; two jobs need 24 CPUs for 4 GPUs, two need 8."""
    machines = replay.machines(cluster_of(2, 8, 1), host=HostKind(cpu=32.0))
    trace = [replay.job(name, 4, 100.0, cpu=cpu) for name, cpu in (("a", 24), ("b", 24), ("c", 8), ("d", 8))]
    jobs, _ = replay("synergy", trace, machines)
    assert [job.jct_s for job in jobs.values()] == pytest.approx([100.0] * 4)
    jobs, _ = replay("fifo", trace, machines)
    assert jobs["a"].jct_s == pytest.approx(150.0)  # 16 of 24 CPUs: in proportion to its GPUs
    assert jobs["c"].jct_s == pytest.approx(100.0)


def test_memory_counts_as_cpus_do(replay, cluster_of):
    machines = replay.machines(cluster_of(2, 8, 1), host=HostKind(memory=64.0))
    trace = [replay.job(name, 4, 100.0, memory=memory) for name, memory in (("a", 48.0), ("b", 48.0))]
    assert max(job.jct_s for job in replay("synergy", trace, machines)[0].values()) == pytest.approx(100.0)
    assert max(job.jct_s for job in replay("fifo", trace, machines)[0].values()) == pytest.approx(150.0)
