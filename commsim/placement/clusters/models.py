"""Models: assumed computation and communication of an iteration, and the file that changes them.

The sizes are those of CASSINI's Table 3 (where it gives a range, the smallest). CPUs are those of two of Synergy's
profiles, and count on hosts whose CPUs the file names. **Everything else is assumed**: seconds of computation per
iteration on a reference GPU, how busy the model keeps it, speeds on other GPUs. Of VGG16 the computation is CASSINI's
(section 2: 141 of 255 ms). All can be set in a file.

Traffic follows from the size: in each iteration all workers all-reduce the gradients in a ring, so every host sends
``2 (g-1)/g`` times the size, at :data:`EFFICIENCY` of its port's rate.

References
----------
Rajasekaran et al., "CASSINI", NSDI 2024, Table 3 and section 2.

What is assumed of models and hosts, and a file that sets it.

The file::

    restart = "30s"                # lost whenever a job starts again after a preemption, or with other GPUs
    contended = 0.88               # share of an overloaded link's rate that several jobs reach together

    [models.vgg16]                 # changes that row of the table; a new name adds one
    size = "528MB"
    compute = "141ms"
    busy = 0.95
    skewed = true
    cpu = 3
    noise = 32
    speeds = {v100 = 1.0, a100 = 1.7}
    stages = ["82ms", "75ms", "66ms"]  # storage and CPUs, GPU, network

    [hosts]                        # of all hosts
    type = "v100"
    cpu = 96
    memory = "512GiB"
    inference = ["h6", "h7"]       # belong to an inference cluster, which lends them
    [hosts.per_host.h3]            # of one
    type = "a100"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_tree
from commsim.core.units import parse_size, parse_time
from commsim.training.sharing.periodic import JobPhase, PeriodicJob

# Share of a port's rate that a ring all-reduce gets: VGG16's 528 MB in 114 ms are 74 % of 50 Gb/s (assumed of all).
EFFICIENCY = 0.75

# Kinds that a model's stages are of.
RESOURCES = 3

_CONVOLUTIONS: dict[str, float] = {"p100": 0.55, "v100": 1.0, "a100": 1.7}
_TRANSFORMERS: dict[str, float] = {"p100": 0.4, "v100": 1.0, "a100": 2.4}
# CPUs per GPU: where more no longer help ResNet50, which decodes images, and GNMT, which reads text, in the profiles of
# Synergy (OSDI 2022); assumed of all that read images, and of all others.
_IMAGES, _TEXTS = 4.0, 1.0


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What one model does.

    Parameters
    ----------
    name : str
        Name in traces.
    size : float, bytes
        Size of the gradients that are all-reduced.
    compute : float, s
        Time of one iteration without communication, on a reference GPU.
    busy : float
        Share of the GPU's time that it uses while it computes; two jobs whose shares add up to at most 1 can run on
        the same GPU unhindered.
    skewed : bool
        Whether few tensors hold most of the size, so that scattered placement hurts (Tiresias).
    cpu : float
        CPUs per GPU that it needs to run at full speed, on a host that has a number of them; 0: it does not mind.
    noise : float
        Gradient noise scale in units of one GPU's batch: with g GPUs a sample is worth ``noise/(noise + g)`` (Pollux).
    speeds : mapping of str to float
        Speed of computation by type of GPU, 1 for a type that is not named.
    stages : tuple of float, s
        Times of an iteration by resource, in turn: storage and CPUs, GPU, network. Two jobs on the same GPUs that both
        have them use the resources alternately (Muri).
    """

    name: str
    size: float
    compute: float
    busy: float = 0.9
    skewed: bool = False
    cpu: float = 0.0
    noise: float = 32.0
    speeds: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[float, ...] = ()


def _model(name: str, megabytes: float, compute: float, busy: float, skewed: bool, images: bool) -> TrainedModel:
    cpu, speeds = (_IMAGES, _CONVOLUTIONS) if images else (_TEXTS, _TRANSFORMERS)
    return TrainedModel(name, megabytes * 1e6, compute, busy, skewed, cpu, speeds=speeds)


MODELS = {
    model.name: model
    for model in (
        _model("vgg11", 507, 0.120, 0.90, True, True),
        _model("vgg16", 528, 0.141, 0.95, True, True),
        _model("vgg19", 549, 0.160, 0.95, True, True),
        _model("wideresnet101", 243, 0.150, 0.95, False, True),
        _model("resnet50", 98, 0.120, 0.85, False, True),
        _model("bert", 450, 0.200, 0.80, False, False),
        _model("roberta", 800, 0.300, 0.85, False, False),
        _model("camembert", 266, 0.200, 0.80, False, False),
        _model("xlm", 1116, 0.350, 0.85, False, False),
        _model("gpt1", 650, 0.300, 0.90, False, False),
        _model("gpt2", 1623, 0.500, 0.90, False, False),
        _model("gpt3", 1952, 0.600, 0.95, False, False),
        TrainedModel("dlrm", 890e6, 0.250, 0.40, True, _TEXTS, speeds=_CONVOLUTIONS),
    )
}


