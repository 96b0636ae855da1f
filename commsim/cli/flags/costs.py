"""Flags that several verbs which predict share: costs of messages, sizes, and where ranks are placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from commsim.core.errors import InputError
from commsim.core.units import parse_nccl_size, parse_nccl_sizes, write_time

from . import DefaultOf, Flags, flag

TOPOLOGY = "NAME:key=value,...|FILE"
OVERHEAD = DefaultOf("commsim.prediction.read:DEFAULT_OVERHEAD", write_time)


class Placing(Flags):
    """How many ranks there are, and where."""

    TITLE: ClassVar[str] = "ranks"
    ranks: int | None = flag(
        "-g", "--ranks", metavar="N", help="number of ranks (default: all hosts, or those of a list of machines)"
    )
    placement: str | None = flag(
        metavar="NAME|LIST|FILE",
        help="packed, spread, random or another strategy; machines such as m[0-7,16]; a host file; or a saved "
        "placement (default: packed)",
    )


class CostFlags(Flags):
    """What a message and a reduction cost."""

    TITLE: ClassVar[str] = "costs of messages"
    RARE: ClassVar[Mapping[str, str | None]] = {"recv_overhead": "", "reduce_rate": ""}
    overhead: str | None = flag(
        metavar="TIME",
        help="time per message at the sender, o of LogP (default: %(usual)s, or 0us for GPUs of machines)",
        shown={"usual": OVERHEAD},
    )
    recv_overhead: str | None = flag(metavar="TIME", help="time per message at the receiver")
    reduce_rate: str | None = flag(metavar="RATE", help="rate at which a rank reduces, such as 10GB/s (1/gamma)")

    software: str | None = flag(
        metavar="NAME",
        help="communication library whose measured rate per port is used, such as nccl-tcp (default: no software cost)",
    )


class Sizes(Flags):
    """The size flags of nccl-tests: ``-b`` to ``-e`` by factors of ``-f`` or steps of ``-i``, ``-n`` and ``-w``.

    ``--size`` is a list of sizes.
    """

    TITLE: ClassVar[str] = "sizes and iterations, as in nccl-tests (K, M, G: powers of 1024)"
    RARE: ClassVar[Mapping[str, str | None]] = {"stepbytes": "", "warmup_iters": ""}
    size: str | None = flag(metavar="SIZE[,SIZE...]", help="one size or several, in place of -b and -e")
    minbytes: str = flag("-b", default="32M", metavar="SIZE", help="smallest size in bytes")
    maxbytes: str = flag("-e", default="32M", metavar="SIZE", help="largest size")
    stepfactor: str = flag("-f", default="2", metavar="N", help="factor between sizes, such as 2 or 1.5")
    stepbytes: str | None = flag("-i", metavar="SIZE", help="step between sizes, in place of a factor")
    iters: int | None = flag(
        "-n", metavar="N", help="iterations to measure; a prediction needs them only with --start-jitter"
    )
    warmup_iters: int | None = flag("-w", metavar="N", help="iterations before the measured ones")

    @property
    def asks_sizes(self) -> bool:
        """Whether sizes other than the usual one are asked for."""
        return bool(self.given("size", "minbytes", "maxbytes", "stepfactor", "stepbytes"))

    def sizes(self) -> list[int]:
        """Return the sizes asked for, in bytes.

        Raises
        ------
        InputError
            If a size or the factor is wrong, --size and others are given, or a number of iterations is too small.
        """
        if self.size is None:
            sizes = parse_nccl_sizes(self.minbytes, self.maxbytes, self.stepfactor, self.stepbytes)
        else:
            if flags := self.given("minbytes", "maxbytes", "stepfactor", "stepbytes"):
                raise InputError(f"--size and {flags[0]} both say which sizes; give one of them")
            sizes = sorted({parse_nccl_size(text, "--size") for text in self.size.split(",")})
        for name, value, least in (("-n", self.iters, 1), ("-w", self.warmup_iters, 0)):
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, got {value}")
        return sizes
