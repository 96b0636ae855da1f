"""NCCL's symmetric kernels: what they are expected to take where both buffers are registered as symmetric windows.

They replace algorithms and protocols inside one NVLink domain: GPUs read and write each other's memory, or through the
multicast of the NVSwitch. NCCL takes the kernel whose time, with 2.5 % added for each block that it runs on, is the
least, on the fewest blocks that are within 2.5 % of what all of its blocks take.

References
----------
NCCL 2.27 to 2.30, ``src/sym_kernels.cc`` (``src/symmetric.cc`` in 2.27): rules and constants, in our words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .nccl_setting import SINCE_HOPPER, NcclSetting

SINCE = (2, 27)
MAX_BLOCKS = 64
# What a further block must gain, and what it is charged in the comparison of kernels.
TOLERANCE, BLOCK_CHARGE = 1.025, 0.025
# Bytes on the bus for each byte with LL: twice, and what it costs to look at the flags.
LL_BYTES = 9
# Beyond this many bytes LL is not used, and beyond that none is: counters have 32 bits.
LL_LIMIT, LIMIT = 2 * 2**30, 64 * 2**30
_GIB = 2**30
# Name; which bytes cross the bus; what a block's rate is multiplied by; whether the switch multicasts or adds. That
# all-gather and reduce-scatter count as little with multicast as without is NCCL's way to prefer it.
_KERNELS: dict[str, tuple[tuple[str, str, str, bool], ...]] = {
    "all_reduce": (
        ("AllReduce_AGxLL_R", "ll", "1", False), ("AllReduce_AGxLLMC_R", "ll", "1.1", True),
        ("AllReduce_RSxLD_AGxST", "two halves", "1", False), ("AllReduce_RSxLDMC_AGxSTMC", "once", "n", True),
    ),
    "all_gather": (
        ("AllGather_LL", "ll", "1", False), ("AllGather_LLMC", "ll", "1.1", True),
        ("AllGather_ST", "others", "1", False), ("AllGather_STMC", "others", "0.55n", True),
    ),
    "reduce_scatter": (
        ("ReduceScatter_LL", "ll", "1", False), ("ReduceScatter_LD", "others", "1", False),
        ("ReduceScatter_LDMC", "others", "0.55n", True),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SymmetricKernel:
    """One kernel at one size.

    Parameters
    ----------
    name : str
        NCCL's, as in ``NCCL_SYM_KERNEL``.
    time : float, s
        Expected.
    blocks : int
        Number of blocks that it runs on.
    """

    name: str
    time: float
    blocks: int

    @property
    def charged(self) -> float:
        """What NCCL compares."""
        return self.time * (1 + BLOCK_CHARGE * self.blocks)


def kernels(setting: NcclSetting, operation: str, size: int) -> tuple[SymmetricKernel, ...]:
    """Return the symmetric kernels of an operation, the one that NCCL takes first.

    Parameters
    ----------
    setting : NcclSetting
        Communicator; on several nodes, and without NVLink between all GPUs, no kernel is returned.
    operation : str
        ``all_reduce``, ``all_gather`` or ``reduce_scatter``; others have none.
    size : int, bytes
        Size as nccl-tests counts it: of the whole array.
    """
    if why_none(setting) or operation not in _KERNELS:
        return ()
    n = setting.n_ranks
    if size >= LIMIT:
        return ()
    own = size if operation == "all_reduce" else -(-size // n)
    multicast = "nvls" in setting.channels and setting.channels["nvls"].n > 1
    found = []
    for name, bytes_of, factor, is_multicast in _KERNELS[operation]:
        is_ll = "LL" in name
        if (is_multicast and not multicast) or (is_ll and size >= LL_LIMIT):
            continue
        limit = MAX_BLOCKS if not is_multicast or is_ll else -(-(16 if setting.gpu == "hopper" else 32) // n)
        bus = own * _bytes(bytes_of, n)
        found.append(_on_fewest_blocks(setting.gpu, operation, name, bus, _share(factor, n), limit))
    return tuple(sorted(found, key=lambda kernel: kernel.charged))


def why_none(setting: NcclSetting) -> str:
    """Why symmetric kernels are not used here; empty if they are."""
    if setting.version < SINCE:
        return f"they are in NCCL since {SINCE[0]}.{SINCE[1]}"
    if setting.gpu not in SINCE_HOPPER:
        return "their constants are those of Hopper and Blackwell"
    if setting.n_nodes > 1:
        return "between nodes there is only the all-gather over GPU-initiated networking, which is not modelled"
    if setting.channels["ring"].path_intra != "NVL":
        return "they need NVLink between all GPUs"
    return ""


def _bytes(kind: str, n: int) -> float:
    return {"ll": n * LL_BYTES, "two halves": 2 * (n - 1) / n, "once": 1 + 1 / n, "others": n - 1}[kind]


def _share(kind: str, n: int) -> float:
    return {"1": 1.0, "1.1": 1.1, "n": float(n), "0.55n": 0.55 * n}[kind]


def _on_fewest_blocks(gpu: str, operation: str, name: str, bus: float, factor: float, limit: int) -> SymmetricKernel:
    is_ll, adds_in_switch = "LL" in name, name == "AllReduce_RSxLDMC_AGxSTMC"
    if gpu == "hopper":
        base = 4.5 if is_ll else 7.8
        block, peak = 65 if operation == "all_reduce" else 44, 480 if adds_in_switch else 320
    else:
        slow = 19.5 if operation == "all_reduce" else 13.0
        base = (8.5 if operation == "all_gather" else 11.0) if is_ll else slow
        block, peak = 55, 1000 if adds_in_switch else 600

    def time(blocks: int) -> float:
        # Microseconds; NCCL's GB/s are 2^30 bytes, and what it is smooth by is one block's rate.
        rate = _smooth_minimum(blocks * block * factor, peak, block) * _GIB * 1e-6
        return (base + _smooth_excess(bus / rate - 1)) * 1e-6

    longest = time(limit)
    blocks = next((b for b in range(1, limit) if time(b) <= TOLERANCE * longest), limit)
    return SymmetricKernel(name, time(blocks), blocks)


def _smooth_minimum(x: float, ceiling: float, softness: float) -> float:
    """Return about the smaller one of both; near to each other, less than either."""
    return ceiling - softness * math.log1p(math.expm1(ceiling / softness) * math.exp(-x / softness))


def _smooth_excess(x: float) -> float:
    """Return about `x` where it is positive, else about 0."""
    return x if x >= 100 else math.log1p(math.exp(x))
