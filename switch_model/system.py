"""A system of in-network aggregation, as the few facts in which systems differ; the pipeline is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError

SHORTEST_RTO = 1e-12  # seconds: simulations count picoseconds
ARITHMETICS = ("wrap", "saturate", "float")
QUANTIZERS = ("block_exponent", "fixed", "none")
DEDICATED, COLOCATED = "dedicated", "colocated"
HOSTS = ("", DEDICATED, COLOCATED)
N_WORKERS = 8  # of a job, where nothing else is said
MAX_VALUE = 1 << 20  # of anything that is counted: far beyond any switch, and tables of it fit into memory


# Seconds of one packet in a switch or a host, and until it is repeated: sums of them stay whole picoseconds of 64 bits.
MAX_TIMES = {"segment_time": 1.0, "adding_time": 1.0, "switch_latency": 1.0, "host_latency": 1.0, "rto": 1e3}


@dataclass(frozen=True, slots=True)
class System:
    """How packets look, how slots are given out, and what happens when one is lost.

    Parameters
    ----------
    name : str
        What it is.
    elements : int
        Elements per packet, k.
    element_bytes : int
        4 for int32 and float32, 2 for half precision.
    packets_per_message : int
        Packets that are sent, acknowledged and repeated together; each has a slot of its own.
    header : int, bytes
        Size of each packet on the wire beside its payload, with frame check sequence, preamble and gap.
    first_header, last_header : int, bytes
        More on the first and on the last packet of a message.
    pool_size : int
        Slots of a switch, s: of each job when reserved, of all jobs together when shared. With two versions each
        exists twice.
    window : int
        Packets that a worker may have outstanding; at most `pool_size` when slots are reserved.
    versions : int
        2: the slot of the round before answers workers that missed its result, and is cleared for the round after.
        Reserved slots need 2 even without loss; 1 leaves the rule out, and sums go wrong from the second round on.
    shared_slots : callable, optional
        Slots that fragments share, each its own while it finds it free (ATP): a function from the number of a job, its
        window and the pool's size to the slot of each entry of the window, int32[window]. None: slots are reserved.
    sliding : bool
        Messages go in order in a window (ATP, PANAMA); else each slot clocks itself (SwitchML).
    ecn_window : bool
        A sliding window shrinks on marks; else it stays.
    gain : float
        Gain of the running estimate of marks by which the window shrinks, once per window; 1 halves it on any mark.
    window_growth : float, bytes
        What a window without marks grows by.
    max_window : int
        Packets that such a window grows to.
    lossless : bool
        Links lose nothing and workers never repeat (SHARP, NVLS).
    rto : float, s
        Timeout after which a worker repeats a message.
    arithmetic : {"wrap", "saturate", "float"}
        What the registers do when a sum does not fit in int32, or that they hold floats.
    quantizer : {"block_exponent", "fixed", "none"}
        How floats become integers.
    server : bool
        Sums end at a parameter server, from which results come (ATP); else at the tree's root.
    n_trees : int
        Aggregation trees over which a job's chunks are spread (PANAMA).
    segment_time : float, s
        How long a sum occupies the switch's aggregation unit.
    adding_time : float, s
        How long each packet that is added to it does, so that a sum of many packets takes longer (Flare, iSwitch).
    switch_latency : float, s
        Time from the last packet's arrival to the result's departure; occupies nothing.
    host_latency : float, s
        Latency of a worker, per operation; occupies nothing.
    max_fan_in : int
        Children of one switch, workers and switches below it: bits of a slot's bitmap. A job over several switches may
        have more workers.
    hosts : {"", "dedicated", "colocated"}
        Aggregators are hosts, one per tree: their own, or workers' (OmniReduce); else they are switches.
    in_machines : bool
        Aggregators are switches inside machines where there are some (NVLS); else those of the network outside.
    cores : int
        Shares of a tensor, each with as many slots, when only blocks that are not all zero are sent (OmniReduce).
    smallest : int, bytes
        Smallest size of a packet on the wire.
    """

    name: str
    elements: int
    element_bytes: int = 4
    packets_per_message: int = 1
    header: int = 0
    first_header: int = 0
    last_header: int = 0
    pool_size: int = 512
    window: int = 512
    versions: int = 2
    shared_slots: Callable[[int, int, int], NDArray[np.int32]] | None = None
    sliding: bool = False
    ecn_window: bool = False
    gain: float = 1.0
    window_growth: float = 1500.0
    max_window: int = 1 << 30
    lossless: bool = False
    rto: float = 1e-3
    arithmetic: str = "wrap"
    quantizer: str = "block_exponent"
    server: bool = False
    n_trees: int = 1
    segment_time: float = 0.0
    adding_time: float = 0.0
    switch_latency: float = 0.0
    host_latency: float = 0.0
    max_fan_in: int = 32
    hosts: str = ""
    in_machines: bool = False
    cores: int = 1
    smallest: int = 0

    def __post_init__(self) -> None:
        for field in ("elements", "element_bytes", "packets_per_message", "pool_size", "window", "n_trees", "cores"):
            if getattr(self, field) < 1:
                raise InputError(f"{self.name}: {field} must be at least 1, got {getattr(self, field)}")
            if getattr(self, field) > MAX_VALUE:
                raise InputError(f"{self.name}: {field} must be at most {MAX_VALUE}, got {getattr(self, field)}")
        for field in ("header", "first_header", "last_header", "smallest"):
            if not 0 <= getattr(self, field) <= MAX_VALUE:
                raise InputError(f"{self.name}: {field} must be 0..{MAX_VALUE} bytes, got {getattr(self, field)}")
        for field, most in MAX_TIMES.items():
            if not 0 <= getattr(self, field) <= most:
                raise InputError(f"{self.name}: {field} must be 0 to {most:g} s, got {getattr(self, field):g}")
        if self.packets_per_message & (self.packets_per_message - 1):
            got = self.packets_per_message
            raise InputError(f"{self.name}: packets per message must be a power of two, got {got}")
        if self.server and not self.shared:
            raise InputError(f"{self.name}: a parameter server adds what finds no slot, so slots must be shared")
        if self.ecn_window and not self.sliding:
            raise InputError(f"{self.name}: slots that clock themselves have no window that marks could shrink")
        if self.versions not in (1, 2):
            raise InputError(f"{self.name}: a slot has 1 or 2 versions, got {self.versions}")
        if not self.shared and self.window > self.pool_size:
            raise InputError(
                f"{self.name}: a window of {self.window} packets needs as many slots, got {self.pool_size}"
            )
        if self.window % self.packets_per_message:
            per = self.packets_per_message
            raise InputError(f"{self.name}: a window is whole messages of {per} packets, got {self.window} packets")
        if self.sliding and self.n_trees > 1 and self.pool_size % (self.n_trees * self.packets_per_message):
            # the packets that use a slot in turn must meet on one tree, whose switches tell their versions apart
            each = self.n_trees * self.packets_per_message
            near = " or ".join(str(n * each) for n in (self.pool_size // each, self.pool_size // each + 1) if n)
            raise InputError(
                f"{self.name}: pool_size is a multiple of its {self.n_trees} trees: {near}, got {self.pool_size}"
            )
        if not self.lossless and not self.rto >= SHORTEST_RTO:
            raise InputError(f"{self.name}: a worker that repeats needs an rto of at least 1 ps, got {self.rto:g} s")
        if self.arithmetic not in ARITHMETICS:
            raise InputError(f"{self.name}: unknown arithmetic {self.arithmetic!r}; known: {', '.join(ARITHMETICS)}")
        if self.quantizer not in QUANTIZERS:
            raise InputError(f"{self.name}: unknown quantizer {self.quantizer!r}; known: {', '.join(QUANTIZERS)}")
        if self.hosts not in HOSTS:
            raise InputError(f"{self.name}: aggregators on hosts are {' or '.join(HOSTS[1:])}, got {self.hosts!r}")
        if self.window % self.cores:
            raise InputError(f"{self.name}: {self.window} slots cannot be shared out among {self.cores} cores")

    @property
    def shared(self) -> bool:
        """Whether jobs share the slots, which fragments claim."""
        return self.shared_slots is not None

    @property
    def payload(self) -> int:
        """Bytes of values in a packet."""
        return self.elements * self.element_bytes

    def packet_bytes(self, position: int) -> int:
        """Bytes on the wire of the packet at this position of its message."""
        more = self.first_header * (position == 0) + self.last_header * (position == self.packets_per_message - 1)
        return max(self.payload + self.header + more, self.smallest)

    @property
    def empty_bytes(self) -> int:
        """Bytes on the wire of a packet without values."""
        return max(self.header, self.smallest)

    @property
    def message_bytes(self) -> int:
        """Bytes on the wire of a whole message."""
        return self.packets_per_message * (self.payload + self.header) + self.first_header + self.last_header

    @property
    def framing(self) -> Framing:
        """Packets as the flow engine counts them: a message's headers are shared out among its packets."""
        return Framing(self.payload, self.message_bytes / self.packets_per_message - self.payload)

    def unit_time(self, fan_in: int) -> float:
        """Seconds for which the sum of so many packets occupies an aggregation unit."""
        return self.segment_time + fan_in * self.adding_time

    def line_rate(self, bandwidth: float) -> float:
        """Elements per second that a link of `bandwidth` bytes/s carries at most: B k / L_w."""
        return bandwidth * self.elements * self.packets_per_message / self.message_bytes
