"""Every reader with damaged files: refused on one line, or read; never a traceback or a hang."""

import random
from pathlib import Path

import pytest
from fuzzing import SEED, TIMES, attempt, mutated

from commsim.cli import main

INPUTS = Path(__file__).parents[1] / "answers" / "inputs"
STAR = "star:n_hosts=4,bandwidth=10Gbps"
# What makes the file (a command that writes it, or where it is), and what reads it.
READERS = {
    "network.toml": ("topo save star:n_hosts=4 -o FILE", "topo check FILE"),
    "network.json": ("topo save star:n_hosts=4 -o FILE", "topo show FILE"),
    "network.xml": ("topo export star:n_hosts=4 --to graphml -o FILE", "topo import FILE -o out.toml"),
    "schedule.npz": ("schedule save ring_all_reduce --ranks 4 -o FILE", "schedule check FILE"),
    "schedule.xml": ("schedule export ring_all_reduce --ranks 4 --to msccl -o FILE", "schedule import FILE -o out.npz"),
    "result.json": ("run ring_all_reduce --topology star:n_hosts=4 -b 4K --json FILE", "report FILE -o out.html"),
    "simulated.pcap": ("switch simulate --workers 2 --size 4KiB --pcap FILE", "switch pcap FILE"),
    "cost.toml": (INPUTS, "sweep cheapest FILE --jobs 1"),
    "osu_p2p.txt": (INPUTS, "fit FILE"),
    "nccl.txt": (INPUTS, "fit FILE --collective ring_all_reduce"),
    "gradients.csv": (INPUTS, f"workload run --trace FILE --workers 4 --topology {STAR}"),
    "graph.toml": (INPUTS, f"workload run --graph FILE --topology {STAR}"),
    "flight_rank1.json": (INPUTS, "workload calls FILE"),
    "kineto.json": (INPUTS, "workload calls FILE"),
    "cluster.toml": (INPUTS, f"place rank FILE {INPUTS}/jobs.json --candidates 1"),
    "jobs.json": (INPUTS, f"place rank {INPUTS}/cluster.toml FILE --candidates 1"),
    "three.json": (INPUTS, "place score --capacity 50Gbps FILE"),
    "placed.json": (INPUTS, f"workload share {INPUTS}/share_cluster.toml FILE --iterations 2"),
    "sweep.toml": (INPUTS, "sweep plan FILE --jobs 1"),
    "slurm.conf": (INPUTS, "place import FILE --from slurm-conf --tier-bandwidth 1=100Gbps,2=2:1 -o n.toml"),
    "smi.txt": (INPUTS, "place import FILE --from nvidia-smi -o n.toml"),
    "cables.csv": (INPUTS, "topo show FILE"),
    "ibnetdiscover.txt": (INPUTS, "topo show FILE"),
    "iblinkinfo.txt": (INPUTS, "topo show FILE"),
    "netbox.json": (INPUTS, "topo show FILE:rate=10Gbps"),
    "lldp.json": (INPUTS, "topo show FILE"),
    "i.infragraph.yaml": ("topo export star:n_hosts=3 -o FILE", "topo show FILE"),
    "htsim.topo": ("topo export leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2 -o FILE", "topo show FILE"),
    "imb.txt": (INPUTS, "diff FILE FILE"),
    "ucc.txt": (INPUTS, "diff FILE FILE"),
    "busbw.csv": (INPUTS, "compare FILE --topology dgx-h100 --operation all_reduce -g 8"),
    "inspector.log": (INPUTS, "watch FILE --topology hgx-h100"),
    "kube_nodes.json": (INPUTS, "place import FILE --from kube-nodes --tier-bandwidth 1=100Gbps,2=2:1 -o n.toml"),
    "topology.yaml": (INPUTS, "place import FILE --from slurm-yaml --tier-bandwidth 1=100Gbps,2=2:1 -o n.toml"),
    "demand.json": (INPUTS, f"place rank {INPUTS}/share_cluster.toml FILE --candidates 1"),
    "gpu_hosts.toml": (INPUTS, "run --topology FILE -b 1K -e 1K"),
    "places.json": (INPUTS, f"run --topology {STAR} --placement FILE -b 1K -e 1K"),
    "cost_model.json": (
        "export cost-model star:n_hosts=2 --operation all_reduce --points 9 -e 1K --jobs 1 -o FILE",
        "export page FILE -o out.html",
    ),
}

# Fits and costs are computed before a report is given.
SLOW = ("cost.toml", "nccl.txt", "osu_p2p.txt", "result.json", "simulated.pcap", "busbw.csv")
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in READERS]


def made(name):
    """Return the bytes of a right file."""
    maker = READERS[name][0]
    if isinstance(maker, Path):
        return (maker / name).read_bytes()
    path = Path(f"right-{name}")
    assert main(maker.replace("FILE", str(path)).split()) in (0, None)
    return path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_refused_on_one_line_or_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right, rng, wrong = made(name), random.Random(f"{SEED} {name}"), []
    for number in range(3 * TIMES):
        path = Path(f"{number}-{name}")
        path.write_bytes(mutated(rng, right))
        wrong.append(attempt(READERS[name][1].replace("FILE", str(path)).split(), "damaged files"))
        path.unlink()
    assert not any(wrong), "\n".join(line[:400] for line in wrong if line)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_the_file_that_is_damaged_is_right_before(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(made(name))
    assert main(READERS[name][1].replace("FILE", name).split()) in (0, None)
