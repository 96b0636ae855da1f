"""Which data a sparse collective carries: drawn blocks or real gradients, from the parameters that the user wrote."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments
from commsim.sparse.form import SparseForm
from commsim.sparse.generate import PATTERNS
from commsim.sparse.gradients_file import read_gradients
from commsim.sparse.long_occupancy import AnyOccupancy, regrouped
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.segments import draw_segments, drawn_parts
from commsim.sparse.sparse_vector import SparseVector
from commsim.sparse.union_density import densification, union_density

# Bytes of an element that is drawn.
FLOAT = 4
# The same, kept until something else is drawn: several collectives are asked about the same data.
drawn_once = functools.lru_cache(maxsize=1)(draw_segments)


def data(
    density: float | None = None,
    block: int | None = None,
    pattern: str = "random",
    seed: int = 0,
    exponent: float = 1.0,
    gradients: str | None = None,
    threshold: float = 0.0,
    run: int | None = None,
) -> dict[str, Any]:
    """Parameters of the data: keys of a collective's text beside its builder's own.

    Parameters
    ----------
    density, pattern, seed, exponent
        Same as in :func:`commsim.sparse.generate.drawn_occupancy`. With gradients, density is the share of elements
        that each rank of a lossy collective starts with.
    block : int, optional
        Elements of a block; by default the collective's own.
    gradients : path, optional
        Same as in :func:`commsim.sparse.gradients_file.read_gradients`.
    threshold : float
        Magnitude below which an element of the gradients counts as zero.
    run : int, optional
        Elements that are drawn as not zero together, where that is not a block: so that collectives whose blocks
        differ carry the same data. The density is then that of elements.
    """
    return dict(locals())


DATA = tuple(inspect.signature(data).parameters)


@dataclass(slots=True)
class SparseData:
    """Data of a sparse collective, bound to its schedule.

    Parameters
    ----------
    form : SparseForm
        What its messages take.
    schedule : Schedule
        What is sent.
    parameters : mapping of str to value
        Parameters with which the schedule was built.
    options : mapping of str to value
        What :func:`data` takes.
    parts : tuple of (float, float)
        Bytes and density of the tensors in the array, in place of one density for all.
    n_drawn : int, optional
        Elements that are drawn in place of all of a longer tensor, whose messages are larger in proportion.

    Raises
    ------
    InputError
        If nothing says which blocks are not zero, or something given has no effect.
    """

    form: SparseForm
    schedule: Schedule
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    parts: tuple[tuple[float, float], ...] = ()
    n_drawn: int | None = None
    _rows: list[NDArray[Any]] | None = None
    _last: tuple[float, NDArray[np.float64], dict[str, float]] | None = field(default=None)

    def __post_init__(self) -> None:
        name, drawn = self.schedule.name, self.options["gradients"] is None
        if drawn and self.options["density"] is None:
            raise InputError(f"{name} needs density=... or gradients=FILE to know which blocks are not zero")
        if self.options["pattern"] not in PATTERNS:
            raise InputError(f"{name}: pattern must be one of {', '.join(PATTERNS)}, got {self.options['pattern']!r}")
        if self.form.lossy and self.block != 1:
            raise InputError(f"{name} keeps single elements: block must be 1, got {self.block}")
        if self.options["threshold"] < 0:
            raise InputError(f"{name}: threshold must be at least 0, got {self.options['threshold']}")
        if self.options["run"] is not None and self.options["run"] < 1:
            raise InputError(f"{name}: a run has at least 1 element, got run={self.options['run']}")
        if self.options["density"] is not None and not 0 < self.options["density"] <= 1:
            raise InputError(f"{name}: density must be above 0 and at most 1, got {self.options['density']:g}")
        if not drawn:
            self._check_gradients()
            self._rows = read_gradients(self.options["gradients"], self.schedule.n_ranks)

    @property
    def block(self) -> int:
        """Elements of a block."""
        return int(self.form.block if self.options["block"] is None else self.options["block"])

    @property
    def size(self) -> int | None:
        """Bytes of the gradients; None where data of any size is drawn."""
        return None if self._rows is None else int(self._rows[0].nbytes)

    @property
    def note(self) -> str:
        """What the data is, to be printed."""
        units = f"blocks of {self.block} elements" if self.block > 1 else "elements"
        if self._rows is not None:
            share_text = f", the {self.options['density']:g} largest share of each rank's" if self.form.lossy else ""
            above = f" above {self.options['threshold']:g}" if self.options["threshold"] else ""
            return f"non-zero {units}{above} of {self.options['gradients']}{share_text}: {self.size} bytes a rank"
        run = self.options["run"] or self.block
        runs = "" if run == self.block else f", {run} in a row" if run > 1 else ", element by element"
        skew = f", exponent {self.options['exponent']:g}" if self.options["pattern"] == "zipf" else ""
        pattern, density, seed = (self.options[key] for key in ("pattern", "density", "seed"))
        return f"non-zero {units} are drawn{runs}: pattern {pattern}{skew}, density {density:g}, seed {seed}"

    def occupancy(self, size: float) -> AnyOccupancy:
        """Return the blocks that each rank has.

        Parameters
        ----------
        size : float, bytes
            Size of the tensor.

        Raises
        ------
        InputError
            If the gradients have another size, no rank has a block, or `size` is no whole number of elements.
        """
        name = self.schedule.name
        if self._rows is None:
            if size % FLOAT or not size >= FLOAT:
                raise InputError(f"{name}: sparse data is whole elements of {FLOAT} bytes, got a size of {size:g}")
            draw = {key: self.options[key] for key in ("density", "pattern", "seed", "exponent")}
            run = self.options["run"] or self.block
            if self.form.lossy:  # which keeps at least one element, however many it should leave out
                draw["density"] = max(draw["density"], FLOAT / size)
            if self.parts:
                del draw["density"]
                pieces = tuple((n_bytes / FLOAT, density) for n_bytes, density in self.parts)
                return regrouped(drawn_parts(self.schedule.n_ranks, pieces, block=run, **draw), self.block)
            return regrouped(drawn_once(self.schedule.n_ranks, self._n_elements(size), block=run, **draw), self.block)
        if size != self.size:
            raise InputError(
                f"{self.options['gradients']} holds gradients of {self.size} bytes a rank, got size {size:g}"
            )
        rows = [self._largest(row) for row in self._rows] if self.form.lossy else self._rows
        occupancy_found = occupancy_of(rows, self.block, self.options["threshold"])
        if not occupancy_found.counts.any():
            raise InputError(f"{self.options['gradients']}: no rank has a non-zero element: an empty bitmap")
        return occupancy_found

    def take_parts(self, parts: tuple[tuple[float, float], ...]) -> None:
        """Have the tensors of another array: their bytes and densities."""
        if parts != self.parts:
            self.parts, self._last = parts, None

    def messages(self, size: float) -> NDArray[np.float64]:
        """Return the payload of each transfer, float64[n_transfers], bytes."""
        return self._at(size)[1]

    def counters(self, size: float) -> dict[str, float]:
        """Return the ranks' mean density, that of their union, and the ratio of the two."""
        return self._at(size)[2]

    def zeros(self, size: float) -> float:
        """Return the part of all bytes that is zeros, sent before it is known what is not zero."""
        if not self.form.only_data:
            return 0.0
        value_bytes = FLOAT if self._rows is None else self._rows[0].itemsize
        parameters = {**self.parameters, **self.form.only_data}
        least = self.form.transfer_bytes(self.schedule, self.occupancy(size), parameters, value_bytes).sum()
        if self.n_drawn is not None:
            least *= size / FLOAT / self._n_elements(size)
        return float(max(0.0, 1 - least / self.messages(size).sum()))

    def _at(self, size: float) -> tuple[float, NDArray[np.float64], dict[str, float]]:
        if self._last is None or self._last[0] != size:
            occupancy_found = self.occupancy(size)
            value_bytes = FLOAT if self._rows is None else self._rows[0].itemsize
            n_bytes = self.form.transfer_bytes(self.schedule, occupancy_found, self.parameters, value_bytes)
            if self.n_drawn is not None:
                n_bytes = n_bytes * (size / FLOAT / self._n_elements(size))
            measured = {
                "density": float(occupancy_found.density.mean()),
                "union_density": union_density(occupancy_found),
                "densification": densification(occupancy_found) if occupancy_found.counts.any() else 1.0,
            }
            self._last = size, n_bytes, measured
        return self._last

    def _n_elements(self, size: float) -> int:
        n_elements = int(size) // FLOAT
        return n_elements if self.n_drawn is None else min(n_elements, self.n_drawn)

    def _largest(self, row: NDArray[Any]) -> NDArray[Any]:
        k = max(1, round(self.options["density"] * len(row)))
        return SparseVector.from_dense(row).top_k(k).to_dense()

    def _check_gradients(self) -> None:
        name, density = self.schedule.name, self.options["density"]
        idle = [key for key in ("pattern", "seed", "exponent", "run") if self.options[key] != data()[key]]
        idle += ["density"] if density is not None and not self.form.lossy else []
        if idle:
            raise InputError(f"{name}: gradients from a file are not drawn, got {' and '.join(idle)} too")
        if self.form.lossy and density is None:
            raise InputError(f"{name} keeps a share of the gradients, and needs density=... to know which")


def split_data(entry: Entry[Schedule], raw: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any] | None]:
    """Split what the user wrote into the builder's parameters and the data's.

    Returns
    -------
    dict of str to str
        For the builder.
    dict of str to value or None
        What :func:`data` returns; None where nothing was said of the data.

    Raises
    ------
    InputError
        If a parameter is neither's.
    """
    if entry.metadata.get("sparse") is None:
        return dict(raw), None
    of_data = {key: text for key, text in raw.items() if key in DATA and key not in entry.parameters}
    rest = {key: text for key, text in raw.items() if key not in of_data}
    own = [key for key in entry.parameters if key != "n_ranks"]
    for key in rest.keys() - set(own):
        hint = did_you_mean(alike(key, (*own, *DATA)))
        raise InputError(f"{entry.name} has no parameter {key!r}; {hint}known: {', '.join((*own, *DATA))}")
    return rest, data(**read_arguments(data, of_data, name=entry.name)) if of_data else None
