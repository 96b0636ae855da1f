"""Flags of ``commsim workload calls``."""

from __future__ import annotations

from typing import ClassVar

from commsim.cli.flags import flag, repeated
from commsim.training.cli.message_flags import Communication


class WorkloadCallsConfig(Communication):
    """All flags of ``commsim workload calls``."""

    TITLE: ClassVar[str] = ""
    files: tuple[str, ...] = flag(
        "files",
        nargs="+",
        metavar="FILE",
        help="one file per rank: Kineto trace, flight recorder (JSON or pickle), Chakra trace or NCCL inspector log",
    )
    name: str | None = flag(metavar="TEXT", help="name of the job (default: that of the first file)")
    period: str | None = flag(metavar="TIME", help="length of an iteration, if nothing in the profile repeats")
    gap: str = flag(default="0ms", metavar="TIME", help="phases of the job at most this far apart are merged")
    job: str | None = flag(metavar="FILE.json", help="write the job for `commsim place`: its phases on a link")
    graph: str | None = flag(metavar="FILE.toml", help="write one iteration as tasks, for `workload run --graph`")
    kernels: str | None = flag(metavar="FILE.toml", help="names of kernels that exchange data, with their operations")
    size: tuple[str, ...] = repeated(
        metavar="NAME=SIZE", help="size of the calls whose kernel or operation contains NAME; repeatable"
    )
    ranks: int | None = flag(metavar="N", help="with --network: number of ranks, a multiple of the profile's")
    grow: tuple[str, ...] = repeated(
        metavar="GROUP", help="process group that grows with --ranks (default: the data-parallel one); repeatable"
    )
    algorithm: tuple[str, ...] = repeated(
        metavar="OPERATION=NAME", help="with --network: collective to use (default: as in `run`); repeatable"
    )
    phases: str | None = flag(metavar="FILE.json", help="write the re-timed job's phases, for `place` and `cluster`")
    timeline: str | None = flag(metavar="FILE.json", help="write the re-timed step as trace events")
    report: str | None = flag(metavar="FILE.html", help="write a page of the re-timed calls")
