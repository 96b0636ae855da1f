"""Training steps as points of a sweep: ``workload.model`` and its parallelism, on a topology or the GPU's machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.placement import PACKED
from commsim.prediction.scenario import ENGINES

from .table import RESULTS

if TYPE_CHECKING:
    from commsim.core.network import Network

SIZES = ("tp", "pp", "cp", "ep", "vp", "replicas", "micro_batch", "global_batch", "sequence")
OVERLAP = ("expose", "hide_experts")
# Parameters of a step, as the flags of ``commsim workload step``, and the kind of each.
KINDS = {
    f"workload.{key}": kind
    for key, kind in {
        "model": "text", "gpu": "text", "ranks": "whole", **dict.fromkeys(SIZES, "whole"), "precision": "text",
        "factor": "number", "sharding": "text", "recompute": "truth", "frozen": "truth",
        "ignore_memory": "truth", "expose": "text", "attention": "text", "graphs": "truth", "hide_experts": "truth",
        "schedule": "text",
    }.items()
}  # fmt: skip


def check_step(own: Mapping[str, Any], *, on_network: bool) -> None:
    """Refuse parameters that are no step's, or too few.

    Raises
    ------
    InputError
        Naming them.
    """
    for name in own:
        if f"workload.{name}" not in KINDS:
            raise InputError(f"workload.{name} has no effect on a training step of workload.model")
    for name in ("gpu", "global_batch"):
        if name not in own:
            raise InputError(f"workload.model needs workload.{name}")
    if not on_network and "ranks" not in own:
        raise InputError("workload.model needs topology.name or workload.ranks")


def step_row(
    seed: int, parameters: Mapping[str, Any], own: Mapping[str, Any], network: Network | None
) -> dict[str, Any]:
    """Compute one point; columns as ``commsim workload step`` has them, without what are parameters here.

    Parameters
    ----------
    seed : int
        Seed of random placement and of ECMP.
    parameters, own : mapping of str to value
        Parameters by table and key, and those of the table ``workload``.
    network : Network, optional
        Network with its faults. Default: the machines of the GPU behind one switch.

    Raises
    ------
    CommsimError
        If the point cannot be computed.
    """
    from commsim.prediction.inputs import network_of
    from commsim.training.gpus import gpu
    from commsim.training.steps.ask import check_machines, network_for, setting_of, traffic_on
    from commsim.training.steps.predicted_step import predict_step
    from commsim.training.steps.step_setting import hidden_kinds

    options = {key: value for key, value in own.items() if key not in ("model", "gpu", "ranks", *OVERLAP)}
    damaged = any(f"topology.{key}" in parameters for key in ("fail", "scale"))
    built = network_of(network_for(gpu(own["gpu"]), own["ranks"])) if network is None else network
    check_machines(gpu(own["gpu"]), built)
    overlap = hidden_kinds(own.get("expose"), own.get("hide_experts", False))
    setting, _ = setting_of(
        own["model"], own["gpu"], own.get("ranks", len(built.endpoints)), overlap=overlap,
        **({"micro_batch": 1} | options),
    )  # fmt: skip
    strategy, engine = parameters.get("placement.strategy", PACKED), parameters.get("engine.name", ENGINES[0])
    traffic = traffic_on(built, setting.layout.n_ranks, strategy, seed, engine, damaged=damaged)
    return {key: value for key, value in predict_step(setting, traffic).row().items() if key in RESULTS}
