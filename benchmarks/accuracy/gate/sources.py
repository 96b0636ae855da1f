"""The classes of predictions, by what they are compared with; each source makes the classes of one kind.

Tables that others measured are read from a folder of data, which is no part of the repository: a source whose folder is
absent makes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.accuracy.gate.errors import Errors, sum_up

Found = Iterator[tuple[str, Errors]]
# Of the matrix: what a measurement may be above without an error.
NO_PREDICTION = ("bound",)
MATRIX_KINDS = ("closed_form", "engines", "published")
# The rule that a reader would use without a tool: bytes that cross a machine's NICs over their rate.
NAIVE = "NICs times rate"
# Rows of the sprayed fabrics that take seconds; the others take up to minutes each (`benchmarks.accuracy.fabrics all`).
FABRIC_HOSTS, FABRIC_SIZE, FABRIC_PATHS = 8192, 1_000_000, "128"


@dataclass(frozen=True, slots=True)
class Source:
    """What makes classes.

    Parameters
    ----------
    name : str
        Begins the names of its classes.
    about : str
        Where the references come from, for people.
    page : str
        Page of the documentation with every row; a link from ``docs``.
    folder : str
        Folder of the data that it needs; empty where it needs none.
    seconds : float, s
        Processor time of one core, roughly.
    make : callable
        Takes the folder, or the recorded rows, and yields classes by name.
    measures : bool
        Whether it measures here, so that its figures have noise, and it runs only when asked for.
    """

    name: str
    about: str
    page: str
    folder: str
    seconds: float
    make: Callable[[Path], Found]
    measures: bool = False

    def classes(self, data: Path | None, recorded: Path | None = None) -> dict[str, Errors] | None:
        """Return its classes; None if its data are not there.

        Parameters
        ----------
        data : Path, optional
            Folder with the folders of all sources.
        recorded : Path, optional
            Rows that were measured before, instead of measuring now.

        Raises
        ------
        InputError
            If a file of the data is damaged.
        BackendError
            If it measures, and cannot here.
        """
        folder = (recorded or Path()) if self.measures else (data or Path()) / self.folder
        if self.folder and (data is None or not folder.is_dir()):
            return None
        return {f"{self.name}: {name}": errors for name, errors in self.make(folder)}


def _nccl(folder: Path) -> Found:
    from benchmarks.nccl_tables.machines import read_tables
    from benchmarks.nccl_tables.rows import LARGE, PEERS, class_rows, median_of, predicted_by, rows_of, usable
    from commsim.nccl.gpu_costs import costs

    known = costs()
    tables = {table.id: table for table in read_tables(folder)}
    rows = {name: rows_of(table, known) for name, table in tables.items() if not usable(table, known)}
    names = {"tuner": "NCCL's estimate", "simai": "SimAI", "astra": "ASTRA-sim"}
    for name, parts in class_rows(tables, rows).items():
        if name == "not healthy":
            continue  # a table that is known to be disturbed is no reference
        some, peers = [row for part in parts.values() for row in part], {}
        for peer in PEERS:
            if both := predicted_by(some, peer):
                peers[names[peer]] = (median_of(both, peer), median_of(both, "predicted"))
        for part, large in (("from 1 MiB", True), ("below", False)):
            if errors := [row.error() for row in some if (row.size >= LARGE) == large]:
                yield f"{name}, {part}", sum_up(errors)
        yield f"{name}, every size", sum_up((row.error() for row in some), peers=peers)


def _left_out(folder: Path) -> Found:
    from benchmarks.nccl_tables.unseen import by_size, unseen

    for name, errors in by_size(unseen(folder.parent / "measured", folder)).items():
        yield name, sum_up(errors)


def _questions(folder: Path) -> Found:
    from benchmarks.nccl_tables.asked import predicted_rows, read_asked
    from benchmarks.nccl_tables.asked_summary import classes, error_of
    from benchmarks.nccl_tables.peaks import read_peaks

    tables = [*read_asked(folder), *read_peaks(folder)]
    for name, rows in classes(predicted_rows(tables)[0], tables):
        if not rows:
            continue
        both = [row for row in rows if row["nics"]]
        naive, ours = ([abs(error_of(row, of)) for row in both] for of in ("nics", "predicted"))
        yield name, sum_up(map(error_of, rows), peers={NAIVE: (median(naive), median(ours))} if both else None)


def _rccl(folder: Path) -> Found:
    from benchmarks.nccl_tables.amd import errors, read
    from benchmarks.nccl_tables.rows import LARGE
    from commsim.nccl.rccl_costs import rccl_costs

    fitted_on = {name for costs in rccl_costs().values() for name in costs.fitted_on}
    found = defaultdict(list)
    for table in read(folder):
        kind = "tables that a constant was chosen on" if table.name in fitted_on else "other tables"
        for (size, _), error in zip(table.rows, errors(table), strict=True):
            found[f"{kind}, {'from 1 MiB' if size >= LARGE else 'below'}"].append(error)
            found[f"{kind}, every size"].append(error)
    for name in sorted(found):
        yield name, sum_up(found[name])


def _mpi(folder: Path) -> Found:
    from benchmarks.accuracy.mpi_tables import MIB, predicted, read_tables

    rows = [row for row in predicted(read_tables(folder))[0] if not row.short]
    yield "from 1 MiB", sum_up(row.error for row in rows if row.size >= MIB)
    yield "below", sum_up(row.error for row in rows if row.size < MIB)


def _experts(folder: Path) -> Found:
    from benchmarks.experts.answers import answer
    from benchmarks.experts.tables import read_rows
    from commsim.core.errors import InputError

    errors = defaultdict(list)
    for row in read_rows(folder)[0]:
        try:
            one = answer(row)
        except InputError:
            continue  # a kernel without constants: the page lists it
        errors["tables that something was fitted on" if one.fitted else "other tables"].append(one.error)
    for name, some in errors.items():
        yield name, sum_up(some)


def _steps(folder: Path) -> Found:
    from benchmarks.steps.predictions import predictions, with_blind
    from benchmarks.steps.setups import read_setups
    from commsim.training.steps.transformer import transformer

    errors = defaultdict(list)
    for row in with_blind(predictions(read_setups(str(folder)))):
        if row.time and row.setup.measured:
            kind = "with" if transformer(row.setup.model).experts else "without"
            errors[f"model left out, {kind} experts"].append(row.blind_error)
            if not row.fitted:
                errors[f"another {row.kind} than the calibrated one"].append(row.error)
    for name, some in errors.items():
        yield name, sum_up(some)


def _fabrics(folder: Path) -> Found:
    from benchmarks.accuracy.fabrics import play_case, published_cases

    errors = defaultdict(list)
    for case, wanted in published_cases(folder, FABRIC_SIZE):
        pattern, transport, paths = case[0], case[2], case[6]
        if pattern == "incast" or paths == FABRIC_PATHS:
            tail = play_case(case, FABRIC_HOSTS)["tail_fct_s"] * 1e6
            errors[f"{pattern}s over {transport.upper()}"].append(min((tail / near - 1 for near in wanted), key=abs))
    for name, some in errors.items():
        yield name, sum_up(some)


def _papers(_: Path) -> Found:
    from commsim.papers.paper import load_paper, paper_names

    rows = [row for name in paper_names() for row in load_paper(name).rows() if row.counts]
    yield "numbers whose set-up is known", sum_up(row.error for row in rows)


def _matrix(_: Path) -> Found:
    from benchmarks.validation.makers import MAKERS
    from benchmarks.validation.row import KINDS
    from benchmarks.validation.summary import groups

    rows = [row for maker in MAKERS if maker.kind in MATRIX_KINDS for row in maker.make(False)]
    counted = [row for row in rows if row.counts and row.engine not in NO_PREDICTION]
    for (kind, engine, against), some in groups(counted, lambda row: (row.kind, row.engine, row.against)).items():
        yield f"{KINDS[kind]}: {engine}, {against}", sum_up(row.error for row in some)


def _testbed(recorded: Path) -> Found:
    from benchmarks.validation.real import real_rows
    from benchmarks.validation.summary import groups

    rows = real_rows(False, recorded if recorded != Path() else None)
    counted = [row for row in rows if row.counts]
    for against, some in groups(counted, lambda row: row.against).items():
        yield against, sum_up((row.error for row in some), measured_now=True)


SOURCES = (
    Source("operators left out", "public logs of operators on whose tables nothing was fitted, default settings",
           "data/nccl_accuracy.md", "measured2", 15, _left_out),
    Source("questions", "public logs of 2026, each predicted as a user would ask",
           "data/nccl_accuracy.md", "measured2", 15, _questions),
    Source("NCCL", "public logs of nccl-tests and NCCL's users, 118 tables",
           "data/nccl_accuracy.md", "measured", 30, _nccl),
    Source("RCCL", "public calls on AMD's GPUs, 11 tables", "data/nccl_accuracy.md", "measured", 5, _rccl),
    Source("experts", "measured dispatch and combine of DeepEP, NVLink and others", "data/experts.md", "experts", 10,
           _experts),
    Source("training steps", "MLPerf, Megatron-Bridge and published steps", "data/steps.md", "training", 150, _steps),
    Source("MPI", "published tables of named algorithms", "collectives.md", "measured", 5, _mpi),
    Source("sprayed fabrics", "published tables of the Ultra Ethernet simulator", "fabrics.md", "uec", 60, _fabrics),
    Source("papers", "figures of papers", "data/papers.md", "", 25, _papers),
    Source("matrix", "the validation matrix", "data/validation.md", "", 65, _matrix),
    Source("testbed", "real runs in network namespaces of this machine", "testbed.md", "", 900, _testbed, True),
)  # fmt: skip
