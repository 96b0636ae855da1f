import pytest

from commsim.cluster.assumptions import HostKind
from commsim.cluster.models import Model

MODELS = {
    "little": Model("little", 0.0, 0.1, speeds={"old": 1.0, "new": 1.2}),
    "much": Model("much", 0.0, 0.1, speeds={"old": 1.0, "new": 4.0}),
}


def test_the_fast_type_goes_to_the_job_that_gains_most(replay):
    hosts = {f"h{i}": HostKind("new" if i < 2 else "old") for i in range(4)}
    machines = replay.machines(models=MODELS, hosts=hosts)
    trace = [replay.job("first", 16, 1000.0, model="little"), replay.job("second", 16, 1000.0, model="much")]
    jobs, _ = replay("gavel", trace, machines)
    assert jobs["second"].jct_s == pytest.approx(250.0)
    assert replay("fifo", trace, machines)[0]["second"].jct_s == pytest.approx(1000.0)


def test_a_job_larger_than_any_type_still_runs(replay):
    hosts = {f"h{i}": HostKind("new" if i < 2 else "old") for i in range(4)}
    machines = replay.machines(models=MODELS, hosts=hosts)
    jobs, _ = replay("gavel", [replay.job("wide", 32, 100.0, model="little")], machines)
    assert jobs["wide"].jct_s == pytest.approx(100.0)
