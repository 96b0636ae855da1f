"""The process of one pipeline stage: its first rank runs, and its streams are those of the common timeline."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from multiprocessing.connection import Client

from commsim.core.errors import CommsimError
from commsim.emulation.parent_watch import end_with_parent

from .compute import Compute
from .script import Script, run_script
from .stage_gpu import StageGpu, Stages

# Where a stage finds its parent: an address and the number of the stage.
SOCKET = "COMMSIM_EMULATE_STAGE"
__all__ = ["SOCKET", "StageJob", "run_stage"]


@dataclass(frozen=True, slots=True)
class StageJob:
    """What the process of a stage is told.

    Parameters
    ----------
    script : Script
        Program that all stages run.
    n_ranks, n_local : int
        Ranks of the world, and of a machine.
    compute : Compute
        Where the time of operators comes from.
    stages : Stages
        How ranks are divided.
    """

    script: Script
    n_ranks: int
    n_local: int
    compute: Compute
    stages: Stages


def run_stage() -> None:
    """Run a stage until its program has ended; called as the process begins."""
    from .host import Host

    address, _, number = os.environ.pop(SOCKET).rpartition(":")
    connection = Client(address, family="AF_UNIX")
    goes_on_alone = end_with_parent(connection.fileno())
    connection.send(int(number))
    job: StageJob = pickle.loads(connection.recv_bytes())
    gpu = StageGpu(connection)
    try:
        report = run_script(job.script, Host(job.n_ranks, job.compute, gpu, job.stages), job.n_local)
    except CommsimError as error:
        gpu.fail(str(error))
        raise SystemExit(1) from None
    goes_on_alone()
    gpu.end(report)
