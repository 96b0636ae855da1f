"""The points of a sweep, one after the other: a grid is walked, a sample is drawn, filters are applied."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import needs

from .config import SAMPLES, SweepCase, SweepConfig
from .expression import all_of, lookup
from .point_parameters import LATE, network_spec

MAX_POINTS = 10_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One run of one combination of parameters.

    Parameters
    ----------
    order : int
        Place in the sweep, before anything was filtered out.
    seed : int
        Seed of all random draws in it.
    parameters : mapping of str to value
        Parameters by table and key, in SI units.
    digest : str
        Hash of the contents: the same in every sweep that has this point.
    """

    order: int
    seed: int
    parameters: Mapping[str, Any]
    digest: str


def count_candidates(config: SweepConfig) -> int:
    """Points before filters, without walking them."""
    each = [config.n if config.sample != "grid" else math.prod(len(a.values) for a in c.axes) for c in config.cases]
    return sum(each) * config.repeats


def require_countable(config: SweepConfig, most: int = MAX_POINTS) -> int:
    """Return the number of points before filters; refuse more than `most`.

    Raises
    ------
    InputError
        If there are more.
    """
    n = count_candidates(config)
    if n > most:
        raise InputError(f"{config.path}: {n} points before filters are more than {most}; --max-points N allows more")
    return n


def points(config: SweepConfig, most: int = MAX_POINTS) -> Iterator[Point]:
    """Walk the points in their order, filtered, each once.

    Raises
    ------
    InputError
        If there are more than `most` before filters, or a filter does not fit the points.
    """
    require_countable(config, most)
    seen = set[str]()
    for order, (case, seed, parameters) in enumerate(_combinations(config)):
        if not case.filters or _is_kept(case, parameters, config):
            point = Point(order, seed, parameters, _digest(seed, parameters))
            if point.digest not in seen:
                yield point
            if len(config.cases) > 1:  # points of one case differ from each other
                seen.add(point.digest)


def count_points(config: SweepConfig, most: int = MAX_POINTS) -> int:
    """Points after filters, each counted once; walks them only where that is needed.

    Raises
    ------
    InputError
        As :func:`points`.
    """
    n = require_countable(config, most)
    if config.sample == "grid" and len(config.cases) == 1 and not config.cases[0].filters:
        return n
    return sum(1 for _ in points(config, most))


def structure(point: Point) -> tuple[Any, ...]:
    """Return what points must share to be prepared together."""
    return (point.seed, *((k, v) for k, v in point.parameters.items() if k not in LATE))


def _digest(seed: int, parameters: Mapping[str, Any]) -> str:
    text = json.dumps([seed, parameters], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _combinations(config: SweepConfig) -> Iterator[tuple[SweepCase, int, dict[str, Any]]]:
    """Walk cases, seeds and parameters; a seed changes only with what needs preparation, as it may decide that too."""
    seeds = range(config.seed, config.seed + config.repeats)
    for case in config.cases:
        n, names = case.n_prepared, [axis.name for axis in case.axes]
        for row in _grid(case, seeds) if config.sample == "grid" else _sample(config, case, seeds):
            yield case, row[n], dict(zip(names, (*row[:n], *row[n + 1 :]), strict=True))


def _grid(case: SweepCase, seeds: range) -> Iterator[tuple[Any, ...]]:
    values = [axis.values for axis in case.axes]
    return itertools.product(*values[: case.n_prepared], seeds, *values[case.n_prepared :])


def _sample(config: SweepConfig, case: SweepCase, seeds: range) -> Iterator[tuple[Any, ...]]:
    """Draw points, and sort them so that what is prepared together is together."""
    axes, n = case.axes, case.n_prepared
    free = [i for i, axis in enumerate(axes) if len(axis.values) > 1]
    if not free:
        raise InputError(f"{config.path}: a {config.sample} sample needs a parameter with several values or a range")
    rows: dict[tuple[Any, ...], None] = {}
    for share in _draw(config, len(free)):
        at = dict(zip(free, share, strict=True))
        rows[tuple(axis.at(at.get(i, 0.0)) for i, axis in enumerate(axes))] = None
    return iter(sorted((*row[:n], seed, *row[n:]) for row in rows for seed in seeds))


def _draw(config: SweepConfig, n_dims: int) -> list[list[float]]:
    try:
        from scipy.stats import qmc
    except ImportError:
        raise InputError(needs(f"a {config.sample} sample needs SciPy", "opt")) from None
    import numpy as np

    build: Callable[..., Any] = getattr(qmc, SAMPLES[config.sample])
    seeded = "rng" if "rng" in inspect.signature(build).parameters else "seed"  # SciPy renamed it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that n is no power of two
        drawn = build(d=n_dims, **{seeded: np.random.default_rng(config.seed)}).random(config.n)
    return [list(map(float, row)) for row in drawn]


def _is_kept(case: SweepCase, parameters: Mapping[str, Any], config: SweepConfig) -> bool:
    try:
        return all_of(case.filters, _values(parameters, config))
    except InputError as error:
        number = next(i for i, one in enumerate(config.cases, 1) if one is case)
        where = f"case {number} of {len(config.cases)}: " if len(config.cases) > 1 else ""
        raise InputError(f"{config.path}: {where}{error}") from None


def _values(parameters: Mapping[str, Any], config: SweepConfig) -> Callable[[str], Any]:
    """Value of a name in a filter: a parameter, or the number of hosts of the topology."""
    known = lookup(parameters)

    def value(name: str) -> Any:
        if name == "topology.n_hosts" and name not in parameters:
            return _n_hosts(network_spec(parameters, config.kinds))
        return known(name)

    return value


@functools.lru_cache(maxsize=4096)
def _n_hosts(spec: str) -> int:
    from commsim.prediction.inputs import load_network

    return len(load_network(spec).endpoints)
