"""Rows of ``all_to_all.csv``: what they measured, on which network, and in which time its links carry the copies."""

from __future__ import annotations

import csv
import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collectives.experts.exchange import token_bytes
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.experts.kernels import ExpertKernel, name_of, seconds
from commsim.experts.plan_experts import ExpertPlan
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of

# Tokens of a rank that are drawn at most; times of links and counts of copies are in proportion to tokens.
DRAWN = 1024
MODES = {
    "low latency": ("deepep", "low_latency", "uniform"), "normal": ("deepep", "normal", "uniform"),
    "NVLink two-sided": ("trtllm_two_sided", "normal", "balanced"),
    "NVLink one-sided": ("trtllm_one_sided", "normal", "balanced"),
}  # fmt: skip
PRECISIONS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
# What else has the constants of a GPU: names as the public tables write them, the first that fits.
ALIKE = {
    "gb200": ("GB200", "GB300"),
    "b200": ("B200", "B300", "B100"),
    "h200": ("H200", "H20"),
    "h100": ("H100", "H800"),
}
# Machines by what a system's name contains, the first that fits; those of 72 GPUs are one machine, whatever the trays.
MACHINES = {
    "GB300": "gb300-nvl72", "GB200": "gb200-nvl72", "B300": "hgx-b300", "B200": "hgx-b200", "H800": "h800",
    "H200": "hgx-h200", "": "dgx-h100",
}  # fmt: skip
WHOLE = ("nodes", "gpus_per_node", "ranks", "hidden", "top_k", "n_experts", "tokens_per_rank")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured time."""

    columns: dict[str, str]
    number: dict[str, int]
    measured: float

    def __getitem__(self, key: str) -> str:
        return self.columns[key]

    @property
    def gpu(self) -> str:
        """Whose constants are taken; empty where none are of such a GPU."""
        name = self["system"].upper()
        return next((gpu for gpu, names in ALIKE.items() if any(one in name for one in names)), "")

    @property
    def machine(self) -> str:
        """Preset of its machines."""
        name = self["system"].upper()
        return next(machine for text, machine in MACHINES.items() if text in name)

    @property
    def machines(self) -> int:
        """How many they are: racks of 72 GPUs are one each."""
        return -(-self.number["ranks"] // 72) if self.machine.endswith("nvl72") else self.number["nodes"]

    @property
    def operation(self) -> str:
        """Dispatch or combine, whatever its variant; or prepare."""
        return self["operation"].split("_")[0]

    @property
    def precision(self) -> str:
        """Type on the wire: of a combine BF16 unless the row says low precision, of a dispatch FP8 if it says none."""
        if self.operation == "combine":
            return PRECISIONS.get(self["precision"], "bf16") if "low_precision" in self["operation"] else "bf16"
        return PRECISIONS.get(self["precision"], "fp8")

    @property
    def kernel(self) -> str:
        """Name of its kernel in the constants."""
        library, mode, _ = MODES[self["mode"]]
        return name_of(library, mode, self.operation, self.precision)

    @property
    def per_expert(self) -> bool:
        """Whether the kernel is a low-latency one."""
        return MODES[self["mode"]][1] == "low_latency"

    @property
    def sms(self) -> int | None:
        """SMs of its kernel."""
        parts = self["sms"].split("/")
        return int(parts[-1 if self.operation == "combine" else 0]) if parts[0] else None

    @property
    def n_bytes(self) -> float:
        """Bytes of a copy."""
        return token_bytes(self.number["hidden"], self.precision)

    @property
    def table(self) -> str:
        """What rows of a table have in common, in words."""
        c = self.columns
        words = [c["system"], f"{c['nodes']} x {int(c['ranks']) // int(c['nodes'])}", c["mode"], c["operation"]]
        words += [c["precision"]] * bool(c["precision"])
        words += [f"hidden {c['hidden']}", f"top {c['top_k']} of {c['n_experts']}"]
        return ", ".join(words + [f"{c['sms']} SMs"] * bool(c["sms"]))


def read_rows(folder: Path) -> tuple[list[Row], dict[str, str]]:
    """Read the rows of a folder.

    Returns
    -------
    list of Row, dict of str to str
        And the lines that are none, with the reason.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    path = folder / "all_to_all.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from None
    rows, refused = list[Row](), dict[str, str]()
    for number, line in enumerate(lines, 2):
        try:
            rows.append(_row(line))
        except (InputError, ValueError) as error:
            refused[f"{path.name} line {number}"] = str(error)
    return rows, refused


