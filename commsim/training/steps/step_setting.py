"""What a training step computes and how it is divided: model, GPU, parallelism, batch, and what hides behind what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.core.errors import InputError, unknown_name
from commsim.core.remark import Remark
from commsim.training.gpus import Gpu
from commsim.training.parallel.pipeline_orders import ORDERS, TWO_WAYS, require_even

from .parallel_sizes import Groups, ParallelSizes, layers_of_chunks
from .roofline import FLASH, FUSED, UNFUSED
from .transformer import ACTIVATION, Transformer

KINDS = ("tensor", "context", "expert", "pipeline", "data")
# Those that hide behind computation unless a setting says otherwise.
HIDDEN = ("tensor", "context", "pipeline", "data")
ATTENTION = (FUSED, FLASH, UNFUSED)
# Precisions whose products do not overlap with tensor parallel exchanges: `TP_COMM_OVERLAP=False` ("not supported yet")
# in NVIDIA's config_common_fp4.sh of MLPerf 5.1, and `tp_comm_overlap = False` in the NVFP4 recipes of Megatron-Bridge.
NO_TENSOR_OVERLAP = ("fp4",)
MAX_MICRO_BATCHES = 1_000_000
# What data parallel ranks divide, and precisions of matrix products; what is asked where nothing else is said.
SHARDING, PRECISION = "optimizer", "bf16"
FP32 = 4


def hidden_kinds(exposed: str | None, experts: bool = False) -> tuple[str, ...]:
    """Return the kinds of traffic that hide behind computation, without those of a list such as ``tensor,data``.

    Parameters
    ----------
    exposed : str, optional
        Kinds that do not hide.
    experts : bool
        Whether exchanges of experts hide too.

    Raises
    ------
    InputError
        If a kind is unknown.
    """
    without = exposed.split(",") if exposed else []
    for kind in without:
        if kind not in HIDDEN:
            raise InputError(f"expose must name some of {', '.join(HIDDEN)}, got {kind!r}")
    return tuple(kind for kind in HIDDEN if kind not in without) + ("expert",) * experts


@dataclass(frozen=True, slots=True)
class StepSetting:
    """What a step computes and how it is divided.

    Parameters
    ----------
    model : Transformer
        Shape.
    gpu : Gpu
        Accelerator.
    layout : ParallelSizes
        Parallelism.
    micro_batch, global_batch, sequence : int
        Sequences of a micro-batch and of a step, and tokens of each.
    precision : str
        Precision of matrix products.
    factor : float
        Compute time over the roofline's: the calibration.
    sharding : {"optimizer", "full", "none"}
        What data parallel ranks divide: the optimizer; parameters too, which are gathered for each pass; or nothing.
    recompute : float
        Share of the forward pass that the backward pass computes again: 0 nothing, 1 (True) all of it.
    frozen : bool
        Whether weights are frozen and only adapters are trained.
    overlap : tuple of str
        Kinds of :data:`KINDS` whose exchanges hide behind computation: usually tensor, context, pipeline and data.
    gradient_bytes : int
        Bytes of a gradient that is sent; 0 for the usual ones, of :attr:`sent_gradient`.
    kernels : {"", "fused", "flash", "unfused"}
        Kernels of attention, as of :func:`commsim.training.steps.roofline.layer_times`; empty for the usual ones.
    graphs : bool
        Whether a step is captured as a graph, so that the host launches no kernel.
    spread : tuple of float, optional
        Factors of the predicted time between which 80 % of published steps lie; None where that is not known.
    schedule : str
        Name of the order of a pipeline's passes in ``ORDERS`` of :mod:`commsim.training.parallel.pipeline_orders`;
        empty for the usual one, interleaved where a stage has several parts, else 1f1b.

    Raises
    ------
    InputError
        If the batch does not divide among the ranks, or a number is out of its range.
    """

    model: Transformer
    gpu: Gpu
    layout: ParallelSizes
    micro_batch: int
    global_batch: int
    sequence: int
    precision: str = PRECISION
    factor: float = 1.0
    sharding: str = SHARDING
    recompute: float = 0.0
    frozen: bool = False
    overlap: tuple[str, ...] = HIDDEN
    gradient_bytes: int = 0
    kernels: str = ""
    graphs: bool = False
    spread: tuple[float, float] | None = None
    schedule: str = ""

    def __post_init__(self) -> None:
        for name in ("micro_batch", "global_batch", "sequence"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if not 0 < self.factor < math.inf:
            raise InputError(f"factor must be above 0 and finite, got {self.factor}")
        if not 0 <= self.recompute <= 1:
            raise InputError(f"recompute must be 0 to 1, got {self.recompute}")
        if self.sharding not in ("optimizer", "full", "none"):
            raise InputError(f"sharding must be optimizer, full or none, got {self.sharding!r}")
        if self.kernels not in ("", *ATTENTION):
            raise InputError(f"attention must be {', '.join(ATTENTION[:-1])} or {UNFUSED}, got {self.kernels!r}")
        for kind in self.overlap:
            if kind not in KINDS:
                raise InputError(f"overlap must name some of {', '.join(KINDS)}, got {kind!r}")
        self.gpu.peak(self.precision)
        each, left = divmod(self.global_batch, self.layout.data * self.micro_batch)
        if left or not each:
            raise InputError(
                f"global batch must be a multiple of data parallel x micro-batch = {self.layout.data} x "
                f"{self.micro_batch}, got {self.global_batch}"
            )
        if each > MAX_MICRO_BATCHES:
            raise InputError(f"a step has at most {MAX_MICRO_BATCHES} micro-batches, got {each}")
        if self.layout.expert > 1 and not self.model.experts:
            raise InputError(f"expert must be 1, since {self.model.name} has no experts, got {self.layout.expert}")
        if self.layout.expert > 1 and self.model.experts % self.layout.expert:
            raise InputError(
                f"expert must divide the {self.model.experts} experts of {self.model.name}, got {self.layout.expert}"
            )
        if self.model.heads % self.layout.tensor:
            raise InputError(
                f"tensor must divide the {self.model.heads} heads of {self.model.name}, got {self.layout.tensor}"
            )
        parts = self.layout.context * self.layout.tensor
        if self.sequence % parts:
            raise InputError(f"sequence must be a multiple of context x tensor = {parts}, got {self.sequence}")
        layers_of_chunks(self.model.layers, self.layout.pipeline * self.layout.chunks)
        if self.schedule:
            self._check_schedule()

    def _check_schedule(self) -> None:
        name, lay = self.schedule, self.layout
        if name not in ORDERS:
            raise unknown_name("pipeline schedule", name, ORDERS)
        if lay.pipeline == 1:
            raise InputError(f"schedule {name} orders the passes of a pipeline, and pp is 1")
        if (name == "interleaved") != (lay.chunks > 1):
            raise InputError(
                f"the interleaved schedule, and no other, has vp of 2 or more; got {name} and {lay.chunks}"
            )
        require_even(name, lay.pipeline, self.micro_batches)

    @property
    def order(self) -> str | None:
        """Name of the order of a pipeline's passes; None without a pipeline."""
        usual = "interleaved" if self.layout.chunks > 1 else "1f1b"
        return None if self.layout.pipeline == 1 else self.schedule or usual

    def parts_of(self, stage: int, n_parts: int) -> tuple[int, ...]:
        """Return the parts of the model that a stage's ranks hold, of so many: every p-th, or those of two ways."""
        p = self.layout.pipeline
        return tuple(sorted({stage, p - 1 - stage})) if self.order in TWO_WAYS else tuple(range(stage, n_parts, p))

    def passes_of(self, stage: int, n_parts: int) -> list[tuple[int, int]]:
        """Return the parts that a stage computes, each with its number of micro-batches."""
        m, p, parts = self.micro_batches, self.layout.pipeline, self.parts_of(stage, n_parts)
        if self.order not in TWO_WAYS:
            return [(i, m) for i in parts]
        ways = ((stage, (m + 1) // 2), (p - 1 - stage, m // 2))
        return [(i, sum(n for part, n in ways if part == i)) for i in parts]

    def groups(self, kind: str) -> Groups:
        """Return all groups of a kind that communicate at the same time; copies of the model are data parallel."""
        lay = self.layout
        groups, n, last = lay.groups(kind), lay.stage_ranks, lay.pipeline - 1
        if self.order not in TWO_WAYS or kind not in ("data", "expert_data"):
            return groups
        pairs = ((of, (last - 2 * (of[0] // n)) * n) for of in groups)
        return tuple((*of, *(rank + far for rank in of)) for of, far in pairs if far > 0)

    def copies_of(self, stage: int) -> int:
        """Return how many stages hold what one does: 2 where two copies of the model go opposite ways, else 1."""
        return 2 if self.order in TWO_WAYS and 2 * stage != self.layout.pipeline - 1 else 1

    def hides(self, kind: str) -> bool:
        """Whether exchanges of a kind hide behind computation."""
        return kind in self.overlap and not (kind == "tensor" and self.precision in NO_TENSOR_OVERLAP)

    @property
    def sent_gradient(self) -> int:
        """Bytes of a gradient that is sent: FP32 with full sharding, as PyTorch's programs have it, else BF16.

        ``mixed_precision_reduce`` of torchtitan, ``reduce_dtype`` of NeMo AutoModel and Composer's DEFAULT are float32;
        ``grad_reduce_in_fp32`` is False in the recipes of Megatron-Bridge.
        """
        return self.gradient_bytes or (FP32 if self.sharding == "full" else ACTIVATION)

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What the precision exposes although nobody asked for it."""
        if self.layout.tensor == 1 or "tensor" not in self.overlap or self.hides("tensor"):
            return ()
        told = f"{self.precision}: no program overlaps tensor parallel exchanges with its products"
        return (Remark("tensor-exposed", told, needed=True),)

    @property
    def attention(self) -> str:
        """Kernels of attention: PyTorch's own with full sharding, which it brought, else those of Megatron."""
        return self.kernels or (FLASH if self.sharding == "full" else FUSED)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a pipeline."""
        return self.global_batch // (self.layout.data * self.micro_batch)
