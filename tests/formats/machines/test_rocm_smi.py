"""Machines from ``rocm-smi --showtopo``; the sample machines are made up for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.network import CPU, GPU, Network
from commsim.formats.machines.nvidia_smi import read_nvidia_smi
from commsim.formats.recognise import format_of_file
from commsim.routing.routing import find_routes


def matrix(title: str, n: int, cell: Callable[[int, int], object]) -> str:
    head = "       " + "".join(f"GPU{i:<10}" for i in range(n))
    rows = ["".join([f"GPU{a:<4}", *(f"{cell(a, b)!s:<13}" for b in range(n))]) for a in range(n)]
    return "\n".join([f"{'=' * 20} {title} {'=' * 20}", head, *rows, "", ""])


def printed(n: int, hops: Callable[[int, int], object], kinds: Callable[[int, int], object]) -> str:
    text = "============ ROCm System Management Interface ============\n\n"
    text += matrix("Weight between two GPUs", n, lambda a, b: 0 if a == b else 15)
    text += matrix("Hops between two GPUs", n, hops) + matrix("Link Type between two GPUs", n, kinds)
    numa = (
        f"GPU[{i}]\t\t: (Topology) Numa Node: {i * 2 // n}\nGPU[{i}]\t\t: (Topology) Numa Affinity: 0" for i in range(n)
    )
    return "\n".join([text, "======= Numa Nodes =======", *numa, "=== End of ROCm SMI Log ===", ""])


MESH = printed(8, lambda a, b: int(a != b), lambda a, b: "XGMI" if a != b else 0)


def read(folder: Path, text: str, **options: object) -> Network:
    (folder / "box.txt").write_text(text)
    return read_nvidia_smi(folder / "box.txt", **options)


def test_eight_gpus_in_a_mesh_are_the_preset(tmp_path: Path) -> None:
    network = read(tmp_path, MESH)
    assert format_of_file(str(tmp_path / "box.txt")) == "nvidia-smi"
    assert network.hardware == "gpu=cdna3,cpu=amd,guessed=gpu"
    assert [(network.kind == kind).sum() for kind in (GPU, CPU)] == [8, 2]
    times = [cs.predict("rccl_all_reduce", one, "1GiB").time for one in (network, "mi300x")]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


def test_a_name_in_the_text_and_what_is_given_are_no_guess(tmp_path: Path) -> None:
    assert read(tmp_path, f"AMD Instinct MI250X\n{MESH}").hardware == "gpu=cdna2,cpu=amd"
    network = read(tmp_path, MESH, gpu="cdna4", nvlink=700e9, pcie=50e9)
    assert network.hardware == "gpu=cdna4,cpu=amd"
    assert {round(rate / 1e9) for rate in network.bandwidth.tolist()} == {100, 50, 16}
    with pytest.raises(InputError, match="gpu=hopper is NVIDIA's, and the file has GPUs of AMD"):
        read(tmp_path, MESH, gpu="hopper")


def test_gpus_on_pcie_only_meet_at_their_sockets(tmp_path: Path) -> None:
    network = read(tmp_path, printed(4, lambda a, b: 2 * (a != b), lambda a, b: "PCIE" if a != b else 0))
    link = find_routes(network, 0, 3).link
    assert [network.nodes[network.dst[one]] for one in link] == ["cpu0", "cpu1", "gpu3"]


def test_in_a_ring_gpus_forward(tmp_path: Path) -> None:
    network = read(
        tmp_path, printed(4, lambda a, b: min((a - b) % 4, (b - a) % 4), lambda a, b: "XGMI" if a != b else 0)
    )
    link = find_routes(network, 0, 2).link
    assert len(link) == 2
    assert network.nodes[network.dst[link[0]]] in ("gpu1", "gpu3")


def test_a_table_in_markdown_is_the_same(tmp_path: Path) -> None:
    def markdown(line: str) -> str:
        return f"| {' | '.join(line.replace('GPU', '**GPU').split())} |" if line.strip().startswith("GPU") else line

    text = "\n".join(markdown(line) if "[" not in line else line for line in MESH.splitlines())
    assert (read(tmp_path, text).bandwidth == read(tmp_path, MESH).bandwidth).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Link Type between two GPUs", "Links", "has no 'Link Type between two GPUs'; print it with --showtopo"),
        ("XGMI         0  ", "NVL          0  ", "'NVL' of GPU1 is none of XGMI, PCIE, 0"),
        ("GPU3   XGMI  ", "GPU9   XGMI  ", "the row of GPU3 is missing"),
        ("GPU7   XGMI         XGMI  ", "GPU7   XGMI  ", "the row of GPU7 has 7 cells, and there are 8 GPUs"),
        ("GPU7   XGMI  ", "GPU7   PCIE  ", "is not the same both ways"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MESH
    with pytest.raises(InputError, match=message):
        read(tmp_path, MESH.replace(old, new, 1))
