"""The extensions: which there are, and what each brings, by names that are imported when something asks for them.

An extension is a package with a function ``register(house)`` in its ``__init__.py``, which imports nothing at its top:

    def register(house: House) -> None:
        house.works["traffic"] = "commsim.traffic.host_traffic:TrafficWork"

Packages that are installed beside commsim name theirs as an entry point of the group ``commsim.extensions``. These are
read only for a name that none of ours has, so that no command waits for them.
"""

from __future__ import annotations

import functools
import importlib
from collections import UserDict
from typing import Any

from commsim.core.errors import InputError

# Packages of commsim, in the order in which they are registered, and so tried.
EXTENSIONS = (
    "nccl", "packets", "switches", "jobs", "traffic", "sparse", "experts", "auto", "ranking", "real", "emulation",
    "placement", "training", "papers", "live", "profiles", "sweep", "formats", "pages",
    "diagnosis", "costmodel",
)  # fmt: skip
# What the core itself brings to packages below the one that has it.
CORE = "commsim.prediction"
# What the core's own verbs do, each of which is a module of ``commsim.cli``.
CORE_VERBS = {
    "run": "predict how long collectives take on a network",
    "topo": "list, show, check, save, import and export topologies; list commercial machines and networks",
    "schedule": "list, show, check, save, import and export schedules",
    "examples": "write the example files that the documentation names",
    "schema": "print the JSON Schema of what a verb writes with --json",
    "warmup": "compile all Numba kernels now, so that no command waits for the compiler",
    "doctor": "print what this machine supports",
}
GROUP = "commsim.extensions"


class LazyTable(UserDict[str, Any]):
    """What is brought of one sort, by name; a value is imported when it is asked for.

    A name is in it if one of our own extensions brings it, or one of an installed package that was read already.

    Parameters
    ----------
    sort : str
        Word for an entry in messages.
    """

    def __init__(self, sort: str) -> None:
        super().__init__()
        self.sort = sort

    def __setitem__(self, name: str, place: str) -> None:
        """Bring a value, by its place ``module:attribute``, or ``module``."""
        if name in self.data:
            raise InputError(f"two extensions bring the {self.sort} {name!r}: {self.data[name]} and {place}")
        self.data[name] = place

    def __getitem__(self, name: str) -> Any:
        found = self.get(name)
        if found is None:
            raise InputError(f"no extension that is installed brings the {self.sort} {name!r}{house().told_missing()}")
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or a default where no extension brings it, those of installed packages included."""
        if name not in self.data:
            house().read_installed()
        if name not in self.data:
            return default
        try:
            return found_at(self.data[name])
        except ModuleNotFoundError as error:  # of an extension that this one needs
            if not house().is_missing(error.name or ""):
                raise
            return default


def found_at(place: str) -> Any:
    """Return what is at a place ``module:attribute``, or ``module``."""
    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


class House:
    """What the extensions bring, one table for each sort.

    Attributes
    ----------
    works : LazyTable
        Kinds of work, classes of ``commsim.prediction.work_plan.Work``, by the keyword or the text that asks for each.
    planners : LazyTable
        Planners of registered collectives, by a need, a key of the metadata or a parameter of these.
    engines : LazyTable
        Engines by name.
    ways : LazyTable
        Ways of the flow engine by the method that asks for each.
    networks, machines, schedules : LazyTable
        Readers of files of other tools, by suffix.
    reports : LazyTable
        What an engine adds to the table of a prediction, by its name.
    questions : LazyTable
        Kinds of questions of ``commsim run``.
    flags : LazyTable
        Groups of flags of the verbs that predict collectives.
    renderings : LazyTable
        What ``commsim run`` makes of an answer, by flag.
    remarks : LazyTable
        Functions from results to what is to be said beside them, by the counter, field or engine of results that asks.
    services : LazyTable
        What there is one of, such as a notebook's page of a value.
    schemas : LazyTable
        Functions that return a JSON Schema, by the name of what has it.
    doctor : LazyTable
        Functions that return rows of ``commsim doctor``.
    warmups : dict of str to list of str
        Lines of each part of ``commsim warmup``: commands, and functions that take a folder, as ``module:function``.
    own_kernels : set of str
        Parts of ``commsim warmup`` that share no kernel with another.
    verbs : dict of str to list of str
        Modules with commands of each verb of the command line.
    summaries : dict of str to str
        What each verb does.
    programs : set of str
        Verbs that execute a program of the user's in this process, which may multiply large matrices.
    """

    def __init__(self) -> None:
        self.works = LazyTable("work")
        self.planners = LazyTable("planner of collectives with")
        self.engines = LazyTable("engine")
        self.ways = LazyTable("way of the flow engine")
        self.networks = LazyTable("reader of networks")
        self.machines = LazyTable("reader of machines")
        self.schedules = LazyTable("reader of schedules")
        self.reports = LazyTable("report of engine")
        self.questions = LazyTable("answer to the question of")
        self.flags = LazyTable("flags of")
        self.renderings = LazyTable("rendering")
        self.remarks = LazyTable("remark on results with")
        self.services = LazyTable("service")
        self.schemas = LazyTable("schema of")
        self.doctor = LazyTable("rows of doctor")
        self.warmups: dict[str, list[str]] = {}
        self.own_kernels: set[str] = set()
        self.verbs: dict[str, list[str]] = {}
        self.summaries: dict[str, str] = {}
        self.programs: set[str] = set()
        self.missing: list[str] = []
        self._has_read = False

    def commands(self, module: str, **summaries: str) -> None:
        """Bring the ``COMMANDS`` of a module: its verbs, with what each does; empty where another module says so."""
        for verb, summary in summaries.items():
            self.verbs.setdefault(verb, []).append(module)
            self.summaries[verb] = summary or self.summaries.get(verb, "")

    def warmup(self, part: str, *lines: str, own: bool = False) -> None:
        """Bring lines of a part of ``commsim warmup``, after those that there are, and whether it shares no kernel."""
        self.warmups.setdefault(part, []).extend(lines)
        if own:
            self.own_kernels.add(part)

    def modules_of(self, verb: str) -> list[str]:
        """Return the modules of a verb; none if no extension brings it."""
        if verb not in self.verbs:
            self.read_installed()
        return self.verbs.get(verb, [])

    def read_installed(self) -> None:
        """Register the extensions of installed packages, once."""
        if self._has_read:
            return
        self._has_read = True
        from importlib.metadata import entry_points

        for one in entry_points(group=GROUP):
            one.load()(self)

    def is_missing(self, module: str) -> bool:
        """Whether a module is of an extension of ours that is not there."""
        return any(f"{module}.".startswith(f"commsim.{name}.") for name in self.missing)

    def told_missing(self) -> str:
        """Return which of our own extensions are not there, for a message."""
        return f" (not there: {', '.join(self.missing)})" if self.missing else ""


@functools.cache
def house() -> House:
    """Return what all extensions bring."""
    made = House()
    for verb, what in CORE_VERBS.items():
        made.commands(f"commsim.cli.{verb}", **{verb: what})
    for package in (CORE, *(f"commsim.{name}" for name in EXTENSIONS)):
        try:
            module = importlib.import_module(package)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            made.missing.append(package.partition(".")[2])
        else:
            module.register(made)
    return made
