"""Run a sweep into a directory, or continue one that was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.own_files import Code
from commsim.core.files.sweep_store import Store

from .check_names import check_specs
from .chunk_retries import RetriedChunks
from .config import SweepConfig, read_config
from .executors import about_renamed, open_pool
from .groups import Chunker
from .parts import SweepPart
from .points import MAX_POINTS, Point, count_candidates, count_points, points
from .worker import ChunkTime


def provenance(config: SweepConfig, host: bool = False) -> dict[str, Any]:
    """Return what makes a sweep repeatable.

    Parameters
    ----------
    config : SweepConfig
        The sweep.
    host : bool
        Whether to name this machine.
    """
    from commsim.version import __version__

    machine = {
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }
    if host:
        machine["host"] = platform.node()
    return {"commsim": __version__, "commit": _commit(), "config_hash": config.hash, "seed": config.seed,
            "machine": machine}  # fmt: skip


def _commit() -> str | None:
    """Commit of the source tree that this package runs from, with a + when files differ from it; None outside one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        lines = [_git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--untracked-files=no")]
    except (OSError, subprocess.SubprocessError):
        return None
    return lines[0].strip() + ("+" if lines[1].strip() else "")


def _git(root: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(root), "--no-optional-locks", *command], capture_output=True, text=True,
                          timeout=10, check=True)  # fmt: skip
    return done.stdout


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a sweep.

    Parameters
    ----------
    n_points : int
        Number of points to compute in all.
    n_before : int
        Number of points computed before this run.
    n_done : int
        Computed, before and now.
    n_failed : int
        Number of points that failed, before and now; their rows say why.
    share : float
        Part of a core that workers got, beside other work, of what they asked for.
    remarks : tuple of str
        What was chosen in place of what was asked for.
    directory : path, optional
        Directory with the results, at the end of a run.
    """

    n_points: int
    n_before: int = 0
    n_done: int = 0
    n_failed: int = 0
    share: float = 1.0
    remarks: tuple[str, ...] = ()
    directory: Path | None = field(default=None, repr=False, compare=False)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the results that are in the directory, a row for each point, as a data frame of pandas or polars.

        Raises
        ------
        InputError
            If the run is not at its end, or neither pandas nor polars is installed.
        """
        from .table import read_rows

        if self.directory is None:
            raise InputError("a sweep that is running has no data frame; run_sweep returns what has one")
        return frame_of(read_rows(self.directory), library)


def run_sweep(
    config: SweepConfig | Mapping[str, Any] | str | Path,
    directory: str | Path,
    executor: str | Executor | None = None,
    *,
    jobs: int | None = None,
    limit: int | None = None,
    max_points: int = MAX_POINTS,
    host: bool = False,
    retry_failed: bool = False,
    part: SweepPart | None = None,
    say: Callable[[Progress], None] | None = None,
    code: Code = (),
) -> Progress:
    """Compute all points of a sweep that have no row yet; one that failed has a row too.

    Parameters
    ----------
    config : SweepConfig, mapping or path
        The sweep, or the .toml file that says it.
    directory : path
        Directory for the results; made if it is missing. One with the same sweep is continued.
    executor : str or Executor, optional
        Any ``concurrent.futures.Executor``, or ``process``, ``serial``, ``mpi``, ``dask``,
        ``dask://HOST:PORT``, ``ray``, ``ray://HOST:PORT``; processes unless MPI's workers wait.
    jobs : int, optional
        Workers of an executor that is made here; by default one for each processor.
    limit : int, optional
        Largest number of points, spread evenly over the sweep.
    max_points : int
        More points than that, before filters, are refused.
    host : bool
        Whether the name of this machine is written into the results.
    retry_failed : bool
        Whether the rows of points that failed are taken out first, so that these are computed again.
    part : SweepPart, optional
        Part of the points, where others are computed elsewhere; see :func:`commsim.sweep.parts.merge`.
    say : callable
        Called with the progress, whenever a chunk is finished.
    code : sequence of path
        Files of Python that the sweep's file may name: own collectives, topologies and policies, and programs.

    Returns
    -------
    Progress
        At the end.

    Raises
    ------
    InputError
        If the sweep is wrong, or the directory has another one.
    BackendError
        If the executor fails; the same call continues later.
    """
    if not isinstance(config, (SweepConfig, Mapping, str, PathLike)):
        raise wrong_kind("config", "the path of a sweep's file, or its tables as a dict", config)
    if not isinstance(config, SweepConfig):
        config = read_config(config, code)
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    check_specs(config)
    n_points = count_points(config, max_points)
    if not n_points:
        raise InputError(f"{config.path}: the filters leave none of {count_candidates(config)} points")
    from_here = provenance(config, host)
    with (
        open_pool(executor, jobs) as pool,  # first: an unknown executor leaves no folder behind
        contextlib.closing(_open_store(config, Path(directory), from_here, n_points)) as store,
    ):
        if retry_failed:
            store.forget_failed()
        todo = _Todo(config, max_points, n_points, limit, store.finished(), part or SweepPart())
        run = _RowWriter(config, store, todo.progress, say or (lambda _: None))
        RetriedChunks(pool, run.finished).run(run.chunker.chunks(todo.points()))
        return dataclasses.replace(run.progress, remarks=about_renamed(executor), directory=Path(directory))


