"""What jobs are taken to do in an iteration: a table of models.

The sizes are those of CASSINI's Table 3 (where it gives a range, the smallest). **Everything else is assumed**: seconds
of computation per iteration on a reference GPU, how busy the model keeps it, speeds on other GPUs, CPUs. Of VGG16 the
computation is CASSINI's (section 2: 141 of 255 ms). All can be set in a file, see :mod:`commsim.cluster.assumptions`.

Traffic follows from the size: in each iteration all workers all-reduce the gradients in a ring, so every host sends
``2 (g-1)/g`` times the size, at :data:`EFFICIENCY` of its port's rate.

References
----------
Rajasekaran et al., "CASSINI", NSDI 2024, Table 3 and section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.workload.sharing.periodic import PeriodicJob, Phase

EFFICIENCY = 0.75
"""Share of a port's rate that a ring all-reduce gets: VGG16's 528 MB in 114 ms are 74 % of 50 Gb/s (assumed of all)."""

_CONVOLUTIONS: dict[str, float] = {"p100": 0.55, "v100": 1.0, "a100": 1.7}
_TRANSFORMERS: dict[str, float] = {"p100": 0.4, "v100": 1.0, "a100": 2.4}


@dataclass(frozen=True, slots=True)
class Model:
    """What one model does.

    Parameters
    ----------
    name : str
        As traces name it.
    size : float, bytes
        Of the gradients that are all-reduced.
    compute : float, s
        Of one iteration without communication, on a reference GPU.
    busy : float
        Share of the GPU's time that it uses while it computes; two jobs whose shares add up to at most 1 can run on
        the same GPU unhindered.
    skewed : bool
        Whether few tensors hold most of the size, so that scattered placement hurts (Tiresias).
    cpu : float
        CPUs per GPU that it needs to run at full speed; 0 for a model that does not mind.
    noise : float
        Gradient noise scale in units of one GPU's batch: with g GPUs a sample is worth ``noise/(noise + g)`` (Pollux).
    speeds : mapping of str to float
        Speed of computation by type of GPU, 1 for a type that is not named.
    """

    name: str
    size: float
    compute: float
    busy: float = 0.9
    skewed: bool = False
    cpu: float = 0.0
    noise: float = 32.0
    speeds: Mapping[str, float] = field(default_factory=dict)


def _model(name: str, megabytes: float, compute: float, busy: float, skewed: bool, transformer: bool) -> Model:
    return Model(name, megabytes * 1e6, compute, busy, skewed, speeds=_TRANSFORMERS if transformer else _CONVOLUTIONS)


MODELS = {
    model.name: model
    for model in (
        _model("vgg11", 507, 0.120, 0.90, True, False),
        _model("vgg16", 528, 0.141, 0.95, True, False),
        _model("vgg19", 549, 0.160, 0.95, True, False),
        _model("wideresnet101", 243, 0.150, 0.95, False, False),
        _model("resnet50", 98, 0.120, 0.85, False, False),
        _model("bert", 450, 0.200, 0.80, False, True),
        _model("roberta", 800, 0.300, 0.85, False, True),
        _model("camembert", 266, 0.200, 0.80, False, True),
        _model("xlm", 1116, 0.350, 0.85, False, True),
        _model("gpt1", 650, 0.300, 0.90, False, True),
        _model("gpt2", 1623, 0.500, 0.90, False, True),
        _model("gpt3", 1952, 0.600, 0.95, False, True),
        _model("dlrm", 890, 0.250, 0.40, True, False),
    )
}


def profile(model: Model, name: str, gpus: int, n_hosts: int, port: float, gpu_type: str = "") -> PeriodicJob:
    """Say what a job of `model` does on the network.

    Parameters
    ----------
    gpus, n_hosts : int
        On how many of each it runs; on one host it sends nothing that others notice.
    port : float, bytes/s
        Of a host.
    gpu_type : str
        The slowest of its GPUs.
    """
    compute = model.compute / model.speeds.get(gpu_type, 1.0)
    if n_hosts < 2 or not model.size:
        return PeriodicJob(name, gpus, compute, ())
    rate = EFFICIENCY * port
    duration = 2 * (gpus - 1) / gpus * model.size / rate
    return PeriodicJob(name, gpus, compute + duration, (Phase(compute, duration, rate),))