def _row(line: dict[str, Any]) -> Row:
    needed = ("system", "mode", "operation", "precision", "sms", "time_us", *WHOLE)
    if missing := [name for name in needed if line.get(name) is None]:
        raise InputError(f"column {missing[0]} is missing")
    number, measured = {name: int(line[name]) for name in WHOLE}, float(line["time_us"]) * 1e-6
    if min(number.values()) < 1 or not 0 < measured < math.inf:
        raise InputError("numbers and times must be above 0")
    if line["mode"] not in MODES:
        raise InputError(f"mode must be {', '.join(MODES)}, got {line['mode']!r}")
    row = Row(line, number, measured)
    if row.operation not in ("dispatch", "combine", "prepare"):
        raise InputError(f"operation must be dispatch, combine or prepare, got {line['operation']!r}")
    return row


@functools.cache
def _network(machine: str, nodes: int, per_node: int) -> Network:
    """Machines on one switch."""
    if nodes == 1 and per_node > 8 and not machine.endswith("nvl72"):
        machine = f"{machine}:n_gpus={per_node},n_nics={per_node},n_pcie_switches={per_node}"
    return load_network(machine if nodes == 1 else f"{machine}@star:machines={nodes}")


Question = tuple[str, str, int, int]  # collective, preset of machines, how many, ranks


def question(row: Row) -> Question:
    """Return what is asked for a row, of ``DRAWN`` tokens, without a library's costs."""
    n, (_, mode, routing) = row.number, MODES[row["mode"]]
    operation = "dispatch" if row.operation == "prepare" else row.operation
    n_experts = -(-n["n_experts"] // n["ranks"]) * n["ranks"]  # as many on every rank
    spec = (
        f"ep_{operation}:tokens={DRAWN},top_k={n['top_k']},n_experts={n_experts},mode={mode},routing={routing},"
        f"precision={row.precision}"
    )
    return spec, row.machine, row.machines, n["ranks"]


@functools.cache
def planned(spec: str, machine: str, nodes: int, ranks: int) -> ExpertPlan:
    """Return the plan of a question, as ``commsim run`` makes it.

    Raises
    ------
    InputError
        If the question asks for what cannot be.
    """
    network = _network(machine, nodes, ranks // nodes)
    if nodes > 1 and ranks % nodes:
        raise InputError(f"{ranks} ranks do not divide by {nodes} machines")
    placed: Any = None
    if nodes > 1:
        each = len(network.endpoints) // nodes
        if ranks // nodes > each:
            raise InputError(f"{ranks // nodes} ranks do not fit on a machine of {each} GPUs ({machine})")
        placed = [int(network.endpoints[m * each + i]) for m in range(nodes) for i in range(ranks // nodes)]
    plan = plan_of(scenario_of(spec, network, n_ranks=ranks, placement=placed))
    assert isinstance(plan, ExpertPlan)
    return plan


@functools.cache
def links_per_byte(asked: Question, nvlink: float, network: float) -> float:
    """Return the time of links at these shares of their rates, s, for each token and each byte of it."""
    plan = planned(*asked).with_kernel(ExpertKernel(0.0, nvlink=nvlink, network=network))
    return plan.links() / DRAWN / plan.work.n_bytes


def links_of(row: Row, nvlink: float, network: float) -> float:
    """Return the time of a row's links at shares of their rates, s; a stage of preparation has none."""
    if row.operation == "prepare":
        return 0.0
    return links_per_byte(question(row), nvlink, network) * row.number["tokens_per_rank"] * row.n_bytes


def predicted(row: Row, kernel: ExpertKernel, links: float | None = None) -> float:
    """Return the time of a row, s; `links` are those of the kernel's shares, where they are known."""
    drawn, tokens = planned(*question(row)).work, row.number["tokens_per_rank"]
    of = tokens / drawn.tokens
    local = tokens * (1 if row.operation == "dispatch" else row.number["top_k"])
    work = replace(
        drawn, tokens=tokens, local=local, copies=drawn.copies * of, remote=drawn.remote * of, n_bytes=row.n_bytes
    )
    links = links_of(row, kernel.nvlink, kernel.network) if links is None else links
    return seconds(kernel, work, links, row.sms, per_expert=row.per_expert)
