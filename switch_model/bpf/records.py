"""What is written down of switches in the kernel, so that those whose process died are found: a file for each."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from commsim.core.errors import BackendError

FOLDER = Path("/run/commsim-bpf")


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a switch sits.

    Parameters
    ----------
    process, began : int
        Whose it is, and when that process began: numbers of processes come again.
    namespace : int
        Of the network, as the number of its file.
    ports : tuple of str
        Interfaces.
    hooked : tuple of str
        Those that had no place for filters before us.
    program : int
        Number of the program; 0 before it is loaded.
    """

    process: int
    began: int
    namespace: int
    ports: tuple[str, ...]
    hooked: tuple[str, ...]
    program: int = 0

    @property
    def path(self) -> Path:
        """The file that says so."""
        return FOLDER / f"{self.process}-{self.namespace}-{'-'.join(self.ports)[:100]}.json"

    @property
    def lives(self) -> bool:
        """Whether its process does."""
        return began(self.process) == self.began


def attachments() -> list[Attachment]:
    """Return all that are written down."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        try:
            row = json.loads(path.read_text())
            found.append(Attachment(**{**row, "ports": tuple(row["ports"]), "hooked": tuple(row["hooked"])}))
        except (OSError, ValueError, TypeError, KeyError):
            path.unlink(missing_ok=True)  # nobody of ours wrote that
    return found


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keep others who attach, or clear up, waiting.

    Raises
    ------
    BackendError
        If nothing can be written here.
    """
    try:
        FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (FOLDER / "lock").open("w")
    except OSError as error:
        raise BackendError(f"cannot write to {FOLDER}: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(attachment: Attachment) -> None:
    """Write down where a switch sits.

    Raises
    ------
    BackendError
        If that cannot be written.
    """
    try:
        whole = attachment.path.with_suffix(".new")
        whole.write_text(json.dumps(asdict(attachment)))
        whole.replace(attachment.path)
    except OSError as error:
        raise BackendError(f"cannot write {attachment.path}: {error.strerror}") from None


def began(process: int) -> int:
    """When a process began, in ticks since the machine did; 0 if there is none, or nothing is left but its number."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if after_name[0] in "ZX" else int(after_name[19])
