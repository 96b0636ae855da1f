"""What is assumed of models and hosts, and a file that sets it.

The file::

    restart = "30s"                # lost whenever a job starts again after a preemption, or with other GPUs

    [models.vgg16]                 # changes that row of the table; a new name adds one
    size = "528MB"
    compute = "141ms"
    busy = 0.95
    skewed = true
    cpu = 3
    noise = 32
    speeds = {v100 = 1.0, a100 = 1.7}

    [hosts]                        # of all hosts
    type = "v100"
    cpu = 96
    memory = "512GiB"
    inference = ["h6", "h7"]       # belong to an inference cluster, which lends them
    [hosts.per_host.h3]            # of one
    type = "a100"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.formats.fields import Fields
from commsim.core.formats.files import read_tree
from commsim.core.units import parse_size, parse_time

from .models import MODELS, Model


@dataclass(frozen=True, slots=True)
class HostKind:
    """What a host is besides its GPUs; CPUs and memory of 0 are not limited."""

    gpu_type: str = ""
    cpu: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Everything that neither the trace nor the cluster's file says.

    Parameters
    ----------
    models : mapping of str to Model
        The table.
    host : HostKind
        Of hosts that `hosts` does not name.
    hosts : mapping of str to HostKind
        By the name of the node.
    inference : tuple of str
        Hosts that inference lends.
    restart : float, s
        Lost by a job that starts again.
    """

    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    host: HostKind = HostKind()
    hosts: Mapping[str, HostKind] = field(default_factory=dict)
    inference: tuple[str, ...] = ()
    restart: float = 30.0


def read_assumptions(path: str | Path) -> Assumptions:
    """Read a .toml (or .json) file of assumptions.

    Raises
    ------
    InputError
        Naming the file, the line and the field that is wrong.
    """
    top = Fields(read_tree(path), path)
    models = dict(MODELS)
    table = top.table("models")
    for name in table:
        models[name] = _model(table.table(name), name)
    hosts = top.table("hosts")
    usual = _host(hosts, HostKind())
    per_host = hosts.table("per_host")
    named = {name: _finished(per_host.table(name), usual) for name in per_host}
    inference = tuple(hosts.items("inference", str, "the name of a host")) if "inference" in hosts else ()
    hosts.finish()
    restart = top.quantity("restart", parse_time, 30.0)
    top.finish()
    return Assumptions(models, usual, named, inference, restart)


def _model(fields: Fields, name: str) -> Model:
    old = MODELS.get(name)
    size = fields.quantity("size", parse_size, old.size if old else None)
    compute = fields.quantity("compute", parse_time, old.compute if old else None)
    if not compute > 0:
        fields.refuse("compute", "more than 0")
    usual = old or Model(name, size, compute)
    busy, cpu, noise = (fields.number(key, getattr(usual, key)) for key in ("busy", "cpu", "noise"))
    for key, good in (("busy", 0 < busy <= 1), ("cpu", cpu >= 0), ("noise", noise > 0)):
        if not good:
            fields.refuse(key, "0..1" if key == "busy" else "positive")
    table = fields.table("speeds")
    speeds = {kind: table.number(kind) for kind in table}
    for kind, speed in speeds.items():
        if not speed > 0:
            table.refuse(kind, "more than 0")
    skewed = fields.truth("skewed", usual.skewed)
    fields.finish()
    return Model(name, size, compute, busy, skewed, cpu, noise, {**usual.speeds, **speeds})


def _finished(fields: Fields, usual: HostKind) -> HostKind:
    host = _host(fields, usual)
    fields.finish()
    return host


def _host(fields: Fields, usual: HostKind) -> HostKind:
    cpu = fields.number("cpu", usual.cpu)
    if cpu < 0:
        fields.refuse("cpu", "0 or more")
    return HostKind(fields.text("type", usual.gpu_type), cpu, fields.quantity("memory", parse_size, usual.memory))