def profile(
    model: TrainedModel, name: str, gpus: int, n_hosts: int, port: float, gpu_type: str = "", nics: int = 1
) -> PeriodicJob:
    """Return what a job of `model` does on the network.

    Parameters
    ----------
    gpus, n_hosts : int
        Number of GPUs and of hosts that it runs on; on one host it sends nothing that others notice.
    port : float, bytes/s
        Bandwidth of a host's port, or of each NIC.
    gpu_type : str
        The slowest of its GPUs.
    nics : int
        Number of NICs of a host, over which the bytes are spread.
    """
    compute = model.compute / model.speeds.get(gpu_type, 1.0)
    if n_hosts < 2 or not model.size:
        return PeriodicJob(name, gpus, compute, ())
    rate = EFFICIENCY * port
    duration = 2 * (gpus - 1) / gpus * model.size / (nics * rate)
    return PeriodicJob(name, gpus, compute + duration, (JobPhase(compute, duration, rate),))


@dataclass(frozen=True, slots=True)
class HostKind:
    """What a host is besides its GPUs; CPUs and memory of 0 are not limited."""

    gpu_type: str = ""
    cpu: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Everything that neither the trace nor the cluster's file says.

    Parameters
    ----------
    models : mapping of str to TrainedModel
        The table.
    host : HostKind
        Kind of the hosts that `hosts` does not name.
    hosts : mapping of str to HostKind
        Kind of each named node.
    inference : tuple of str
        Hosts that inference lends.
    restart : float, s
        Lost by a job that starts again.
    contended : float
        Share of an overloaded link's rate that several jobs reach together: 1 is a fluid; two jobs under DCQCN got 22
        of 25 Gb/s each (CASSINI, Figure 2).
    """

    models: Mapping[str, TrainedModel] = field(default_factory=lambda: MODELS)
    host: HostKind = HostKind()
    hosts: Mapping[str, HostKind] = field(default_factory=dict)
    inference: tuple[str, ...] = ()
    restart: float = 30.0
    contended: float = 1.0


def read_assumptions(path: str | Path) -> Assumptions:
    """Read a .toml (or .json) file of assumptions.

    Raises
    ------
    InputError
        Naming the file, the line and the field that is wrong.
    """
    top = TableFields(read_tree(path), path)
    models = dict(MODELS)
    table = top.table("models")
    for name in table:
        models[name] = _model_assumptions(table.table(name), name)
    hosts = top.table("hosts")
    usual = _host(hosts, HostKind())
    per_host = hosts.table("per_host")
    hosts_by_name = {name: _finished(per_host.table(name), usual) for name in per_host}
    inference = tuple(hosts.items("inference", str, "the name of a host")) if "inference" in hosts else ()
    hosts.finish()
    restart = top.quantity("restart", parse_time, 30.0)
    contended = top.number("contended", 1.0)
    if not 0 < contended <= 1:
        top.refuse("contended", "more than 0 and at most 1")
    top.finish()
    return Assumptions(models, usual, hosts_by_name, inference, restart, contended)


def _model_assumptions(fields: TableFields, name: str) -> TrainedModel:
    old = MODELS.get(name)
    size = fields.quantity("size", parse_size, old.size if old else None)
    compute = fields.quantity("compute", parse_time, old.compute if old else None)
    if not compute > 0:
        fields.refuse("compute", "more than 0")
    usual = old or TrainedModel(name, size, compute)
    busy, cpu, noise = (fields.number(key, getattr(usual, key)) for key in ("busy", "cpu", "noise"))
    for key, good in (("busy", 0 < busy <= 1), ("cpu", cpu >= 0), ("noise", noise > 0)):
        if not good:
            fields.refuse(key, "0..1" if key == "busy" else "positive")
    table = fields.table("speeds")
    speeds = {kind: table.number(kind) for kind in table}
    for kind, speed in speeds.items():
        if not speed > 0:
            table.refuse(kind, "more than 0")
    skewed = fields.truth("skewed", usual.skewed)
    stages = usual.stages
    if "stages" in fields:
        stages = tuple(parse_time(text, "stages") for text in fields.items("stages", str, "a time"))
        if len(stages) != RESOURCES or not sum(stages):
            fields.refuse("stages", f"{RESOURCES} times, of storage and CPUs, GPU, network, not all 0")
    fields.finish()
    return TrainedModel(name, size, compute, busy, skewed, cpu, noise, {**usual.speeds, **speeds}, stages)


def _finished(fields: TableFields, usual: HostKind) -> HostKind:
    host = _host(fields, usual)
    fields.finish()
    return host


def _host(fields: TableFields, usual: HostKind) -> HostKind:
    cpu = fields.number("cpu", usual.cpu)
    if cpu < 0:
        fields.refuse("cpu", "0 or more")
    return HostKind(fields.text("type", usual.gpu_type), cpu, fields.quantity("memory", parse_size, usual.memory))
