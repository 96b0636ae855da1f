"""Names of nodes as tables print them are read in jobs, in ``placement`` and in ``placed``."""

import pytest

from commsim.core.errors import InputError
from commsim.core.names.hostlist import spelled_out
from commsim.placement.candidate import counted_names
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.node_names import on_nodes
from commsim.placement.place import place_jobs
from commsim.prediction.faults import with_faults
from commsim.training.sharing.periodic import parse_jobs

HOSTS = read_cluster({"topology": {"spec": "star:n_hosts=12"}, "hosts": {"gpus": 4}})
MACHINES = read_cluster({"topology": {"spec": "dgx-h100@star:machines=3"}, "hosts": {"busy": {"m0.gpu1": 1}}})
M0 = tuple(f"m0.gpu{i}" for i in range(8))


def places(cluster: Cluster, field: str, *names: str, gpus: int = 0) -> tuple[str, ...]:
    row = {"job": "a", "gpus": gpus or 4, "iter_time_ms": 100, "phases": [], field: list(names)}
    (job,) = on_nodes(cluster, parse_jobs([row]))
    return job.placement or job.placed


@pytest.mark.parametrize("field", ["placement", "placed"])
@pytest.mark.parametrize(
    ("cluster", "names", "nodes"),
    [
        (HOSTS, ["h0x4"], ["h0"] * 4),
        (HOSTS, ["h0-1x2"], ["h0", "h0", "h1", "h1"]),
        (HOSTS, ["h9-11", "h0"], ["h9", "h10", "h11", "h0"]),
        (MACHINES, ["m0.gpu4-7"], M0[4:]),
        (MACHINES, ["m0x4"], [M0[0], *M0[2:5]]),
        (MACHINES, ["m0", "m0", "m0", "m1"], [M0[0], M0[2], M0[3], "m1.gpu0"]),
        (MACHINES, ["m0-1x2"], [M0[0], M0[2], "m1.gpu0", "m1.gpu1"]),
    ],
)
def test_every_form_is_read_in_both_fields(field: str, cluster: Cluster, names: list[str], nodes: list[str]) -> None:
    """`placed` knew no counts, nothing knew ranges, and a machine had no GPUs."""
    assert places(cluster, field, *names) == tuple(nodes)


@pytest.mark.parametrize(
    "nodes",
    [
        ["h2", "h2", "h3", "h3"],
        ["h2", "h2", "h3", "h3", "h2", "h3"],
        [f"h{i}" for i in range(2, 11) for _ in range(4)],
        list(M0),
    ],
)
def test_what_a_table_prints_can_be_sent_back(nodes: list[str]) -> None:
    cluster = MACHINES if nodes[0].startswith("m") else HOSTS
    assert places(cluster, "placement", *counted_names(nodes, 32).split(), gpus=len(nodes)) == tuple(nodes)


@pytest.mark.parametrize(
    ("nodes", "printed"),
    [
        (["n008", "n009", "n010"], "n[008-010]"), (["n099", "n100"], "n[099-100]"), (["n09", "n11"], "n09 n11"),
        (["h9", "h10"], "h9-10"), (["h0", "h1"], "h0-1"), (["n08", "n9"], "n08 n9"),
    ],
)  # fmt: skip
def test_numbers_with_zeros_before_them_are_ranges_of_slurm(nodes, printed):
    """Each host of node[001-128] was printed by itself."""
    assert counted_names(nodes) == printed
    assert counted_names([name for name in nodes for _ in range(8)]).replace("x8", "") == printed
    assert spelled_out(printed.split()) == nodes


def test_a_machine_gives_the_gpus_that_no_other_job_has() -> None:
    rows = [{"job": name, "gpus": 2, "iter_time_ms": 100, "phases": [], "placement": at}
            for name, at in (("a", ["m0x2"]), ("b", ["m0.gpu0", "m0.gpu2"]), ("c", ["m0", "m0"]))]  # fmt: skip
    found = place_jobs(MACHINES, rows).candidates[0].placement
    assert found == {"a": (M0[3], M0[4]), "b": (M0[0], M0[2]), "c": (M0[5], M0[6])}


def test_more_than_a_machine_has_is_refused() -> None:
    with pytest.raises(InputError, match="job a has 8 GPUs of m0, which has 7"):
        places(MACHINES, "placed", "m0x8", gpus=8)
    with pytest.raises(InputError, match="a: 4 GPUs cannot have 8 places: a job that shrinks lists the 4"):
        places(HOSTS, "placed", "h0-1x4")


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("n[019-021]x2", ["n019"] * 2 + ["n020"] * 2 + ["n021"] * 2), ("n[1,3]", ["n1", "n3"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]), ("n[019-020]-ib", ["n019-ib", "n020-ib"]),
    ],
)  # fmt: skip
def test_host_lists_of_slurm_are_written_out(name, spelled):
    assert spelled_out([name]) == spelled


def test_host_lists_name_hosts_that_are_busy_or_fail():
    tree = {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 2, "busy": {"h[1-2]": 1}}}
    cluster = read_cluster(tree)
    assert cluster.busy[:4].tolist() == [0, 1, 1, 0]
    left, _ = with_faults(cluster.network, ["host:h[0-1]"], [])
    assert set(left.src.tolist()) == {2, 3, 4}
    with pytest.raises(InputError, match=r"h\[1-9\]"):
        read_cluster(tree | {"hosts": {"gpus": 2, "busy": {"h[1-9]": 1}}})
