"""Presets: commercial machines and fabrics; each number with its source, nominal and measured.

To add one, add it to ``topologies/presets.toml``; a preset is data. What has no source is left out.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import MAX_HINTS, InputError, close_names, meant_or_known

# Prints all presets.
LISTED = "commsim topo presets"


@dataclass(frozen=True, slots=True)
class Rate:
    """One bandwidth of a preset, per direction.

    Parameters
    ----------
    parameter : str
        Parameter of the function that builds it.
    spec, effective : str or None
        Rate as sold, and as measured or as those who measured take it; one of the two may be unknown.
    source : str
        Source of both.
    """

    parameter: str
    spec: str | None
    effective: str | None
    source: str

    def used(self, rates: str = "effective") -> str:
        """Return the number that is used when `rates` ("effective" or "spec") are asked for: that, else the other."""
        first, second = (self.spec, self.effective) if rates == "spec" else (self.effective, self.spec)
        return first or second or ""


@dataclass(frozen=True, slots=True)
class Preset:
    """A machine or a network that exists, as the function that builds it and its arguments.

    Parameters
    ----------
    name : str
        Name as people write it: ``dgx-h100``.
    summary : str
        What it is, in one line.
    builder : str
        Name of a host type or of a topology.
    arguments : mapping of str to str
        Arguments that are no rates, as on a command line.
    rates : tuple of Rate
        The others.
    sources : tuple of str
        Sources of the counts, and what was assumed.
    host : str, optional
        Machine that is attached to the topology, where the topology is one of plain hosts.
    hardware : mapping of str to str
        What no link shows: generation of the GPUs, vendor of the CPUs, network (:mod:`commsim.core.machines.hardware`).
    """

    name: str
    summary: str
    builder: str
    arguments: Mapping[str, str]
    rates: tuple[Rate, ...]
    sources: tuple[str, ...]
    host: str | None = None
    hardware: Mapping[str, str] = field(default_factory=dict)

    def text(self, rates: str = "effective") -> str:
        """Return what to write on a command line instead of the preset's name."""
        values = {**self.arguments, **{rate.parameter: rate.used(rates) for rate in self.rates}, **self.hardware}
        spec = f"{self.builder}:{','.join(f'{key}={value}' for key, value in values.items())}"
        return f"{self.host}@{spec}" if self.host else spec


class Presets(Mapping[str, Preset]):
    """All presets by name, in the order of names; read on first use."""

    @functools.cached_property
    def _all(self) -> dict[str, Preset]:
        read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
        shared = read["rates"]

        def rate(of: str | dict[str, str]) -> Rate:
            row = shared[of] if isinstance(of, str) else of
            return Rate(row["parameter"], row.get("spec"), row.get("effective"), row["source"])

        def whole(row: dict[str, Any]) -> dict[str, Any]:
            """Fill in from the preset that it is like; sources and rates of its own are put before those."""
            if "like" not in row:
                return row
            model = whole(read["presets"][row["like"]])
            own = [rate(of) for of in row.get("rates", ())]
            kept = [of for of in model["rates"] if rate(of).parameter not in {one.parameter for one in own}]
            return {**model, **row, "rates": [*row.get("rates", ()), *kept],
                    "arguments": model["arguments"] | row.get("arguments", {}),
                    "hardware": model["hardware"] | row.get("hardware", {}),
                    "sources": [*row.get("sources", ()), *model["sources"]]}  # fmt: skip

        return {
            name: Preset(name, row["summary"], row["builder"], row["arguments"], tuple(map(rate, row["rates"])),
                         tuple(row["sources"]), row.get("host"), row.get("hardware", {}))
            for name, row in sorted((name, whole(row)) for name, row in read["presets"].items())
        }  # fmt: skip

    def builder(self, name: str) -> str:
        """Return the host type or topology that builds a preset; of what is no preset, the name itself."""
        return self._all[name].builder if name in self._all else name

    def __getitem__(self, name: str) -> Preset:
        if name not in self._all:
            raise InputError(f"unknown preset {name!r}; {meant_or_known(close_names(name, self), list(self), LISTED)}")
        return self._all[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)


PRESETS = Presets()


def has_effective_rates(topology: str) -> bool:
    """Whether a topology's text names a preset whose rates are those that messages reach, below those as sold."""
    return bool(set(re.split(r"[@:=,+ ]", topology)) & PRESETS.keys()) and "rates=spec" not in topology


def named_so(name: str) -> list[str]:
    """Return the presets whose summary has a name, such as the ``p5.48xlarge`` of a provider; the first of many."""
    found = [
        key for key, preset in PRESETS.items() if name and name.lower() in re.split("[ :,;]+", preset.summary.lower())
    ]
    return found[:MAX_HINTS]
