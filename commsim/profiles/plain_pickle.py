"""Read a pickle that holds nothing but lists, tables, text and numbers, without ever running what is in it.

Python's own reader makes any object that a pickle names, and may write far more memory than the file has bytes. This
one follows the operations that build plain values, and refuses every other one, so that nothing has to be trusted.

References
----------
Python documentation, ``pickletools``: what each operation means.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from commsim.core.errors import InputError

MAX_PICKLE_BYTES = 64 * 2**20
# Each makes at most one value, so that this bounds time and memory; 20,000 entries of PyTorch's are 2 million.
MAX_OPERATIONS = 2_500_000
_PLAIN = {
    "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT",
    "BINFLOAT", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_CONSTANT = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NAMING = {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD", "EXT1", "EXT2", "EXT4",
           "PERSID", "BINPERSID"}  # fmt: skip


class _Mark:
    """Where a list of arguments begins on the stack."""


_MARK = _Mark()


def load_plain_pickle(data: bytes, source: str) -> Any:
    """Decode a pickle of plain values.

    Parameters
    ----------
    data : bytes
        The whole pickle.
    source : str
        Source of the data, named in messages.

    Raises
    ------
    InputError
        If it is damaged or too large, or holds anything but dict, list, tuple, text, bytes, numbers, truth and None.
    """
    if len(data) > MAX_PICKLE_BYTES:
        raise InputError(f"{source}: larger than {MAX_PICKLE_BYTES >> 20} MiB")
    try:
        return _run(data, source)
    except InputError:
        raise
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"{source}: a damaged pickle ({str(error).splitlines()[0] if str(error) else error})"
        ) from None


def _run(data: bytes, source: str) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for n, (opcode, argument, position) in enumerate(pickletools.genops(data)):
        name = opcode.name
        if n == MAX_OPERATIONS:
            raise InputError(f"{source}: more than {MAX_OPERATIONS} values")
        if name in _PLAIN:
            stack.append(_CONSTANT.get(name, argument))
        elif name in ("PROTO", "FRAME"):
            continue
        elif name == "STOP":
            return stack.pop()
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name in _BUILDERS:
            _BUILDERS[name](stack)
        else:
            what = "names an object to be made" if name in _NAMING else "is not known here"
            raise InputError(
                f"{source}: refused: its operation {name} at byte {position} {what}; only lists, tables, text and "
                "numbers are read"
            )
    raise InputError(f"{source}: a damaged pickle (it does not end)")


def _since_mark(stack: list[Any]) -> list[Any]:
    at = len(stack) - 1
    while stack[at] is not _MARK:
        at -= 1
        if at < 0:
            raise ValueError("a mark is missing")
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _set(stack: list[Any], pairs: list[Any]) -> None:
    table = stack[-1]
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(table, dict) or not isinstance(key, (str, int, bytes)):
            raise ValueError("a key must be text or a number")
        table[key] = value


def _extend(stack: list[Any], items: list[Any]) -> None:
    if type(stack[-1]) is not list:
        raise ValueError("something is appended to what is no list")
    stack[-1].extend(items)


def _dict(stack: list[Any]) -> None:
    pairs = _since_mark(stack)
    stack.append({})
    _set(stack, pairs)


def _set_items(stack: list[Any]) -> None:
    _set(stack, _since_mark(stack))


def _set_item(stack: list[Any]) -> None:
    value, key = stack.pop(), stack.pop()
    _set(stack, [key, value])


def _append(stack: list[Any]) -> None:
    value = stack.pop()
    _extend(stack, [value])


def _tuple_of(count: int) -> Callable[[list[Any]], None]:
    def build(stack: list[Any]) -> None:
        items = [stack.pop() for _ in range(count)][::-1]
        stack.append(tuple(items))

    return build


_BUILDERS: dict[str, Callable[[list[Any]], None]] = {
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "DICT": _dict,
    "LIST": lambda stack: stack.append(_since_mark(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_since_mark(stack))),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPEND": _append,
    "APPENDS": lambda stack: _extend(stack, _since_mark(stack)),
    "POP": lambda stack: stack.pop() and None,
} | {f"{'EMPTY_TUPLE' if count == 0 else f'TUPLE{count}'}": _tuple_of(count) for count in range(4)}
