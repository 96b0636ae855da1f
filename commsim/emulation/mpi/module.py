"""Names of ``mpi4py.MPI`` in an emulated rank; a name that is not here is refused with what it is."""

from __future__ import annotations

from typing import Any

from commsim.emulation.current import current_rank
from commsim.emulation.program_clock import Readings

from . import constants
from .datatypes import DATATYPES, Datatype
from .intracomm import COMM_NULL, Cartcomm, Comm, Group, Intracomm, compute_dims
from .reductions import OPERATORS, Op
from .requests import REQUEST_NULL, Prequest, Request, Status

_READINGS = Readings()


class WorldComm(Intracomm):
    """``COMM_WORLD`` or ``COMM_SELF``: one object, whose ranks are known when a rank asks."""

    def __init__(self, key: str) -> None:
        super().__init__((), key)
        self.name, self._is_self, self._kept_as = f"MPI_{key}", key == "COMM_SELF", f"ranks of {key}"
        self._of_size: dict[Any, tuple[tuple[int, ...], dict[int, int]]] = {}

    def _known(self) -> tuple[tuple[int, ...], dict[int, int]]:
        rank = current_rank()
        known: tuple[tuple[int, ...], dict[int, int]] | None = rank.cache.get(self._kept_as)
        if known is None:
            which = (self._is_self and rank.number, rank.n_ranks)
            if which not in self._of_size:  # threads share it
                members = (rank.number,) if self._is_self else tuple(range(rank.n_ranks))
                self._of_size[which] = members, {world: place for place, world in enumerate(members)}
            known = rank.cache[self._kept_as] = self._of_size[which]
        return known

    def Get_rank(self) -> int:  # noqa: N802
        """Return the number of this rank."""
        return 0 if self._is_self else current_rank().number

    rank = property(Get_rank)

    @property
    def members(self) -> tuple[int, ...]:
        """World ranks."""
        return self._known()[0]

    @members.setter
    def members(self, members: tuple[int, ...]) -> None:
        """Leave them as they are."""

    @property
    def _place(self) -> dict[int, int]:
        return self._known()[1]

    @_place.setter
    def _place(self, given: dict[int, int]) -> None:
        pass


def _now() -> float:
    return _READINGS.add(current_rank().now())


def _name_of_host() -> str:
    return f"rank{current_rank().number}"


def _nothing(*_: Any) -> None:
    return None


def _level_of_threads(*_: Any) -> int:
    return constants.THREAD_SERIALIZED


# What a program finds as ``MPI.name``.
NAMES: dict[str, Any] = {
    **{name: value for name, value in vars(constants).items() if name.isupper()},
    "TAG_UB": constants.KEY_OF_TAG_UB,
    **constants.OF_PROGRAMS, **DATATYPES, **OPERATORS,
    "COMM_WORLD": WorldComm("COMM_WORLD"), "COMM_SELF": WorldComm("COMM_SELF"), "COMM_NULL": COMM_NULL,
    "REQUEST_NULL": REQUEST_NULL, "GROUP_EMPTY": Group(), "Comm": Comm, "Intracomm": Intracomm, "Cartcomm": Cartcomm,
    "Group": Group, "Datatype": Datatype, "Op": Op, "Request": Request, "Prequest": Prequest, "Status": Status,
    "Exception": constants.MPIError, "Compute_dims": compute_dims, "Wtime": _now, "Wtick": lambda: 1e-9,
    "Get_processor_name": _name_of_host, "Init": _nothing, "Finalize": _nothing, "Init_thread": _level_of_threads,
    "Query_thread": _level_of_threads, "Is_thread_main": lambda: True, "Is_initialized": lambda: True,
    "Is_finalized": lambda: False, "Get_version": lambda: (4, 0), "Get_library_version": lambda: "commsim emulate",
    "Attach_buffer": _nothing, "Detach_buffer": _nothing,
    "get_vendor": lambda: ("commsim", (0, 2, 0)),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(f"commsim emulate has no MPI.{name}")
