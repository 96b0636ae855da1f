"""Run a program as the first of many ranks that are alike, or of stages of such ranks, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from commsim.core.errors import InputError
from commsim.core.files.socket_folders import socket_folder
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import Remark, as_remarks
from commsim.emulation.torch_ranks.inductor_folder import no_empty_folder
from commsim.prediction.inputs import NetworkLike, load_placement
from commsim.prediction.options import ScenarioOptions
from commsim.prediction.read import scenario_of
from commsim.real.library_rules import choice_of
from commsim.real.torch_backend import load_torch
from commsim.routing.routing import read_routing

from .alike_run import AlikeRun, RankReport
from .compute import Compute
from .network_times import NetworkTimes

__all__ = ["AlikeRun", "run_alike"]


@no_empty_folder()
def run_alike(
    program: Sequence[str],
    network: NetworkLike,
    ranks: int,
    compute: Compute,
    algorithms: dict[str, str],
    stages: int,
    eager: float,
    clock: str,
    **options: Unpack[ScenarioOptions],
) -> AlikeRun:
    """Run a program as the first rank of each stage, without data; the others of a stage are taken as alike.

    Parameters
    ----------
    program : sequence of str
        Command, such as ``["python", "train.py"]``.
    network
        Same as in :func:`commsim.predict`.
    ranks : int
        Number of ranks.
    compute : Compute
        Where the time of operators comes from.
    algorithms : mapping of str to str, optional
        Collectives for operations. Default: what runs on the network's machines, as in ``commsim run``.
    stages : int
        Number of pipeline stages, each of as many consecutive ranks. A process runs for each.
    eager : float, bytes
        Largest message between stages that is sent before its receive is posted.
    clock : {"virtual", "wall"}
        Clock that the program reads.
    **options
        Keywords of :func:`commsim.scenario_of`: placement, routing, seed, faults and costs of messages.

    Raises
    ------
    InputError
        If the program cannot be read, or a flag is wrong.
    BackendError
        If torch is missing.
    ProgramError
        If the program raises, is deadlocked, or does what ranks that are alike cannot do.
    """
    if stages < 1 or ranks % stages:
        raise InputError(f"--stages must divide the {ranks} ranks, got {stages}")
    load_torch()
    from .script import run_script, script_of

    script = script_of(program, clock)
    choice_of(None, [f"{operation}={name}" for operation, name in (algorithms or {}).items()])
    options["n_ranks"] = ranks
    scenario = scenario_of("", network, **options)
    read_routing(scenario.routing or scenario.network.routing)
    placement = scenario.placement
    if placement is None or isinstance(placement, str):
        placement = load_placement(placement or PACKED, scenario.network, ranks, scenario.seed)
    placement.check(scenario.network, ranks)
    times = NetworkTimes(
        scenario.network,
        placement,
        algorithms or {},
        scenario.seed,
        scenario.routing,
        scenario.wish.framing,
        options.get("hashes"),
    )
    n_local = _ranks_of_a_machine(scenario.network, placement)
    from .host import Host
    from .stage_gpu import Stages
    from .stage_process import StageJob
    from .stages import ADDRESS, StageRuns
    from .virtual_gpu import VirtualGpu

    reports: list[RankReport]
    if stages == 1:
        gpu = VirtualGpu(times)
        host = Host(ranks, compute, gpu, Stages(1, ranks, 0))
        reports, timeline = [run_script(script, host, n_local)], gpu.timeline
    else:
        size = ranks // stages
        runs = StageRuns(times, Stages(stages, size, 0), eager)
        with socket_folder(ADDRESS) as folder:
            reports = runs.run(
                lambda own: StageJob(script, ranks, n_local, compute, Stages(stages, size, own)), Path(folder)
            )
        timeline = runs.timeline
    notes = dict.fromkeys(remark for report in reports for remark in report.remarks)
    of_times = as_remarks(compute.source_lines(), "compute")
    remarks = (*scenario.remarks, *_assumed(ranks, stages), *of_times, *times.notes, *notes)
    cables = times.network
    if cables.software:
        cables = scenario_of("", network, **options | {"software": None}).network
    return AlikeRun(
        script.path.stem,
        times.network,
        timeline,
        tuple(reports),
        times.n_simulated,
        remarks,
        tuple(placement.nodes.tolist()),
        cables,
    )


def _assumed(ranks: int, stages: int) -> list[Remark]:
    """Say what is assumed of the ranks that do not run."""
    if stages == 1:
        ran = f"rank 0 of {ranks} ran, the others are taken as alike"
    else:
        firsts = ", ".join(str(stage * (ranks // stages)) for stage in range(min(stages, 8)))
        ran = (
            f"ranks {firsts}{', ...' if stages > 8 else ''} of {ranks} ran, the first of each of {stages} stages; "
            "the others are alike"
        )
    alike = "they call the same collectives at the same times; tensors have no data"
    free = "the host launches kernels in no time; collectives take no multiprocessors from computation"
    return [Remark("ranks-alike", ran, needed=True, details=alike), Remark("host-free", free)]


def _ranks_of_a_machine(network: Network, placement: Placement) -> int:
    """Ranks on the machine of the first one."""
    machine = network.machine[placement.nodes]
    return int((machine == machine[0]).sum()) if machine[0] >= 0 else 1
