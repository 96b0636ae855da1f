"""Switch systems by name: which one a collective means, with which parameters, and which collective a system means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collectives import COLLECTIVES, found_parameters
from collectives.in_network.reduction_tree import register_tree
from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments, split_spec
from switch_model.systems import SYSTEMS, SystemSpec, parameters_of

# In place of a system: chunks in messages, without the packets, windows and latencies of any.
NONE = "none"


def register_systems() -> None:
    """Register the generic reduction tree for every system of switches that has no collective of its own."""
    names = {system for name in COLLECTIVES for system in COLLECTIVES[name].metadata["systems"]}
    for name in SYSTEMS:
        entry = SYSTEMS[name]
        if name not in names and name not in COLLECTIVES and not entry.build().hosts:
            register_tree(name)


def split_system(entry: Entry[Schedule], raw: Mapping[str, str]) -> tuple[dict[str, str], SystemSpec | None]:
    """Split what was written after a collective's name into its builder's parameters and those of its switch system.

    Returns
    -------
    dict of str to str
        For the builder.
    SystemSpec or None
        The system: the collective's usual one, or the one of its others that ``system=`` names; None for a collective
        without switches, and for ``system=none``.

    Raises
    ------
    InputError
        If a parameter is neither's, or the system is not one of the collective's.
    """
    systems = entry.metadata["systems"]
    if not systems:
        return dict(raw), None
    rest = {key: text for key, text in raw.items() if key in entry.parameters}
    more = {key: text for key, text in raw.items() if key not in rest}
    name = more.pop("system", systems[0])
    if name not in (*systems, NONE):
        raise InputError(f"{entry.name}: system must be one of {', '.join((*systems, NONE))}, got {name!r}")
    given = found_parameters(entry.metadata["needs"])
    own = [key for key in entry.parameters if key not in given]
    known = (*own, "system", *(() if name == NONE else parameters_of(SYSTEMS[name])))
    _refuse_unknown(entry.name, more, known)
    return rest, None if name == NONE else _spec(SYSTEMS[name], more)


def usual_system(entry: Entry[Schedule]) -> SystemSpec:
    """Return the system that a collective's plain name means."""
    return SystemSpec(SYSTEMS[entry.metadata["systems"][0]], {})


def named_system(
    text: str, flags: Mapping[str, Any], beside: tuple[str, ...] = ()
) -> tuple[SystemSpec, dict[str, str]]:
    """Read ``NAME:key=value,...`` of a system, or of a collective that means one, and flags that say the same.

    Parameters
    ----------
    text : str
        What the user wrote.
    flags : mapping of str to value
        Parameters given by flags; None where a flag was not given.
    beside : tuple of str
        Other keys allowed in `text` where aggregators are hosts, such as those of blocks that are not zero.

    Returns
    -------
    SystemSpec, dict of str to str
        And what was written for the other keys.

    Raises
    ------
    InputError
        If a parameter is unknown or given twice.
    """
    name, raw = split_spec(text)
    name = name.replace("-", "_")
    if name not in SYSTEMS and name in COLLECTIVES and COLLECTIVES[name].metadata["systems"]:
        name = raw.pop("system", COLLECTIVES[name].metadata["systems"][0])
    entry = SYSTEMS[name]
    given, known = {key: value for key, value in flags.items() if value is not None}, parameters_of(entry)
    for key in given:
        if key in raw:
            raise InputError(f"{key} is given twice, in --system and as a flag")
        if key not in known:
            raise InputError(f"{entry.name} has no {key}; it knows {', '.join(known)}")
    other = {key: raw.pop(key) for key in beside if key in raw and entry.build().hosts}
    _refuse_unknown(entry.name, raw, (*known, *(beside if entry.build().hosts else ())))
    spec = _spec(entry, raw)
    return SystemSpec(entry, {**spec.arguments, **given}), other


def _refuse_unknown(name: str, raw: Mapping[str, str], known: tuple[str, ...]) -> None:
    for key in raw.keys() - set(known):
        hint = did_you_mean(alike(key, known))
        raise InputError(f"{name} has no parameter {key!r}; {hint}known: {', '.join(known)}")


def _spec(entry: Entry[Any], raw: Mapping[str, str]) -> SystemSpec:
    return SystemSpec(entry, read_arguments(entry.build, raw, names=("n_bytes",)))
