"""Networks, schedules and workloads to and from files of other tools; ``commsim convert``, the old verb for all."""

from __future__ import annotations

from commsim.cli.flags import DefaultOf, Flags, Verb, flag, switched
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import parse_cost, parse_nccl_size, write_size
from commsim.report.answer import Answer, Lines, remarks


class Conversion(Flags):
    """What a conversion in either direction may need."""

    network: str | None = flag(
        metavar="NAME|FILE",
        help="for schedules: the network of the collective; required by ASTRA-sim's system layer and htsim's flows",
    )
    operation: str = flag(
        default=DefaultOf("commsim.formats.context:Context.operation"), help="operation of ASTRA-sim's system layer"
    )


class Reading(Conversion):
    """What reading a file of another tool needs."""

    from_: str | None = flag("--from", metavar="FORMAT", help="format of the input (default: detected)")
    helpers: int = flag(
        default=0,
        metavar="N",
        help="the last N ranks of a GOAL or Chakra file are switches or servers and take no part (helpers)",
    )


class Writing(Conversion):
    """What writing a file of another tool needs."""

    to: str | None = flag(metavar="FORMAT", help="format of the output (default: by suffix); `formats` lists them")
    size: str | None = flag(metavar="SIZE", help="size of the operation, for formats whose messages have sizes")
    gamma: str = flag(default="0ns/B", metavar="COST", help="cost of reducing, for GOAL and Chakra")
    min_bytes: str | None = flag(metavar="SIZE", help="smallest size for which MSCCL uses the schedule (default: 0)")
    max_bytes: str = flag(
        default=DefaultOf("commsim.formats.context:Context.max_bytes", write_size),
        metavar="SIZE",
        help="size from which MSCCL no longer uses the schedule",
    )
    gpu_type: str = flag(
        default=DefaultOf("commsim.formats.context:Context.gpu_type"), metavar="NAME", help="type of GPU, for SimAI"
    )


class FileImportConfig(Reading):
    """All flags of ``import``."""

    source: str = flag("source", metavar="FILE", help="file of another tool")
    output: str = flag("-o", required=True, metavar="FILE", help="file whose suffix names the format")


class FileExportConfig(Writing):
    """All flags of ``export`` of a file."""

    source: str = flag("source", metavar="FILE", help="file to convert to another format")
    output: str = flag("-o", required=True, metavar="FILE", help="file whose suffix names the format")


class ConvertConfig(Reading, Writing):
    """All flags of ``commsim convert``."""

    source: str | None = flag(
        "source", nargs="?", metavar="IN", help="a file, or a topology or collective, name:key=value,..."
    )
    target: str | None = flag("target", nargs="?", metavar="OUT", help="a file, whose suffix names the format")
    list: bool = switched(help="print the formats, and what each can hold")
    ranks: int | None = flag(metavar="N", help="number of ranks, for a collective named by IN")


def run(config: ConvertConfig) -> Answer:
    """List the formats, or convert."""
    if config.list:
        return formats()
    if config.source is None or config.target is None:
        raise InputError("give a file to read and a file to write, or --list")
    return convert_file(config, config.source, config.target, config.ranks)


def convert_file(
    config: Conversion, source: str, target: str, n_ranks: int | None = None, *, code_is: str = ""
) -> Answer:
    """Convert, and say what was lost.

    Parameters
    ----------
    config : Conversion
        Flags of reading, of writing, or of both.
    source, target : str
        Files, or names of ours.
    n_ranks : int, optional
        Number of ranks of a collective that is named.
    code_is : str
        What a file of Python makes: a ``network`` or a ``schedule``. Default: what the format holds.
    """
    from commsim.formats.catalogue import FORMATS
    from commsim.formats.context import Context
    from commsim.formats.convert import convert

    reading = config if isinstance(config, Reading) else Reading()
    writing = config if isinstance(config, Writing) else Writing()
    for name, way in ((reading.from_, "reads"), (writing.to, "writes")):
        known = [name for name in FORMATS if getattr(FORMATS[name], way)]
        if name is not None and name not in known:
            raise InputError(f"unknown format {name!r}; commsim {way} {', '.join(known)}")
    context = Context(
        n_ranks=n_ranks,
        size=None if writing.size is None else parse_nccl_size(writing.size, "--size"),
        gamma=parse_cost(writing.gamma, "--gamma"),
        network=config.network,
        operation=config.operation,
        min_bytes=0 if writing.min_bytes is None else parse_nccl_size(writing.min_bytes, "--min-bytes"),
        max_bytes=parse_nccl_size(writing.max_bytes, "--max-bytes"),
        gpu_type=writing.gpu_type,
        n_helpers=reading.helpers,
    )
    lost = convert(source, target, context, reading.from_, writing.to, code_is=code_is)
    return Answer([*remarks(Remark("lost", one, needed=True) for one in lost), Lines([f"{target}: written"])])


def formats(kind: str = "") -> Answer:
    """Return the formats, and what each can hold.

    Parameters
    ----------
    kind : str
        Only formats of a ``network``, a ``schedule`` or a ``workload``. Default: all.
    """
    from commsim.formats.catalogue import FORMATS

    lines = []
    for name, entry in FORMATS.items():
        if kind and kind not in (*entry.reads, *entry.writes):
            continue
        lines.append(f"{name:<14} {entry.summary}{', ' if entry.suffixes else ''}{' '.join(entry.suffixes)}")
        ways = (("read as a", entry.reads), ("written from a", entry.writes))
        lines.append(" " * 15 + "; ".join(f"{way} {' or '.join(kinds)}" for way, kinds in ways if kinds))
    return Answer([Lines(lines)])


COMMANDS = {"convert": Verb(ConvertConfig, run)}
