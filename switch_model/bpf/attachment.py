"""Classifiers of ours at interfaces: attached, written down, and taken away again, also those of a process that died.

What stays in the kernel after a `kill -9` is a filter on each port, which holds the program, which holds its maps. No
file system shows them: the one that `tc` needs for a moment exists in a mount namespace of its own. So taking away the
filters takes away everything, and a small file for each switch says where they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from commsim.core.errors import BackendError

from .commands import output_of, records_of
from .ports import Interface

FOLDER = Path("/run/commsim-bpf")
# Of our filters among those of an interface; a value that other programs hardly use.
PREFERENCE = 0xBEE0

# $1 file system, $2 object file, $3 preference, then interfaces
_ATTACH = """
mount -t bpf none "$1"
bpftool prog load "$2" "$1/program" type classifier >&2
bpftool -j prog show pinned "$1/program"
program="$1/program" preference=$3
shift 3
for port; do
  tc filter add dev "$port" ingress pref "$preference" handle 1 bpf direct-action object-pinned "$program"
done
"""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a switch sits.

    Parameters
    ----------
    process, began : int
        Number of its process, and when that began, since numbers are used again.
    namespace : int
        Number of the network namespace's file.
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
    rows = []
    for path in sorted(FOLDER.glob("*.json")):
        try:
            row = json.loads(path.read_text())
            rows.append(Attachment(**{**row, "ports": tuple(row["ports"]), "hooked": tuple(row["hooked"])}))
        except (OSError, ValueError, TypeError, KeyError):
            path.unlink(missing_ok=True)  # not written by us
    return rows


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of all processes that attach or detach.

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
    """When a process began, in ticks since the machine did; 0 if only its number is left, or not even that."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if after_name[0] in "ZX" else int(after_name[19])


def attach(target: Path, ports: Sequence[Interface]) -> Attachment:
    """Load a program and put it at the ingress of all ports.

    Parameters
    ----------
    target : Path
        The object file.
    ports : sequence of Interface
        Interfaces of this network namespace.

    Returns
    -------
    Attachment
        To be given to `detach`.

    Raises
    ------
    BackendError
        If the kernel refuses, or a switch sits there already.
    """
    with alone():
        _detach_dead()
        return _attach(target, tuple(port.name for port in ports))


def _attach(target: Path, names: tuple[str, ...]) -> Attachment:
    with_filter = [name for name in names if _has_filter(name)]
    if with_filter:
        raise BackendError(f"a switch sits at {', '.join(with_filter)} already")
    hooked = tuple(name for name in names if not _has_hook(name))
    process = os.getpid()
    attachment = Attachment(process, began(process), Path("/proc/self/ns/net").stat().st_ino, names, hooked)
    write(attachment)
    try:
        for name in hooked:
            output_of(["tc", "qdisc", "add", "dev", name, "clsact"])
        (FOLDER / "fs").mkdir(exist_ok=True)
        command = ["unshare", "--mount", "sh", "-eu", "-c", _ATTACH, "sh", str(FOLDER / "fs"), str(target)]
        loaded = json.loads(output_of([*command, str(PREFERENCE), *names]))
    except BaseException:
        detach(attachment)
        raise
    attachment = replace(attachment, program=int(loaded["id"]))
    write(attachment)
    return attachment


def detach(attachment: Attachment, namespace: str = "") -> None:
    """Take the filters away, and with them everything; `namespace` is the file of another network's."""
    inside = ["nsenter", f"--net={namespace}"] if namespace else []
    for name in attachment.ports:
        _quietly([*inside, "tc", "filter", "del", "dev", name, "ingress", "pref", str(PREFERENCE)])
    for name in attachment.hooked:
        if not _filters(inside, name, "ingress") and not _filters(inside, name, "egress"):
            _quietly([*inside, "tc", "qdisc", "del", "dev", name, "clsact"])
    attachment.path.unlink(missing_ok=True)


def _detach_dead() -> list[Attachment]:
    files = {path.stat().st_ino: str(path) for path in Path("/run/netns").glob("*")}
    files[Path("/proc/self/ns/net").stat().st_ino] = ""
    dead = [attachment for attachment in attachments() if not attachment.lives]
    for attachment in dead:
        if attachment.namespace in files:
            detach(attachment, files[attachment.namespace])
        else:
            attachment.path.unlink(missing_ok=True)  # its network has gone, and the filters with it
    return dead


def _has_hook(name: str) -> bool:
    return any(row.get("kind") == "clsact" for row in records_of(["tc", "-json", "qdisc", "show", "dev", name]))


def _has_filter(name: str) -> bool:
    return _has_hook(name) and any(row.get("pref") == PREFERENCE for row in _filters([], name, "ingress"))


def _filters(inside: list[str], name: str, where: str) -> list[dict[str, object]]:
    try:
        return records_of([*inside, "tc", "-json", "filter", "show", "dev", name, where])
    except BackendError:
        return []


def _quietly(command: list[str]) -> None:
    """Run it; what is to be taken away may have gone already."""
    try:
        output_of(command)
    except BackendError:
        return
