"""The form of a sparse collective: what its messages take, declared beside its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import REDUCE, Schedule, Transfers

from .encodings import Encoding, by_phase, dense
from .long_occupancy import AnyOccupancy
from .partition import balanced_bounds
from .propagate import transfer_contents

# From the schedule and k to int64[n_transfers], the limits that ``keep`` of :mod:`.propagate` takes.
Truncation: TypeAlias = Callable[[Schedule, int], NDArray[np.int64]]

# From the schedule and its transfers to bool[n_transfers].
Choice: TypeAlias = Callable[[Schedule, Transfers], NDArray[np.bool_]]

# From the blocks that ranks have, and the parameters of the collective, to those that they send, in the order in which
# these are cut into chunks.
Sending: TypeAlias = Callable[[Schedule, AnyOccupancy, Mapping[str, Any]], AnyOccupancy]


@dataclass(frozen=True, slots=True)
class SparseForm:
    """How a collective carries data with only some non-zero blocks.

    Parameters
    ----------
    encoding : Encoding
        Bytes of a message.
    copying : Encoding, optional
        Encoding of messages that are copied on arrival, where it is another than that of messages that are added.
    block : int
        Elements of a block, unless the user says otherwise: 1 for lists of coordinates.
    hashed : bool
        Whether chunks are classes of a hash in place of equal ranges.
    balanced : bool
        Whether chunks are ranges in which the ranks have equal numbers of blocks, in place of equal ranges.
    truncate : callable, optional
        Function that says what is kept of what each transfer has written, for a lossy collective, in which k is the
        number of blocks that each rank starts with.
    sends : callable, optional
        Function that says which blocks are sent though they are zero, and another order of the blocks than that of the
        tensor.
    only_data : mapping of str to value
        Parameters with which `sends` sends nothing that is zero; empty where it never does.
    always_dense : callable, optional
        Function that says which messages carry every value whatever the data is, since their part of the tensor or
        their way is dense.
    """

    encoding: Encoding
    copying: Encoding | None = None
    block: int = 1
    hashed: bool = False
    balanced: bool = False
    truncate: Truncation | None = None
    sends: Sending | None = None
    only_data: Mapping[str, Any] = field(default_factory=dict)
    always_dense: Choice | None = None

    @property
    def lossy(self) -> bool:
        """Whether the result is not the sum of all that the ranks have."""
        return self.truncate is not None

    def encodings(self, schedule: Schedule, transfers: Transfers) -> list[Encoding]:
        """Return the encoding of each transfer."""
        copying = self.copying or self.encoding
        chosen = [self.encoding if op == REDUCE else copying for op in transfers["op"].tolist()]
        whole = () if self.always_dense is None else np.flatnonzero(self.always_dense(schedule, transfers)).tolist()
        for i in whole:
            chosen[i] = dense
        return chosen

    def transfer_bytes(
        self, schedule: Schedule, occupancy: AnyOccupancy, parameters: Mapping[str, Any], value_bytes: int = 4
    ) -> NDArray[np.float64]:
        """Return the payload of each transfer.

        Parameters
        ----------
        schedule : Schedule
            Schedule of the collective.
        occupancy : Occupancy or LongOccupancy
            Blocks that the ranks have.
        parameters : mapping of str to value
            Parameters with which the schedule was built.
        value_bytes : int
            Bytes of one element's value.

        Returns
        -------
        float64[n_transfers], bytes
        """
        keep = None if self.truncate is None else self.truncate(schedule, int(occupancy.counts.max()))
        sent = occupancy if self.sends is None else self.sends(schedule, occupancy, parameters)
        bounds = balanced_bounds(sent, schedule.n_chunks) if self.balanced else None
        whole = None if self.always_dense is None else self.always_dense(schedule, schedule.expand())
        contents = transfer_contents(
            schedule, sent, value_bytes=value_bytes, keep=keep, hashed=self.hashed, bounds=bounds, whole=whole
        )
        encode = self.encoding if self.copying is None else by_phase(self.encoding, self.copying)
        return encode(contents) if whole is None else np.where(whole, dense(contents), encode(contents))