class _Todo:
    """The points that have no row yet, of all or of some that are spread evenly."""

    def __init__(
        self,
        config: SweepConfig,
        most: int,
        n_points: int,
        limit: int | None,
        known: Mapping[str, bool],
        part: SweepPart,
    ) -> None:
        self._config, self._most, self._known, self._part = config, most, known, part
        self._n_points = part.n_of(n_points)
        self._limit = min(limit or self._n_points, self._n_points)
        failed = [known[point.digest] for point in self._wanted() if point.digest in known] if known else []
        self.progress = Progress(self._limit, len(failed), len(failed), sum(failed))

    def points(self) -> Iterator[Point]:
        """Walk them."""
        return (point for point in self._wanted() if point.digest not in self._known)

    def _wanted(self) -> Iterator[Point]:
        mine = (p for place, p in enumerate(points(self._config, self._most)) if self._part.has(place))
        for k, point in enumerate(mine):
            if (k + 1) * self._limit // self._n_points > k * self._limit // self._n_points:
                yield point


class _RowWriter:
    """Stores the rows of a run, and counts them."""

    def __init__(self, config: SweepConfig, store: Store, progress: Progress, say: Callable[[Progress], None]) -> None:
        from commsim.version import __version__

        self.chunker = Chunker(__version__, config.hash, config.kinds)
        self.progress = progress
        self._store, self._say = store, say
        self._ran = self._waited = 0.0

    def finished(self, took: ChunkTime, lines: list[bytes]) -> None:
        """Store the rows of a chunk."""
        failed = self._store.append(lines)
        self.chunker.measured(took.elapsed, len(lines))
        self._ran, self._waited = self._ran + took.ran, self._waited + took.waited
        now, share = self.progress, self._ran / (self._ran + self._waited) if self._ran else 1.0
        self.progress = dataclasses.replace(
            now, n_done=now.n_done + len(lines), n_failed=now.n_failed + failed, share=share
        )
        self._say(self.progress)


def _open_store(config: SweepConfig, directory: Path, from_here: Mapping[str, Any], n_points: int) -> Store:
    """Make the directory and its store, or open those of the same sweep."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {error.strerror}") from None
    about = {"config_hash": config.hash, "n_points": n_points, "parameters": dict(config.kinds),
             "provenance": from_here, "files": config.files, "config": config.tree}  # fmt: skip
    store = Store(directory, about, from_here)
    begun_by = store.description["provenance"].get("commsim")
    if store.description["config_hash"] == config.hash and begun_by == from_here["commsim"]:
        return store
    store.close()
    if begun_by == from_here["commsim"]:
        raise InputError(f"{directory} has the results of another sweep than {config.path}; give another directory")
    raise InputError(f"{directory} was begun by version {begun_by} of commsim, this is version "
                     f"{from_here['commsim']}; give another directory")  # fmt: skip
