"""Flags as frozen dataclasses: one field per flag, read once from the command line, and passed on as a value.

A verb declares a subclass of :class:`Flags`; groups of flags that several verbs share are such classes too, from
which the class of a verb inherits. Those of most verbs are here: outputs, ranks, costs of messages and sizes.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, dataclass_transform

from commsim.core.errors import InputError
from commsim.core.limits import MAX_HASHES
from commsim.core.units import parse_nccl_size, parse_nccl_sizes, write_time

if TYPE_CHECKING:
    from commsim.report.answer import Answer

# Flags that name a file to write, in every verb that has them.
WRITTEN = ("output", "json", "csv", "draw", "plot", "report", "osu", "timeline", "pcap", "tuner_csv")
# Methods that dataclasses need not write: one of 90 fields takes a millisecond to compile, for each class in a row.
WITHOUT: dict[str, Any] = {"init": False, "eq": False, "repr": False}
NUMBERS = {"int": int, "float": float}
# Headings of the help that come last, in this order; others stand before them.
LAST_TITLES = ("ranks", "sizes and iterations, as in nccl-tests (K, M, G: powers of 1024)", "what to predict",
               "faults", "engine and packets", "costs of messages", "output")  # fmt: skip

TOPOLOGY = "NAME:key=value,...|FILE"
MACHINES = "number of machines, same as machines=N in the network; if no fabric is named, one switch joins them"

# One name per thing in all verbs: the usual names of flags that some verbs call by the word of their papers.
USUAL_NAMES = {
    "workers": ("--ranks",),
    "network": ("--topology",),
    "iterations": ("-n", "--iters"),
    "warm_up": ("-w", "--warmup-iters"),
    "generator": ("--placement",),
}


class DefaultOf:
    """A default that stands elsewhere, in the code that takes it; its module is imported when the default is needed.

    Parameters
    ----------
    where : str
        Module and name, with a colon between them: a constant, ``CLASS.FIELD`` of a dataclass, or
        ``FUNCTION.PARAMETER``.
    written : callable, optional
        Function from the value there to the text that the flag takes, such as ``write_time``.
    """

    def __init__(self, where: str, written: Callable[[Any], str] | None = None) -> None:
        self.where, self.written = where, written

    def value(self) -> Any:
        """Return the default, as the flag takes it."""
        module, _, name = self.where.partition(":")
        owner, _, inner = name.partition(".")
        found = getattr(importlib.import_module(module), owner)
        if inner and dataclasses.is_dataclass(found):
            found = found.__dataclass_fields__[inner].default
        elif inner:
            found = inspect.signature(found).parameters[inner].default
        return found if self.written is None else self.written(found)

    def __str__(self) -> str:
        return str(self.value())


def percent(part: float) -> str:
    """Write a part of a whole as a flag takes it: ``1%``."""
    return f"{part * 100:.12g}%"


def flag(*names: str, default: Any = None, **options: Any) -> Any:
    """Declare a flag, as a field of a class of flags.

    Parameters
    ----------
    *names : str
        Names for argparse. Default: the field's name after two dashes; one without dashes is a positional argument.
    default : object
        Value without the flag, which the help names after its text. A number or a choice that other code takes without
        the flag is not written again here: :class:`DefaultOf` names where it stands.
    **options
        What ``add_argument`` takes. Type and action follow from the annotation of the field. `shown` has what the help
        names beside, as ``%(name)s``.
    """
    return dataclasses.field(default=default, metadata={"names": names, **options})


def switched(*names: str, **options: Any) -> Any:
    """Declare a flag that is on or off."""
    return flag(*names, default=False, **options)


def repeated(*names: str, **options: Any) -> Any:
    """Declare a flag that may be given several times."""
    return flag(*names, default=(), **options)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
@dataclasses.dataclass(frozen=True, kw_only=True, **WITHOUT)
class Flags:
    """Base of all classes of flags; its subclasses are frozen dataclasses."""

    # Heading in the help above the fields that a class adds; the usual one if empty.
    TITLE: ClassVar[str] = ""
    # Rare flags, which the help of a verb with many leaves out, and the engine with which they are frequent, or "";
    # None for one that is rare in a class from which this one inherits, and not here.
    RARE: ClassVar[Mapping[str, str | None]] = {}
    # Defaults that differ from those of the classes from which a class inherits.
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    # What may have been meant by a flag that there is not, or under "" by a word, which is {}; said behind the error.
    MEANT: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True, **WITHOUT)(cls)

    def __init__(self, **values: Any) -> None:
        for name, field in self.__dataclass_fields__.items():
            value = values.pop(name, field.default)
            object.__setattr__(self, name, value.value() if isinstance(value, DefaultOf) else value)
        if values:
            raise TypeError(f"{type(self).__name__} has no flag {next(iter(values))!r}")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add all flags to a parser."""
        bases = cls.__mro__[::-1]
        titles = {name: base.__dict__.get("TITLE", "") for base in bases for name in inspect.get_annotations(base)}
        rare = {name: engine for base in bases for name, engine in base.__dict__.get("RARE", {}).items()}
        groups: dict[str, Any] = {"": parser}
        declared = {field.name: _declaration(field) for field in dataclasses.fields(cls)}
        flags = {name for names, _ in declared.values() for name in names}
        first = [title for title in titles.values() if title not in LAST_TITLES]
        for title in dict.fromkeys((*first, *(title for title in LAST_TITLES if title in titles.values()))):
            groups.setdefault(title, title and parser.add_argument_group(title))
        for field_name, (names, options) in declared.items():
            usual = USUAL_NAMES.get(field_name, ())
            if names[0].startswith("-") and not flags.intersection(usual):
                names = (*usual, *names)
            more = {"rare_without": rare.get(field_name), **options.pop("shown", {})}
            vars(groups[titles[field_name]].add_argument(*names, **options)).update(more)
        if "topology" in declared and "machines" not in declared:
            groups.get("ranks", parser).add_argument("--machines", metavar="N", help=MACHINES)
        if "-v" not in parser._option_string_actions:
            parser.add_argument(
                "-v", dest="show_all", action="store_true", help="show all columns and notes, even on a terminal"
            )
        parser.set_defaults(**cls.DEFAULTS)

    @classmethod
    def from_args(cls, args: argparse.Namespace, code: Sequence[str] | None = None) -> Any:
        """Return the flags that were parsed.

        Parameters
        ----------
        args : argparse.Namespace
            What the parser returned.
        code : sequence of str, optional
            Files of Python that the flags may have executed. Default: all that they name.

        Raises
        ------
        InputError
            If a seed is negative, a number of hashes out of its range, or a number of machines is given without one.
        """
        values = {field.name: getattr(args, field.name) for field in dataclasses.fields(cls)}
        if (machines := getattr(args, "machines", None)) is not None and "machines" not in values:
            if not values["topology"]:
                raise InputError("--machines counts those of --topology, such as dgx-h100: give both")
            from commsim.core.spec import network_with

            values["topology"] = network_with(values["topology"], f"machines={machines}")
        seed = values.get("seed")
        if isinstance(seed, int) and seed < 0:
            raise InputError(f"--seed must be 0 or more, got {seed}")
        hashes = values.get("hashes")
        if isinstance(hashes, int) and not 1 <= hashes <= MAX_HASHES:
            raise InputError(f"--hashes must be 1..{MAX_HASHES}, got {hashes}")
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if v is not None}
        return cls(**{k: _code_of(v, code) if ".py" in str(v) else v for k, v in options.items()})

    def flags(self, *without: str) -> dict[str, Any]:
        """Return flags and values as the JSON of results has them, without where the answer goes and those named."""
        names = [field.name for field in dataclasses.fields(self) if field.name not in ("json", "csv", *without)]
        return {name: getattr(self, name) for name in names}

    def given(self, *names: str) -> list[str]:
        """Return those of the named flags that have another value than their default, as on the command line."""
        usual = {name: self.DEFAULTS.get(name, self.__dataclass_fields__[name].default) for name in names}
        usual |= {name: default.value() for name, default in usual.items() if isinstance(default, DefaultOf)}
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) != usual[name]]


