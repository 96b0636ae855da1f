"""An interpreter of MSCCL's XML on NumPy arrays, obvious and slow: thread blocks go on in a random order."""

import xml.etree.ElementTree as ET
from collections import defaultdict, deque
from typing import Any

import numpy as np


def run(text: str, data: np.ndarray, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """Run an algorithm on `data` [n_gpus, n_chunks]; return the buffers i, o and s of every GPU."""
    top = ET.fromstring(text)
    n_gpus, n_chunks = int(top.get("ngpus", 0)), int(top.get("nchunksperloop", 0))
    memory: dict[str, list[np.ndarray]] = {"i": [], "o": [], "s": []}
    in_place, coll = top.get("inplace") == "1", top.get("coll")
    for g, gpu in enumerate(top):
        sizes = {b: int(gpu.get(f"{b}_chunks", 0)) for b in "ios"}
        whole = data[g].copy()
        part = n_chunks // n_gpus
        if coll == "allgather":
            out = np.full(n_chunks, np.nan)
            if in_place:
                out[g * part : (g + 1) * part] = whole[g * part : (g + 1) * part]
                own = out[g * part : (g + 1) * part]
            else:
                own = whole[g * part : (g + 1) * part]
            memory["i"].append(own)
            memory["o"].append(out)
        elif coll == "reduce_scatter":
            memory["i"].append(whole)
            memory["o"].append(whole[g * part : (g + 1) * part] if in_place else np.full(part, np.nan))
        else:
            memory["i"].append(whole)
            memory["o"].append(whole if in_place else np.full(n_chunks, np.nan))
        memory["s"].append(np.full(sizes["s"], np.nan))
    blocks = [(g, b, tb, list(tb)) for g, gpu in enumerate(top) for b, tb in enumerate(gpu)]
    at = {(g, b): 0 for g, b, _, _ in blocks}
    wires: dict[tuple[int, int, int], deque[np.ndarray]] = defaultdict(deque)
    while True:
        free = [block for block in blocks if at[block[:2]] < len(block[3]) and _can(block, at, wires)]
        if not free:
            break
        g, b, tb, steps = free[rng.integers(len(free))]
        _do(g, tb, steps[at[g, b]], memory, wires)
        at[g, b] += 1
    assert all(at[g, b] == len(steps) for g, b, _, steps in blocks), "deadlock"
    assert not any(wires.values()), "a message that nobody takes"
    return memory


def _can(block: Any, at: dict[tuple[int, int], int], wires: Any) -> bool:
    g, b, tb, steps = block
    step = steps[at[g, b]]
    if int(step.get("depid")) >= 0 and at[g, int(step.get("depid"))] <= int(step.get("deps")):
        return False
    return not step.get("type").startswith("r") or step.get("type") in ("re", "ra") or bool(_incoming(g, tb, wires))


def _incoming(g: int, tb: Any, wires: Any) -> Any:
    return wires[int(tb.get("recv")), g, int(tb.get("chan"))]


def _do(g: int, tb: Any, step: Any, memory: Any, wires: Any) -> None:
    kind, n = step.get("type"), int(step.get("cnt"))
    src, dst = (memory[step.get(f"{e}buf")][g][int(step.get(f"{e}off")) :][:n] for e in ("src", "dst"))
    if kind == "nop":
        return
    if kind == "cpy":
        dst[:] = src
        return
    if kind in ("re", "ra"):
        dst += src
        return
    value = src.copy()
    if kind != "s":
        arrived = _incoming(g, tb, wires).popleft()
        value = value + arrived if "rr" in kind else arrived
        if kind in ("r", "rcs", "rrc", "rrcs"):
            dst[:] = value
    if kind in ("s", "rcs", "rrs", "rrcs"):
        wires[g, int(tb.get("send")), int(tb.get("chan"))].append(value.copy())
