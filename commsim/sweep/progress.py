"""Progress of a sweep: a bar on a terminal, a line now and then elsewhere, with the time left."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from commsim.core.limits import EXPECTED, about_share, duration

from .run_sweep import Progress

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def progress_shown() -> Iterator[Callable[[Progress], None]]:
    """Return a function that shows the progress it is given on standard error."""
    EXPECTED.is_shown = True
    if sys.stderr.isatty():
        with _bar() as say:
            yield say
    else:
        yield ProgressLines()


class ProgressLines:
    """Prints a line at the beginning, at the end, and at most every ten seconds between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._left = TimeLeft(clock)

    def __call__(self, progress: Progress) -> None:
        """Print, if it is time to."""
        now, is_first = self._clock(), self._left.began is None
        left = self._left(progress)
        if is_first or progress.n_done == progress.n_points or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            print(f"commsim sweep: {line(progress, left)}", file=sys.stderr, flush=True)


class TimeLeft:
    """Estimates the time left, of processors: what points took since the first answer, less what waited for a core.

    Before the first answer, workers start and kernels are loaded.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.began: tuple[float, int] | None = None

    def __call__(self, progress: Progress) -> float:
        """Return the seconds left; 0 where they are not known."""
        now = self._clock()
        began, n_before = self.began = self.began or (now, progress.n_done)
        computed = progress.n_done - n_before
        return (now - began) * progress.share / computed * (progress.n_points - progress.n_done) if computed else 0.0


def line(progress: Progress, left: float) -> str:
    """Format progress and, if known, the seconds left."""
    text = f"{progress.n_done} of {progress.n_points} points"
    if progress.n_before:
        text += f", {progress.n_before} of them from before"
    if progress.n_failed:
        text += f", {progress.n_failed} failed"
    return f"{text}, about {duration(left)} left{about_share(progress.share)}" if left else text


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("{task.fields[left]}"))  # fmt: skip
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("points", total=None, left="")
        time_left = TimeLeft()

        def say(progress: Progress) -> None:
            failed = f" ({progress.n_failed} failed)" if progress.n_failed else ""
            left = f"{duration(found)} left{about_share(progress.share)}" if (found := time_left(progress)) else ""
            bar.update(
                task, total=progress.n_points, completed=progress.n_done, description=f"points{failed}", left=left
            )

        yield say