class Verb(NamedTuple):
    """One command.

    Parameters
    ----------
    config : type of Flags
        Its flags.
    run : callable
        Function from the flags to the answer.
    summary : str
        What it does; for a verb of a verb.
    is_usual : bool
        Whether it is meant where no verb of the verb is named.
    """

    config: type[Flags]
    run: Callable[[Any], Answer]
    summary: str = ""
    is_usual: bool = False


def _code_of(value: Any, code: Sequence[str] | None) -> Any:
    """Return the value of a flag; text that names code becomes text that may be executed."""
    if isinstance(value, tuple):
        return tuple(_code_of(item, code) for item in value)
    if not isinstance(value, str):
        return value
    from commsim.core.files.own_files import allowed
    from commsim.core.spec import OwnFile

    return OwnFile(value) if code is None else allowed(value, code)


def _declaration(field: dataclasses.Field[Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names and options of ``add_argument``."""
    options = dict(field.metadata)
    has_default = field.default is not None and field.default is not False and field.default not in ((), "")
    if has_default and "(default" not in options.get("help", ""):
        options["help"] = f"{options.get('help', '')} (default: %(default)s)".strip()
    names: tuple[str, ...] = options.pop("names")
    kind = str(field.type).partition(" ")[0].partition(",")[0].removeprefix("tuple[")
    if kind in NUMBERS:
        options.setdefault("type", NUMBERS[kind])
    if str(field.type) == "bool":
        options["action"] = "store_true"
    elif kind == "bool":
        options["action"] = argparse.BooleanOptionalAction
    elif str(field.type).startswith("tuple") and "nargs" not in options:
        options["action"] = "append"
    else:
        options["default"] = field.default
    if names and not names[0].startswith("-"):
        return (field.name,), options
    if not any(name.startswith("--") for name in names):
        names += (f"--{field.name.replace('_', '-')}",)
    return names, {**options, "dest": field.name}


class WithJson(Flags):
    """``--json`` and ``--csv``, of nearly all verbs."""

    TITLE: ClassVar[str] = "output"
    json: str | None = flag(
        "-J", nargs="?", const="-", metavar="FILE",
        help="also write the results as JSON; without FILE or with -: to standard output, no tables",
    )  # fmt: skip
    csv: str | None = flag(metavar="FILE", help="also write the rows as CSV; -: to standard output, no tables")


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
