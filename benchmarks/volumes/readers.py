"""Damaged files: every reader with small files of its format, in one process; refused on one line, or read."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import pickle
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from commsim.cli import main
from commsim.core.errors import CommsimError
from commsim.formats.catalogue import PROGRAM, SCHEDULE, WORKLOAD, read
from commsim.formats.context import Context
from commsim.formats.network_formats import NETWORK

from .corpus import ANSWERS
from .draws import damaged

INPUTS = ANSWERS / "inputs"
# Written by commands of ours into files; ``{}`` is the file. They are small, so that a trial takes a fraction of a ms.
WRITTEN = {
    "n.toml": "topo save star:n_hosts=3 -o {}",
    "n.json": "topo save ring:n_hosts=3 -o {}",
    "n.npz": "topo save star:n_hosts=3 -o {}",
    "n.graphml": "topo export star:n_hosts=3 -o {}",
    "n.yml": "topo export star:n_hosts=4,bandwidth=30Gbps -o {}",
    "node_link.json": "topo export star:n_hosts=3 --to node-link -o {}",
    "ns3.txt": "topo export star:n_hosts=3,bandwidth=30Gbps --to ns3 -o {}",
    "s.npz": "schedule save ring_all_reduce --ranks 3 -o {}",
    "s.xml": "schedule export ring_all_reduce --ranks 3 --to msccl -o {}",
    "s.goal": "schedule export ring_all_reduce --ranks 3 --size 3K --to goal -o {}",
    "s.bin": "schedule export ring_all_reduce --ranks 3 --size 3K --to goal-binary -o {}",
    "r.json": "run ring_all_reduce --topology star:n_hosts=3 -b 3K -e 3K --json {}",
    "t.csv": "cluster trace philly:jobs=5,load=0.5 --gpus 64 -o {}",
    "p.pcap": "switch simulate --workers 2 --size 4KiB --pcap {}",
    "t.topo": "topo export leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2 --to htsim -o {}",
    "i.infragraph.yaml": "topo export star:n_hosts=3 --to infragraph -o {}",
    "m.infragraph.json": "topo export dgx-a100@star:machines=2 --to infragraph -o {}",
    "cost_model.json": "export cost-model star:n_hosts=3 --operation all_reduce --points 20 -e 1M --jobs 1 -o {}",
}


class Right(NamedTuple):
    """A right file.

    Parameters
    ----------
    name : str
        Name of the file.
    data : bytes
        What it holds.
    reader : callable
        Reads a path.
    """

    name: str
    data: bytes
    reader: Callable[[str], Any]


def _of_format(name: str, kind: str) -> Callable[[str], Any]:
    return lambda path: read(name, kind, path, Context())[0]


def _readers() -> dict[str, list[Callable[[str], Any]]]:
    """Return what reads each file, by its name."""
    from commsim.core.files.csv_rows import read_rows
    from commsim.core.files.network_file import read_network
    from commsim.core.files.placement_file import read_placement
    from commsim.core.files.result_file import read_result
    from commsim.core.files.schedule_file import read_schedule
    from commsim.costmodel.estimates_of_file import model_of_file
    from commsim.diagnosis.log_facts import read_log_facts
    from commsim.formats.csv_tables import read_csv_rows
    from commsim.formats.machines.nvidia_smi import read_nvidia_smi
    from commsim.formats.measured import read_measured
    from commsim.formats.recognise import network_of_file
    from commsim.placement.cluster import read_cluster
    from commsim.placement.clusters.trace_file import read_trace
    from commsim.placement.schedulers.slurm import read_slurm_conf
    from commsim.prediction.inputs import load_network
    from commsim.profiles.kineto_operators import read_kernel_times
    from commsim.profiles.profiles import read_calls
    from commsim.sweep.config import read_config
    from commsim.training.backward_trace import read_backward_trace
    from commsim.training.sharing.periodic import read_jobs
    from commsim.training.task_graph import read_graph
    from switch_model.packets.pcap_reader import read_pcap

    def measured_sums(path: str) -> Any:
        return read_measured(path, operation="all_reduce", n_ranks=2)

    def measured(path: str) -> Any:
        return read_measured(path, n_ranks=2)

    def slurm(path: str) -> Any:
        from commsim.core.files.whole_files import read_text

        return read_slurm_conf(read_text(path), path)

    def schedulers(path: str) -> Any:
        from commsim.core.files.whole_files import read_text
        from commsim.placement.schedulers.kube_nodes import read_kube_nodes
        from commsim.placement.schedulers.slurm_yaml import read_slurm_yaml

        return (read_kube_nodes if path.endswith(".json") else read_slurm_yaml)(read_text(path), path)

    def watched(path: str) -> Any:
        from commsim.diagnosis.live_expectations import LiveExpectations
        from commsim.diagnosis.prometheus_page import prometheus_text
        from commsim.diagnosis.watched_job import WatchedJob

        job = WatchedJob.of_path(path, LiveExpectations("hgx-h100", 0.01))
        job.read(is_end=True)
        rows = job.rows()
        prometheus_text(rows, job.rails(rows), job.communicators.n_records, job.files.n_left_out).encode()
        return [row.row() for row in rows]

    def estimated(path: str) -> Any:
        return model_of_file(path)("all_reduce", 1000.0, 3)

    def placed(path: str) -> Any:
        return read_placement(path, load_network("star:n_hosts=4"))

    def of_content(path: str) -> Any:
        network = network_of_file(path)
        return network and (network.bandwidth, network.latency, network.told)

    return {
        "cables.csv": [of_content], "ibnetdiscover.txt": [of_content], "iblinkinfo.txt": [of_content],
        "netbox.json": [_of_format("netbox", NETWORK), lambda path: of_content(f"{path}:rate=10Gbps")],
        "lldp.json": [of_content], "i.infragraph.yaml": [of_content], "m.infragraph.json": [of_content],
        "t.topo": [of_content], "imb.txt": [measured], "ucc.txt": [measured],
        "busbw.csv": [lambda path: read_csv_rows(Path(path)), measured_sums], "cost_model.json": [estimated],
        "inspector.log": [watched, measured, read_log_facts], "kube_nodes.json": [schedulers],
        "topology.yaml": [schedulers], "gpu_hosts.toml": [read_cluster, load_network],
        "demand.json": [read_jobs], "places.json": [placed],
        "n.toml": [read_network], "n.json": [read_network], "n.npz": [read_network],
        "n.graphml": [_of_format("graphml", NETWORK)], "n.yml": [_of_format("astra-network", NETWORK)],
        "node_link.json": [_of_format("node-link", NETWORK)],
        "ns3.txt": [_of_format("ns3", NETWORK), _of_format("simai", NETWORK)],
        "s.npz": [read_schedule], "s.xml": [_of_format("msccl", SCHEDULE)],
        "s.goal": [_of_format("goal", PROGRAM), _of_format("goal", SCHEDULE), _of_format("goal", WORKLOAD)],
        "s.bin": [_of_format("goal-binary", PROGRAM)],
        "r.json": [read_result, measured], "t.csv": [read_trace],
        "p.pcap": [read_pcap],
        "osu_p2p.txt": [measured], "osu_allreduce.txt": [measured], "nccl.txt": [measured],
        "gradients.csv": [read_backward_trace, lambda path: list(read_rows(path, ["layer"]))],
        "graph.toml": [read_graph],
        "flight_rank1.json": [read_calls], "kineto.json": [read_calls, read_kernel_times, measured],
        "record.pickle": [read_calls, measured],
        "small_cluster.toml": [read_cluster], "share_cluster.toml": [read_cluster], "jobs.json": [read_jobs],
        "three.json": [read_jobs], "placed.json": [read_jobs], "sweep.toml": [read_config],
        "smi.txt": [read_nvidia_smi], "slurm.conf": [slurm],
    }  # fmt: skip


@functools.cache
def right_files() -> tuple[Right, ...]:
    """Return all right files, each with one reader, which reads it."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for file, readers in _readers().items():
            path = Path(name) / file
            if file in WRITTEN:
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    if main(WRITTEN[file].format(path).split()) not in (0, None):
                        raise ValueError(said.getvalue())
            elif file == "record.pickle":
                path.write_bytes(pickle.dumps(json.loads((INPUTS / "flight_rank1.json").read_text("utf-8"))))
            else:
                path.write_bytes((INPUTS / file).read_bytes())
            for reader in readers:
                with contextlib.suppress(CommsimError):  # a reader of several formats may want another
                    reader(str(path))
                    found.append(Right(file, path.read_bytes(), reader))
    return tuple(found)


