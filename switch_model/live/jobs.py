"""Which worker belongs to which job, and what the workers must agree on; without sockets, so that tests need none."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from commsim.core.errors import InputError

from .authentication import Secrets, job_key, new_nonce
from .control_messages import text, whole_field
from .data_plane import MAX_WORKERS
from .exchange import DTYPES
from .job import LiveJob, Member, Plane, clash
from .slot_ranges import first_fit, free_ranges

MAX_JOBS = 256  # numbers that fit in a frame
MAX_AHEAD = 1 << 14  # tensors that a worker may announce before the last one announces the first of them: 1 MB


class LiveJobs:
    """All jobs of a switch.

    Parameters
    ----------
    plane : Plane
        Told which workers may use which slots.
    send : function of (int, dict, bool)
        Sends a message on a connection, and closes it afterwards if it is the last.
    secrets_of_jobs : Secrets, optional
        Secrets from which the keys of datagrams are made.
    """

    def __init__(
        self, plane: Plane, send: Callable[[int, dict[str, Any], bool], None], secrets_of_jobs: Secrets | None = None
    ) -> None:
        self._plane, self._send, self._secrets = plane, send, secrets_of_jobs
        self._jobs: dict[str, LiveJob] = {}
        self._of: dict[int, tuple[LiveJob, Member]] = {}

    def handle(self, connection: int, host: str, message: Mapping[str, Any]) -> None:
        """Handle one message of a worker.

        Raises
        ------
        InputError
            If it makes no sense; then the connection is of no more use.
        """
        do = message.get("do")
        if do == "join":
            self._join(connection, host, message)
        elif do in ("tensor", "barrier", "leave", "fail"):
            if connection not in self._of:
                raise InputError(f"{do} before join")
            getattr(self, f"_{do}")(*self._of[connection], message)
        elif do != "alive":
            raise InputError(f"do is join, tensor, barrier, leave, fail, alive or status, got {str(do)[:40]!r}")

    def lost(self, connection: int, how: str) -> None:
        """Do what must be done when a worker's connection has ended."""
        if connection not in self._of:
            return
        job, member = self._of.pop(connection)
        if job.missing:
            del job.members[member.rank]
            self._after_someone_left_early(job)
        elif not member.left:
            self._end(job, f"rank {member.rank} of job {job.name!r} {how}")

    def status(self) -> dict[str, Any]:
        """Return what `commsim switch status` shows of jobs and slots."""
        ranges = [(job.first_slot, job.n_slots) for job in self._jobs.values()]
        return {"jobs": [self._describe(job) for job in self._jobs.values()],
                "free_slots": [list(free) for free in free_ranges(ranges, self._plane.pool_size)]}  # fmt: skip

    def _describe(self, job: LiveJob) -> dict[str, Any]:
        busy = self._plane.busy(job.number)
        tensors = max((member.tensors for member in job.members.values()), default=0)
        return {"name": job.name, "number": job.number, "workers": job.n_workers, "waiting_for": job.missing,
                "first_slot": job.first_slot, "slots": job.n_slots, "tensors": tensors,
                "slots_busy": len(busy), "busy": busy[:64]}  # fmt: skip

    def _join(self, connection: int, host: str, message: Mapping[str, Any]) -> None:
        if connection in self._of:
            raise InputError("this connection has joined a job already")
        name = text(message, "job")
        n_workers = whole_field(message, "n_workers", 1, MAX_WORKERS)
        rank = whole_field(message, "rank", 0, n_workers - 1)
        peer = host, whole_field(message, "udp_port", 1, 65535)
        wanted = None if message.get("slots") is None else whole_field(message, "slots", 1, 1 << 14)
        job = self._jobs.get(name) or self._new_job(name, n_workers, wanted)
        if job.n_workers != n_workers or rank in job.members or wanted not in (None, job.n_slots):
            raise InputError(clash(job, n_workers, rank, wanted))
        self._jobs[name] = job
        member = job.members[rank] = Member(connection, rank, peer)
        self._of[connection] = job, member
        if job.missing:
            self._tell(job, {"waiting_for": job.missing})
        else:
            self._start(job)

    def _new_job(self, name: str, n_workers: int, wanted: int | None) -> LiveJob:
        numbers = {*self._plane.job_numbers, *(job.number for job in self._jobs.values())}
        if len(numbers) == MAX_JOBS:
            raise InputError(f"the switch has {MAX_JOBS} jobs, and takes no more")
        number = secrets.choice([number for number in range(MAX_JOBS) if number not in numbers])
        ranges = [(job.first_slot, job.n_slots) for job in self._jobs.values()]
        try:
            return LiveJob(name, number, n_workers, *first_fit(ranges, self._plane.pool_size, wanted))
        except InputError as error:
            raise InputError(f"job {name!r}: {error}") from None

    def _start(self, job: LiveJob) -> None:
        members = [job.members[rank] for rank in range(job.n_workers)]
        # Job and first packet are drawn, so that who cannot read the traffic cannot write a frame that fits, and late
        # packets of the job that had the slots before fit nowhere.
        begin = 2 * job.n_slots * secrets.randbelow(2**31 // job.n_slots)
        salt = new_nonce()
        key = job_key(self._secrets.of(job.name), salt) if self._secrets else b""
        try:
            self._plane.open(job.number, [member.peer for member in members], job.first_slot, job.n_slots, begin, key)
        except InputError as error:
            self._end(job, f"job {job.name!r}: {error}")
            return
        self._tell(job, {"joined": job.name, "job_number": job.number, "first_slot": job.first_slot,
                         "slots": job.n_slots, "begin": begin, "salt": salt})  # fmt: skip

    def _tensor(self, job: LiveJob, member: Member, message: Mapping[str, Any]) -> None:
        """Check that all workers reduce the same tensors in the same order, or packets would not belong together."""
        self._require_started(job)
        elements, kind = whole_field(message, "elements", 1, 2**62), text(message, "type")
        if kind not in DTYPES:
            raise InputError(f"type is {' or '.join(DTYPES)}, got {kind!r}")
        gone = [other.rank for other in job.members.values() if other.left and other.tensors <= member.tensors]
        begun = f"rank {member.rank} of job {job.name!r} begins tensor {member.tensors}, but rank "
        if gone:
            self._end(job, f"{begun}{gone[0]} has left")
            return
        # Packets do not wait for this server: a rank may have its sum before another's announcement is read here.
        number = member.tensors - job.n_agreed
        if number == len(job.announced):
            if number == MAX_AHEAD:
                late = min(job.members.values(), key=lambda other: other.tensors)
                self._end(job, f"{begun}{late.rank} is still at tensor {late.tensors}")
                return
            job.announced.append((elements, kind, member.rank))
        elif job.announced[number][:2] != (elements, kind):
            first = job.announced[number]
            before, here = f"{first[1]}[{first[0]}] on rank {first[2]}", f"{kind}[{elements}] on rank {member.rank}"
            self._end(job, f"tensor {member.tensors} of job {job.name!r} is {before}, but {here}")
            return
        member.tensors += 1
        if job.n_agreed < min(other.tensors for other in job.members.values()):
            job.announced.popleft()
            job.n_agreed += 1

    def _barrier(self, job: LiveJob, member: Member, _: Mapping[str, Any]) -> None:
        self._require_started(job)
        member.barriers += 1
        left = [other.rank for other in job.members.values() if other.left and other.barriers < member.barriers]
        if left:
            self._end(job, f"rank {member.rank} of job {job.name!r} waits at a barrier, but rank {left[0]} has left")
        elif all(other.barriers >= member.barriers for other in job.members.values()):
            self._tell(job, {"barrier": member.barriers})

    def _leave(self, job: LiveJob, member: Member, _: Mapping[str, Any]) -> None:
        member.left = True
        if job.missing:
            self.lost(member.connection, "left")
            return
        ahead = [o.rank for o in job.members.values() if (o.tensors, o.barriers) > (member.tensors, member.barriers)]
        if ahead:
            self._end(job, f"rank {member.rank} of job {job.name!r} left, but rank {ahead[0]} still needs it")
        elif all(other.left for other in job.members.values()):
            self._forget(job)

    def _fail(self, job: LiveJob, member: Member, message: Mapping[str, Any]) -> None:
        why = text(message, "why", 1000)
        self._of.pop(member.connection)
        self._end(job, f"rank {member.rank} of job {job.name!r} failed: {why}")

    def _require_started(self, job: LiveJob) -> None:
        if job.missing:
            raise InputError(f"job {job.name!r} has not begun: ranks {job.missing} have not joined")

    def _after_someone_left_early(self, job: LiveJob) -> None:
        if job.members:
            self._tell(job, {"waiting_for": job.missing})
        else:
            self._forget(job)

    def _end(self, job: LiveJob, why: str) -> None:
        """Tell all workers of a job that it has failed; its name and its slots are free at once."""
        for member in job.members.values():
            if member.connection in self._of:
                self._send(member.connection, {"failed": why}, True)
        self._forget(job)

    def _forget(self, job: LiveJob) -> None:
        self._plane.close(job.number)
        self._jobs.pop(job.name, None)
        for member in job.members.values():
            self._of.pop(member.connection, None)

    def _tell(self, job: LiveJob, message: dict[str, Any]) -> None:
        for member in job.members.values():
            self._send(member.connection, message, False)
