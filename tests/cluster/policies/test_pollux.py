import pytest

from commsim.cluster.models import Model


def test_jobs_grow_when_gpus_are_free_and_shrink_when_others_come(replay):
    alone, outcome = replay("pollux", [replay.job("a", 4, 1000.0)])
    assert {len(stay.gpus) for stay in outcome.stays} == {8}
    efficiency = (32 + 4) / (32 + 8)  # twice the GPUs, whose samples are worth less
    assert alone["a"].jct_s == pytest.approx(1000.0 / (2 * efficiency))
    many = [replay.job(f"j{i}", 8, 500.0) for i in range(9)]
    assert max(job.queued_s for job in replay("pollux", many)[0].values()) == pytest.approx(0.0, abs=1e-9)
    assert max(job.queued_s for job in replay("fifo", many)[0].values()) > 900


def test_gpus_go_where_they_raise_goodput_most(replay, cluster_of):
    """Of 24 GPUs: one model gains by more, the other's batch is large enough already."""
    noise = {name: Model(name, 0.0, 0.1, noise=scale) for name, scale in (("small", 0.5), ("large", 1000.0))}
    machines = replay.machines(cluster_of(4, 6), models=noise)
    trace = [replay.job(name, 16, 100.0, model=name) for name in noise]
    _, outcome = replay("pollux", trace, machines)
    first = {stay.job: len(stay.gpus) for stay in outcome.stays if stay.start == 0}
    assert first == {0: 8, 1: 16}