def trial(seed: int, number: int, folder: Path) -> str:
    """Damage a file, and read it; return what is wrong with the answer."""
    draw = random.Random(f"{seed} files {number}")
    right, other = draw.choice(right_files()), draw.choice(right_files())
    path = folder / right.name
    path.write_bytes(damaged(draw, right.data, other.data))
    try:
        value = right.reader(str(path))
    except CommsimError as error:
        said = str(error)
        if "\n" in said:
            return f"{right.name}: not one line: {said[:300]!r}"
        return ""
    wrong = next(_wrong(value, 0), "")
    return f"{right.name}: {wrong}" if wrong else ""


def _wrong(value: Any, depth: int) -> Any:
    """Yield numbers of a value that cannot be: not a number, wherever it stands."""
    if isinstance(value, float):
        if math.isnan(value):
            yield "a value is NaN"
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and np.isnan(value).any():
            yield "an array has NaN"
    elif depth < 4:
        if is_dataclass(value) and not isinstance(value, type):
            value = {one.name: getattr(value, one.name, None) for one in fields(value)}
        if isinstance(value, Mapping):
            for name, leaf in value.items():
                for wrong in _wrong(leaf, depth + 1):
                    yield f"{name}: {wrong}"
        elif isinstance(value, (list, tuple)):
            for leaf in value[:100]:
                yield from _wrong(leaf, depth + 1)
