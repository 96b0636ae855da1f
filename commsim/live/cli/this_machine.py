"""A switch for real workers on this machine: what ``doctor`` says of it, and what ``warmup`` compiles."""

from __future__ import annotations

import shutil
import socket


def doctor_rows() -> list[tuple[str, str, str]]:
    """Return rows of what a switch in the kernel needs; the last one really compiles and loads its program."""
    from switch_model.bpf import requirements

    purpose = "a switch in the kernel"
    return [
        ("clang", shutil.which("clang") or "no (package clang)", purpose),
        ("bpftool", shutil.which("bpftool") or "no (package bpftool)", purpose),
        ("namespaces", _said(requirements.lacking_namespaces()), "hosts with links between them on this machine"),
        ("tc clsact", _said(requirements.lacking_hook()), purpose),
        ("bpf", _said(requirements.lacking_program()), "commsim switch serve --dataplane bpf"),
    ]


def _said(lacking: str) -> str:
    return f"no: {lacking}" if lacking else "yes"


def compile_live(_: str) -> None:
    """Compile what a switch and its workers run on real packets."""
    from switch_model.live.data_plane import DataPlane
    from switch_model.live.datagrams import open_datagrams
    from switch_model.live.exchange import compile_kernels
    from switch_model.live.frames import SIZE_CODES

    elements = min(SIZE_CODES)
    compile_kernels()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        datagrams = open_datagrams(sock, elements)
        arrived = datagrams.receive()
        for tagged in (False, True):
            DataPlane(1, elements, tagged=tagged).handle(datagrams.words, arrived)
