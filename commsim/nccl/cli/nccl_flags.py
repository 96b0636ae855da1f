"""Flags of ``commsim nccl``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from collectives.nccl.call import NEWEST, OLDEST
from commsim.cli.flags import TOPOLOGY, DefaultOf, Placing, WithJson, flag, repeated, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.errors import InputError
from commsim.nccl.nccl_setting import GENERATIONS

RELEASES = [f"{major}.{minor}" for major, minor in (OLDEST, NEWEST)]
OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")


class NcclConfig(Hashes, Faults, Placing, WithJson):
    """All flags of ``commsim nccl``."""

    topology: str | None = flag(metavar=TOPOLOGY, help="network, such as dgx-h100@star:machines=2")
    nccl_version: str | None = flag(
        metavar=f"{RELEASES[0]}..{RELEASES[1]}", help=f"NCCL release whose rules are used (default: {RELEASES[1]})"
    )
    operation: tuple[str, ...] = repeated(
        choices=OPERATIONS, metavar="NAME", help=f"{', '.join(OPERATIONS)} (default: all); repeatable"
    )
    size: tuple[str, ...] = repeated(
        metavar="SIZE[,SIZE...]",
        help="also print, for these sizes, the times that commsim run predicts, and with -v NCCL's estimate for every "
        "algorithm; repeatable",
    )
    minbytes: str = flag("-b", default="1", metavar="SIZE", help="smallest size of the choices")
    maxbytes: str = flag("-e", default="8G", metavar="SIZE", help="largest size")
    stepfactor: str | None = flag("-f", metavar="N", help="also print times, for sizes from -b to -e by this factor")
    gpu: str | None = flag(choices=GENERATIONS, help="GPU generation, if the network does not name it")
    cpu: str | None = flag(choices=("intel", "amd", "other"), help="CPU vendor, if the network does not name it")
    graph: str | None = flag(
        metavar="FILE.xml", help="file that NCCL wrote for NCCL_GRAPH_DUMP_FILE, with the channels it found"
    )
    channels: str | None = flag(
        metavar="N:RATE",
        help="number (after NCCL has doubled it) and rate of the channels of rings and trees, such as 12:30GB/s",
    )
    nvls: str | None = flag(metavar="N:RATE|none", help="number and rate of the channels of NVLink SHARP")
    nic: str | None = flag(metavar="RATE", help="rate that NCCL assumes for a NIC, such as 400Gbps")
    net_type: str | None = flag(
        choices=("PIX", "PXB", "P2C", "PXN", "PHB", "SYS"),
        help="type of path from a GPU to its NIC; the shortest is listed first",
    )
    net_latency: str | None = flag(metavar="TIME", help="latency of the network plugin")
    min_ctas: str | None = flag(metavar="N", help="least number of channels of a call (NCCL_MIN_CTAS)")
    max_ctas: str | None = flag(metavar="N", help="largest number of channels of a call (NCCL_MAX_CTAS)")
    buffer: str | None = flag(metavar="SIZE", help="buffer of a connection with Simple (NCCL_BUFFSIZE)")
    socket_threads: str | None = flag(metavar="N", help="threads of a rank over sockets (NCCL_SOCKET_NTHREADS)")
    net_chunk: str | None = flag(metavar="SIZE", help="chunk of messages between machines (NCCL_P2P_NET_CHUNKSIZE)")
    nvls_chunk: str | None = flag(metavar="SIZE", help="largest chunk of NVLink SHARP (NCCL_NVLS_CHUNKSIZE)")
    collnet: bool = switched(help="assume that the network reduces (SHARP) and its plugin is enabled")
    rows: str | None = flag(
        "--from", metavar="FILE", help="write rules from results instead (run --json, a sweep, nccl-tests)"
    )
    nodes: int = flag(
        default=DefaultOf("commsim.nccl.tuner_rules:Rule.n_nodes"),
        metavar="N",
        help="with --from: number of nodes for which the rules hold (default: any)",
    )
    tuner_csv: str | None = flag(metavar="FILE", help="write the choices as rules for NCCL's tuner plugin")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add all flags to a parser; the network may stand without ``--topology``, as for ``commsim expect``."""
        parser.add_argument("network", nargs="?", metavar=TOPOLOGY, help="the same as --topology")
        super().add_arguments(parser)

    @classmethod
    def from_args(cls, args: argparse.Namespace, code: Sequence[str] | None = None) -> Any:
        """Return the flags that were parsed.

        Raises
        ------
        InputError
            If two networks are given.
        """
        if args.network is not None and args.topology is not None:
            raise InputError(f"two networks: {args.network} and --topology {args.topology}; give one")
        args.topology = args.topology or args.network
        return super().from_args(args, code)
