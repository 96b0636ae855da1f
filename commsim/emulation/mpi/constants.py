"""Constants of MPI, with MPICH's values; datatypes are in :mod:`.datatypes`, operators in :mod:`.reductions`."""

from __future__ import annotations

PROC_NULL, ANY_SOURCE, ANY_TAG, UNDEFINED = -1, -2, -1, -32766
IDENT, CONGRUENT, SIMILAR, UNEQUAL = 0, 1, 2, 3
CART, SUCCESS = 2, 0
# Largest tag, and the key by which a program asks a communicator for it.
TAG_UB, KEY_OF_TAG_UB = 2**30, 1681915906
THREAD_SERIALIZED = 2
# Those that only programs name.
OF_PROGRAMS = {
    "ROOT": -3, "GRAPH": 1, "DIST_GRAPH": 3, "THREAD_SINGLE": 0, "THREAD_FUNNELED": 1, "THREAD_MULTIPLE": 3,
    "ERR_TRUNCATE": 14, "ERR_OTHER": 15, "MAX_PROCESSOR_NAME": 128, "MAX_ERROR_STRING": 512,
    "VERSION": 4,
    "SUBVERSION": 0, "COMM_TYPE_SHARED": 1, "BOTTOM": 0, "ERRORS_RETURN": 0, "ERRORS_ARE_FATAL": 1, "INFO_NULL": None,
}  # fmt: skip


class MPIError(RuntimeError):
    """What mpi4py raises as ``MPI.Exception``.

    Parameters
    ----------
    code : int
        Error code.
    text : str
        What is wrong.
    """

    def __init__(self, code: int = SUCCESS, text: str = "") -> None:
        super().__init__(text or f"MPI error {code}")
        self.code = code

    def Get_error_code(self) -> int:  # noqa: N802
        """Return the code."""
        return self.code

    def Get_error_class(self) -> int:  # noqa: N802
        """Return the class, which is the code."""
        return self.code

    def Get_error_string(self) -> str:  # noqa: N802
        """Return the text."""
        return str(self)


class InPlaceType(int):
    """Type of ``MPI.IN_PLACE``."""


IN_PLACE = InPlaceType(-1)
