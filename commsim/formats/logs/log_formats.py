"""Programs whose logs have tables of measurements: how a log of each is known, and what reads it.

To add one, write its reader in ``commsim/formats`` and a row of ``LOG_FORMATS``. Files that programs write for
programs (JSON, CSV, Parquet, pickle) are known by their form, in :mod:`commsim.formats.measured`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A program that prints tables.

    Parameters
    ----------
    name : str
        Name of the program.
    what : str
        What a log of it is, for people who give it to a command that does not read it.
    signs : tuple of tuple of str
        Texts that are in a log of it: all those of one of the tuples.
    header : str
        Regular expression of the beginning of a table's header, which has a sign of its own: what stands before it
        on its line was put there by a launcher or a collector.
    reader : str
        Place of its reader.
    """

    name: str
    what: str
    signs: tuple[tuple[str, ...], ...]
    header: str
    reader: str

    def is_in(self, head: bytes) -> bool:
        """Whether the beginning of a file is of such a log."""
        return any(all(text.encode() in head for text in texts) for texts in self.signs)


# Its table is looked for in any text that has no sign of another one: logs may begin with much else.
NCCL_TESTS = LogFormat(
    "nccl-tests", "a log of nccl-tests", (("algbw", "busbw"), ("nThread ", " nGpus ")),
    r"#[ \t]{0,40}size[ \t]{1,40}count\b", "commsim.formats.nccl_tests:read_nccl_tests_text",
)  # fmt: skip
LOG_FORMATS = (
    NCCL_TESTS,
    LogFormat(
        "OSU", "a table of OSU's micro-benchmarks", (("OSU MPI",), ("OSU NCCL",), ("OSU xCCL",)),
        r"#[ \t]{0,40}Size[ \t]", "commsim.formats.osu:read_osu",
    ),
    LogFormat(
        "IMB", "a table of the Intel MPI Benchmarks", (("# Benchmarking ",),),
        r"#bytes[ \t]|#[ \t]Benchmarking[ \t]", "commsim.formats.mpi_tables:read_mpi_tables",
    ),
    LogFormat(
        "ucc_perftest", "a table of ucc_perftest", (("Collective:", "Time, us"),),
        r"Collective:[ \t]", "commsim.formats.mpi_tables:read_mpi_tables",
    ),
    LogFormat(
        "perftest", "a table of perftest (ib_write_bw)", (("#bytes", "#iterations"),),
        r"#bytes[ \t]{1,40}#iterations", "commsim.formats.logs.perftest:read_perftest",
    ),
    LogFormat(
        "PyTorch's benchmarks", "a table of a benchmark of PyTorch's collectives",
        (("size(MB)", "avgbw(GB/sec)"), ("| payload |", "algbw"), ("average bandwidth of all_reduce",)),
        r"size\(MB\)[ \t]|\|[ \t]payload[ \t]", "commsim.formats.logs.torch_tables:read_torch_tables",
    ),
)  # fmt: skip


def log_format_in(head: bytes) -> LogFormat | None:
    """Return the format of a log by its beginning; nccl-tests comes last, since others print its columns."""
    others = (one for one in LOG_FORMATS if one is not NCCL_TESTS)
    return next((one for one in (*others, NCCL_TESTS) if one.is_in(head)), None)
