"""What the kernel's switch needs of a machine, and whether it is here."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from commsim.core.errors import BackendError
from switch_model.systems.switchml import switchml_udp

from .commands import output_of
from .program import build
from .system_call import available, try_to_make_a_map

# Programs, and the Debian packages that have them.
PROGRAMS = {"clang": "clang", "bpftool": "bpftool", "tc": "iproute2", "ip": "iproute2", "unshare": "util-linux"}
HEADER = Path("/usr/include/bpf/bpf_helpers.h")

_LOAD = 'mount -t bpf none "$1"; bpftool prog load "$2" "$1/program" type classifier'


def lacking() -> str:
    """Return why the kernel's switch cannot run here, in a few words, without compiling anything; or nothing."""
    if sys.platform != "linux" or not available():
        return "it needs Linux, on a processor with known system calls"
    if os.geteuid() != 0:
        return "it needs root"
    missing = {program: package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if missing:
        return f"no {', '.join(missing)} here (packages {', '.join(sorted(set(missing.values())))})"
    if not HEADER.exists():
        return f"no {HEADER} here (package libbpf-dev)"
    return lacking_hook() or lacking_permission()


def lacking_hook() -> str:
    """Return why interfaces take no classifier here; or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("tc") is None or shutil.which("unshare") is None:
        return "it needs Linux, root, tc (package iproute2) and unshare (package util-linux)"
    return _refused(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "clsact"], "the kernel has no clsact")


def lacking_permission() -> str:
    """Return why the kernel takes no programs from us, as in a container without the rights; or nothing."""
    try:
        try_to_make_a_map()
    except BackendError as error:
        return str(error)
    command = ["unshare", "--mount", "mount", "-t", "bpf", "none", "/run"]
    return _refused(command, "the kernel has no file system of type bpf")


def lacking_namespaces() -> str:
    """Return why network namespaces with links between them do not work here; or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        return "they need Linux, root, ip (package iproute2) and unshare (package util-linux)"
    command = ["unshare", "--net", "ip", "link", "add", "type", "veth"]
    return _refused(command, "the kernel has no network namespaces or no veth")


def lacking_program(elements: int = 64) -> str:
    """Return why the program itself cannot be compiled and loaded here, by trying; or nothing."""
    why = lacking()
    if why:
        return why
    with tempfile.TemporaryDirectory() as folder:
        try:
            target = build(switchml_udp(elements, pool_size=1), Path(folder))
            (Path(folder) / "fs").mkdir()
            output_of(["unshare", "--mount", "sh", "-eu", "-c", _LOAD, "sh", f"{folder}/fs", str(target)])
        except BackendError as error:
            return str(error)
    return ""


def _refused(command: list[str], what: str) -> str:
    try:
        output_of(command)
    except BackendError as error:
        return f"{what}: {error}"
    return ""
