"""Question of an advice: the tensor, its density, the workers, and the hosts for servers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import PLURALS, Network
from commsim.core.placement import PACKED, count_places
from commsim.core.units import count_text
from commsim.prediction.inputs import load_placement
from commsim.prediction.scenario import Wish
from commsim.sparse.form import SparseForm
from commsim.sparse.generate import PATTERNS
from commsim.sparse.gradients_file import read_gradients
from commsim.sparse.long_occupancy import AnyOccupancy
from commsim.sparse.sparse_data import FLOAT, drawn_once

# Elements that are not zero together unless something else is said: as in a row of an embedding.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class Question:
    """A tensor that workers add up.

    Parameters
    ----------
    n_workers : int
        Ranks.
    size : float, bytes
        Size of each worker's tensor; that of the gradients when they are given.
    densities : tuple of float
        Shares of its elements that are not zero, each asked about; only dense data without any.
    block : int, optional
        Elements that are not zero together: 256 by default. Of gradients, the blocks in which they are streamed.
    pattern : str
        How these lie, as in :func:`commsim.sparse.generate.drawn_occupancy`.
    gradients : path, optional
        File of gradients in place of drawn data.
    n_servers : int, optional
        Hosts beside the workers' own that may help: by default as many as workers or as there are.
    lossy : bool
        Whether ways are ranked too that do not sum all values.
    programmable : bool
        Whether switches are taken to be able to aggregate where the network says so of none.
    placement, routing, seed
        Same as in :func:`commsim.prediction.prepare`; the seed is that of the data too.
    hashes : int
        Number of hashes of routes that are drawn where their times differ; 0 for the usual one.
    """

    n_workers: int
    size: float
    densities: tuple[float, ...] = ()
    block: int | None = None
    pattern: str = "random"
    gradients: str | None = None
    n_servers: int | None = None
    lossy: bool = False
    programmable: bool = False
    placement: str = PACKED
    routing: str | None = None
    seed: int = 0
    hashes: int = 0

    @property
    def wish(self) -> Wish:
        """Engine of all predictions: flows, the median over hashes."""
        return Wish(seed=self.seed, hashes=self.hashes)

    @property
    def is_sparse(self) -> bool:
        """Whether anything is known of what is zero."""
        return bool(self.densities) or self.gradients is not None

    @property
    def run(self) -> int:
        """Elements that are drawn together."""
        return BLOCK if self.block is None else self.block

    def data_of(self, form: SparseForm) -> dict[str, str]:
        """Parameters of the data for a sparse collective, as text, by what differs: one for each density.

        Every collective is given the same elements, in blocks of its own size. Lists of coordinates take as many bytes
        by whole runs as by elements.
        """
        shares = [f"density={density!r}" for density in self.densities]
        if self.gradients is not None:
            own = f"block={self.block}," if self.block is not None and form.block > 1 else ""
            file = f"{own}gradients={self.gradients}"
            return {share: f"{share},{file}" for share in shares} if form.lossy else {"": file}
        lists = form.block == 1 and not (form.lossy or form.hashed or form.balanced)
        block = f"block={self.run}" if lists or form.block == self.run else f"block={form.block},run={self.run}"
        return {share: f"{share},{block},pattern={self.pattern},seed={self.seed}" for share in shares}

    def draw(self, density: float) -> AnyOccupancy:
        """Draw the data, in runs."""
        n_elements = int(self.size) // FLOAT
        drawn = drawn_once(
            self.n_workers,
            n_elements,
            block=self.run,
            density=density,
            pattern=self.pattern,
            seed=self.seed,
            exponent=1.0,
        )
        if not drawn.counts.any():
            raise InputError(f"a density of {density} leaves none of {drawn.n_blocks} blocks non-zero: an empty bitmap")
        return drawn

    def on(self, network: Network) -> Question:
        """Check the question, and return it with the number of servers that the network has places for.

        Raises
        ------
        InputError
            If there are too few hosts, a number is out of its range, or so sparse a tensor has nothing in it.
        """
        self._check()
        places = len(network.endpoints)
        what = PLURALS[network.seat_kind]
        if not 1 <= self.n_workers <= places:
            raise InputError(f"workers must be 1..{places} ({network.name} has {places} {what}), got {self.n_workers}")
        ranks = load_placement(self.placement, network, self.n_workers, self.seed)
        free = count_places(network, ranks.nodes)
        n_servers = min(free, self.n_workers) if self.n_servers is None else self.n_servers
        if not 0 <= n_servers <= free:
            raise InputError(
                f"{network.name} has {count_text(free, 'place')} for servers beside "
                f"{count_text(self.n_workers, 'worker')}: "
                f"servers must be 0..{free}, got {n_servers}"
            )
        for density in self.densities if self.gradients is None else ():
            self.draw(density)
        return dataclasses.replace(self, n_servers=n_servers)

    def _check(self) -> None:
        if self.gradients is not None and "," in self.gradients:
            raise InputError(f"a file of gradients has no comma in its name here, got {self.gradients!r}")
        if self.pattern not in PATTERNS:
            raise InputError(f"pattern must be one of {', '.join(PATTERNS)}, got {self.pattern!r}")
        for density in self.densities:
            if not 0 < density <= 1:
                raise InputError(f"density must be above 0 and at most 1, got {density:g}")
        if self.block is not None and self.block < 1:
            raise InputError(f"a block has at least 1 element, got {self.block}")
        if self.is_sparse and self.gradients is None and (self.size % FLOAT or self.size < FLOAT):
            raise InputError(f"sparse data is whole elements of {FLOAT} bytes, got a size of {self.size:g}")
        if self.lossy and not self.densities:
            raise InputError("lossy ways keep a share of the elements, and need a density to know which")


def question_of(
    network: Network,
    size: float | None = None,
    *,
    n_workers: int | None = None,
    densities: tuple[float, ...] = (),
    gradients: str | None = None,
    **more: Any,
) -> Question:
    """Make a question; what is not given comes from the network, or from a file of gradients.

    Parameters
    ----------
    network : Network
        Network that the workers are on.
    size : float, bytes, optional
        Size of each worker's tensor. Default: that of the gradients.
    n_workers : int, optional
        Number of ranks. Default: all hosts, or the number of gradients.
    densities, gradients
        Same as in :class:`Question`.
    **more
        Further parameters of :class:`Question`.

    Raises
    ------
    InputError
        If there is neither a size nor gradients, or the two contradict each other.
    """
    if gradients is not None:
        of_file, n_workers = size_of_gradients(gradients, n_workers)
        if size not in (None, of_file):
            raise InputError(f"{gradients} holds {of_file:.0f} bytes for each worker, got a size of {size:.0f}")
        size = of_file
    if size is None:
        raise InputError("advise needs a size or gradients")
    workers = len(network.endpoints) if n_workers is None else n_workers
    return Question(workers, size, densities, gradients=gradients, **more)


def size_of_gradients(path: str, n_workers: int | None) -> tuple[float, int]:
    """Return the bytes of each worker's gradients, and how many workers there are.

    Raises
    ------
    InputError
        If the file is missing or damaged, holds no gradients, or those of another number of workers.
    """
    rows = read_gradients(Path(path), n_workers)
    return float(rows[0].nbytes), len(rows)
