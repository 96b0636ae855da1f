"""Ranks of a training step by the kind of parallelism: which groups communicate, and which pairs send.

Ranks are numbered as Megatron-LM numbers them: tensor parallel ranks are neighbours, then context, then data parallel
ones, and the stages of a pipeline are farthest apart. Expert parallel groups are consecutive ranks of one stage.

Replicas each hold all parameters, those of experts too: an expert's are divided among the ranks of one replica that
hold the expert, and replicas add up their gradients (hybrid sharding; TorchTitan makes its expert groups so).

References
----------
Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from commsim.core.errors import InputError

MAX_RANKS = 2**17
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ParallelSizes:
    """Sizes of all kinds of parallelism.

    Parameters
    ----------
    tensor, context, data, pipeline : int
        Ranks of a tensor parallel, a context parallel and a data parallel group, and stages of a pipeline; their
        product is the number of ranks.
    expert : int
        Ranks among which the experts of a layer are divided; a divisor of the ranks of a stage.
    chunks : int
        Parts of the model on each stage, of the interleaved schedule.
    replicas : int
        Groups of data parallel ranks of which each divides parameters and optimizer among its own; a divisor of `data`.
        They add up their gradients: slices of TPUs, for one.

    Raises
    ------
    InputError
        If a size is below 1, there are too many ranks, or experts do not divide the ranks of a stage or a replica.
    """

    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    data: int = 1
    expert: int = 1
    chunks: int = 1
    replicas: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise InputError(f"{field.name} must be 1 or more, got {getattr(self, field.name)}")
        if self.n_ranks > MAX_RANKS:
            raise InputError(f"a step is predicted for at most {MAX_RANKS} ranks, got {self.n_ranks}")
        if self.data % self.replicas:
            raise InputError(f"replicas must divide the {self.data} data parallel ranks, got {self.replicas}")
        if self.stage_ranks % self.expert:
            raise InputError(f"expert must divide the {self.stage_ranks} ranks of a stage, got {self.expert}")
        of_replica = self.tensor * self.shards
        if of_replica % self.expert and self.expert % of_replica:
            wanted = f"divide the {of_replica} ranks of a replica, or be a multiple of them"
            raise InputError(f"expert must {wanted}, got {self.expert}")

    @property
    def stage_ranks(self) -> int:
        """Ranks of one stage of all pipelines."""
        return self.tensor * self.context * self.data

    @property
    def shards(self) -> int:
        """Ranks among which the optimizer of a parameter is divided."""
        return self.context * self.data // self.replicas

    @property
    def expert_shards(self) -> int:
        """Ranks among which the optimizer of an expert is divided: those of one replica that hold it."""
        return max(1, self.tensor * self.shards // self.expert)

    @property
    def n_ranks(self) -> int:
        """All ranks."""
        return self.stage_ranks * self.pipeline

    def groups(self, kind: str) -> Groups:
        """Return all groups of a kind that communicate at the same time.

        Parameters
        ----------
        kind : {"tensor", "context", "data", "replica", "expert", "expert_data", "expert_replica"}
            ``data`` are the ranks with the same parameters, which shard their optimizer: data and context parallel ones
            of one replica; ``replica`` those that hold the same shard; ``expert_data`` and ``expert_replica`` are the
            same of experts.
        """
        held = self.expert * self.expert_shards
        size, stride = {
            "tensor": (self.tensor, 1),
            "context": (self.context, self.tensor),
            "data": (self.shards, self.tensor),
            "replica": (self.replicas, self.tensor * self.shards),
            "expert": (self.expert, 1),
            "expert_data": (self.expert_shards, self.expert),
            "expert_replica": (self.stage_ranks // held, held),
        }[kind]
        span = size * stride
        starts = (block + i for block in range(0, self.n_ranks, span) for i in range(stride))
        return tuple(tuple(range(first, first + span, stride)) for first in starts)

    def pairs(self, stage: int, to: int) -> Groups:
        """Return the pairs of ranks that send at the same time from one stage to another."""
        n = self.stage_ranks
        return tuple((stage * n + i, to * n + i) for i in range(n))

    def sends(self) -> Groups:
        """Return pairs of ranks that send at the same time from each second stage to the next one."""
        if self.pipeline == 1:
            return ()
        return tuple(
            (stage * self.stage_ranks + i, (stage + 1) * self.stage_ranks + i)
            for stage in range(0, self.pipeline - 1, 2)
            for i in range(self.stage_ranks)
        )


def layers_of_chunks(n_layers: int, n_chunks: int) -> list[int]:
    """Layers of each part of the model, in order: embedding and head count as a layer where that makes parts equal.

    Raises
    ------
    InputError
        If there are more parts than layers, embedding and head.
    """
    if n_chunks > n_layers + 2:
        raise InputError(f"pipeline x chunks must be at most the model's {n_layers} layers and 2, got {n_chunks}")
    if n_layers % n_chunks and (n_layers + 2) % n_chunks == 0 and n_chunks > 1:
        each = (n_layers + 2) // n_chunks
        return [each - 1, *[each] * (n_chunks - 2), each - 1]
    return [math.ceil(n_layers * (i + 1) / n_chunks) - math.ceil(n_layers * i / n_chunks) for i in range(n_chunks)]
