"""The live switch without its sockets: slots and registers, which job may use them, and counters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.slot_kernel import SLOT_ROW

from .datagrams import ARRIVED, REPLY, address_key, to_addresses
from .frame_fields_kernel import COUNTERS, FORGED, INJECTED_OUT, MEMBER, NOT_SENT, PACKETS_OUT, ROUND
from .frame_kernel import complete_leads, handle_batch
from .frame_tags import result_state, right_tags, worker_state, write_tags
from .frames import MAX_SLOTS, TAG_BYTES, new_rows, type_and_size

MAX_WORKERS = 32


class DataPlane:
    """State of a switch.

    Parameters
    ----------
    pool_size : int
        Slots, for all jobs together; each exists in two versions.
    elements : int
        Values of a packet.
    drop_in, drop_out : float
        Probabilities with which a packet that came, and one that is about to leave, is lost on purpose.
    seed : int
        Seed of these losses.
    tagged : bool
        Whether datagrams have tags, see `frame_tags`; then every job has a key.

    Attributes
    ----------
    addresses : ADDRESS[n]
        Addresses of the registered workers, as replies number them.
    counters : int64[len(COUNTERS)]
        See `data_kernel.COUNTERS`.
    """

    def __init__(
        self, pool_size: int, elements: int, drop_in: float = 0.0, drop_out: float = 0.0, seed: int = 0,
        tagged: bool = False,
    ) -> None:  # fmt: skip
        if not 1 <= pool_size <= MAX_SLOTS:
            raise InputError(f"a pool has 1 to {MAX_SLOTS} slots, got {pool_size}")
        for name, chance in (("in", drop_in), ("out", drop_out)):
            if not 0 <= chance < 1:
                raise InputError(f"a probability of loss ({name}) is at least 0 and less than 1, got {chance}")
        type_and_size(elements)
        self.pool_size, self.elements, self.tag_bytes = pool_size, elements, TAG_BYTES if tagged else 0
        self._drop_in, self._drop_out, self._random = drop_in, drop_out, np.random.default_rng(seed)
        self._slots = np.zeros(2 * pool_size, SLOT_ROW)
        self._rounds = np.zeros(2 * pool_size, ROUND)
        self._registers = np.zeros((2 * pool_size, elements), np.uint32)
        self._jobs: dict[int, NDArray[Any]] = {}
        self._peers: dict[int, list[tuple[str, int]]] = {}
        self._keys: dict[int, bytes] = {}
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self._replies = np.zeros(0, REPLY)
        self._register()
        self.handle(new_rows(1, elements, self.tag_bytes), np.zeros(0, ARRIVED))  # compiles

    def open(
        self, job_number: int, peers: Sequence[tuple[str, int]], first_slot: int, n_slots: int, begin: int = 0,
        key: bytes = b"",
    ) -> None:  # fmt: skip
        """Let a job's workers use slots.

        Parameters
        ----------
        job_number : int
            0..255.
        peers : sequence of (str, int)
            Address and UDP port of each rank.
        first_slot, n_slots : int
            Range.
        begin : int
            Number of the job's first packet, a multiple of 2 n_slots.
        key : bytes
            Key of the job's tags.

        Raises
        ------
        InputError
            If an address is another worker's already.
        """
        members = np.zeros(len(peers), MEMBER)
        members["source"] = [address_key(*peer) for peer in peers]
        members["child"], members["fan_in"] = np.arange(len(peers)), len(peers)
        members["job_number"], members["first_slot"], members["n_slots"] = job_number, first_slot, n_slots
        every = np.concatenate([members["source"], *(job["source"] for job in self._jobs.values())])
        if len(np.unique(every)) < len(every):
            raise InputError("two workers have the same address and port")
        self._clear(first_slot, n_slots, begin)
        self._jobs[job_number], self._peers[job_number], self._keys[job_number] = members, list(peers), key
        self._register()

    @property
    def job_numbers(self) -> Collection[int]:
        """Numbers of the jobs that have slots."""
        return self._jobs.keys()

    def close(self, job_number: int) -> None:
        """Take a job's slots back; whatever its workers still send is dropped."""
        if self._jobs.pop(job_number, None) is not None:
            del self._peers[job_number], self._keys[job_number]
            self._register()

    def handle(self, words: NDArray[np.uint32], arrived: NDArray[Any]) -> NDArray[Any]:
        """Handle frames that came, in place; return the REPLY[n] to send to `addresses`."""
        if self._drop_in:
            arrived["lost"] = self._random.random(len(arrived)) < self._drop_in
        if len(self._replies) < MAX_WORKERS * len(arrived):
            self._replies = np.zeros(MAX_WORKERS * len(arrived), REPLY)
        if self.tag_bytes:
            self._mark_forged(words, arrived)
        n = handle_batch(words, arrived, self._members, self._slots, self._rounds, self._registers, self.counters,
                         self._replies)  # fmt: skip
        replies = self._replies[:n]
        if self._drop_out:
            passed = self._random.random(n) >= self._drop_out
            self.counters[INJECTED_OUT] += n - int(passed.sum())
            replies = replies[passed]
        if self.tag_bytes and len(replies):
            rows = np.unique(replies["row"])
            write_tags(words, rows, [self._of_results[number] for number in (words[rows, 1] >> 24).tolist()])
        return replies

    def sent(self, n_replies: int, n_taken: int) -> None:
        """Count replies that left, and those that the system refused."""
        self.counters[PACKETS_OUT] += n_taken
        self.counters[NOT_SENT] += n_replies - n_taken

    def counts(self) -> dict[str, int]:
        """Return all counters by name."""
        return dict(zip(COUNTERS, self.counters.tolist(), strict=True))

    def busy(self, job_number: int) -> list[dict[str, Any]]:
        """Return the slots of a job that wait for contributions, and the ranks that they wait for."""
        members = self._jobs.get(job_number)
        if members is None:
            return []
        first, n = 2 * int(members[0]["first_slot"]), 2 * int(members[0]["n_slots"])
        rows = self._slots[first : first + n]
        return [
            {"slot": (first + int(at)) // 2, "version": int(at) % 2,
             "waits_for": [rank for rank in range(len(members)) if not int(rows[at]["seen"]) >> rank & 1]}
            for at in np.flatnonzero(rows["count"])
        ]  # fmt: skip

    def _mark_forged(self, words: NDArray[np.uint32], arrived: NDArray[Any]) -> None:
        """Take the rows from frames whose tag is wrong; frames that are dropped anyway are not looked at."""
        complete_leads(words, arrived, np.ascontiguousarray(self._rounds["tsi"]))
        sources = self._members["source"]
        which = np.searchsorted(sources, arrived["source"])
        known = np.append(sources, -1)[which] == arrived["source"]
        looked_at = np.flatnonzero(known & (arrived["row"] >= 0) & ~arrived["lost"])
        states = [self._of_members[at] for at in which[looked_at].tolist()]
        right = right_tags(words, arrived["row"][looked_at], states)
        arrived["row"][looked_at[~right]] = FORGED

    def _clear(self, first_slot: int, n_slots: int, begin: int) -> None:
        """Forget what slots hold; each version expects the first packet of the sequence that belongs there."""
        rows = slice(2 * first_slot, 2 * (first_slot + n_slots))
        self._slots[rows] = np.zeros(2 * n_slots, SLOT_ROW)
        place = np.arange(n_slots)[:, np.newaxis] + n_slots * np.arange(2)
        self._rounds[rows]["tsi"] = begin + place.reshape(-1) - 2 * n_slots

    def _register(self) -> None:
        peers: list[tuple[str, int]] = []
        tables = [np.zeros(0, MEMBER)]
        for job_number, members in self._jobs.items():
            members["address"] = len(peers) + np.arange(len(members))
            peers += self._peers[job_number]
            tables.append(members)
        members = np.concatenate(tables)
        self._members, self.addresses = members[np.argsort(members["source"])], to_addresses(peers)
        if self.tag_bytes:
            senders = self._members[["job_number", "child"]].tolist()
            self._of_members = [worker_state(self._keys[job], rank) for job, rank in senders]
            self._of_results = {job: result_state(key) for job, key in self._keys.items()}
