"""Named tuples of arrays as arguments of kernels: by their address, not as a value for each field of each array.

Numba passes such a tuple as seven values for each array: 385 of them to most functions of the packet engine, taken
apart at each call and put together at the begin of each function. That was three quarters of all LLVM code. Here a
function gets one address. A kernel that Python calls copies what lies there first: LLVM keeps it in registers.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator, override"
# since Numba has types for few of its functions

from __future__ import annotations

import functools
import hashlib
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.lowering import Lower
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import Purpose, typeof_impl
from numba.extending import NativeValue, register_model, unbox

from commsim.core.jit import PACKAGES

from .faster_numba import refers

WORD = 8  # bytes, to which each field is aligned
ADDRESS = ir.IntType(8).as_pointer()
_USUAL = typeof_impl.dispatch(tuple)


class TablesType(types.Type):
    """A named tuple whose fields are read only.

    Parameters
    ----------
    cls : type
        Class of the tuple.
    kinds : tuple of Type
        Types of its fields.
    """

    def __init__(self, cls: type, kinds: tuple[Any, ...]) -> None:
        self.cls, self.kinds = cls, kinds
        self.fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        super().__init__(f"{cls.__module__}.{cls.__qualname__}({', '.join(map(str, kinds))})")

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """What stands for the type in names of functions: short, since each call has it."""
        return f"{self.cls.__name__}_{hashlib.blake2b(self.name.encode(), digest_size=8).hexdigest()}", ()


@register_model(TablesType)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: TablesType) -> None:
        super().__init__(manager, kind, ADDRESS)


@functools.cache  # LLVM is asked for each size, by a module of its own
def places(context: Any, kind: TablesType) -> tuple[list[int], int]:
    """Return where each field begins, and the size of all, in bytes."""
    begins, end = [], 0
    for one in kind.kinds:
        begins.append(end)
        size = context.get_abi_sizeof(context.get_value_type(one))
        end += -(-size // WORD) * WORD
    return begins, end


def reserve(context: Any, builder: Any, kind: TablesType) -> Any:
    """Reserve memory for a tuple in the function that is being built."""
    words = ir.ArrayType(ir.IntType(8 * WORD), max(1, places(context, kind)[1] // WORD))
    return builder.bitcast(cgutils.alloca_once(builder, words), ADDRESS)


def copied(context: Any, builder: Any, kind: TablesType, address: Any) -> Any:
    """Copy a tuple, with those within it, into memory of the function that is being built."""
    own = reserve(context, builder, kind)
    for one, begin in zip(kind.kinds, places(context, kind)[0], strict=True):
        value = builder.load(_field(context, builder, address, one, begin))
        if isinstance(one, TablesType):
            value = copied(context, builder, one, value)
        builder.store(value, _field(context, builder, own, one, begin))
    return own


def _field(context: Any, builder: Any, address: Any, kind: Any, begin: int) -> Any:
    at = builder.gep(address, [ir.Constant(ir.IntType(64), begin)], inbounds=True)
    return builder.bitcast(at, context.get_value_type(kind).as_pointer())  # of a record that is its address


class LowerWithoutReferences(Lower):
    """Numba's lowering, which resets each variable after its last use, also those that hold no reference."""

    def delvar(self, name: str) -> None:
        """Give up what a variable refers to, if anything."""
        if self.context.enable_nrt and refers(self.context, self.typeof(name)):
            super().delvar(name)


class LowerWithCopies(LowerWithoutReferences):
    """The lowering of a kernel that Python calls, after its tuples are copied."""

    def extract_function_arguments(self) -> Any:
        """Return the arguments, with copies of tuples."""
        arguments = super().extract_function_arguments()
        kinds = self.fndesc.argtypes
        self.fnargs = [copied(self.context, self.builder, kind, value) if isinstance(kind, TablesType) else value
                       for kind, value in zip(kinds, arguments, strict=True)]  # fmt: skip
        return self.fnargs


@infer_getattr
class _Fields(AttributeTemplate):
    key = TablesType

    def generic_resolve(self, kind: TablesType, name: str) -> Any:
        return kind.kinds[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(TablesType)
def _read_field(context: Any, builder: Any, kind: TablesType, address: Any, name: str) -> Any:
    k = kind.fields.index(name)
    one = kind.kinds[k]
    value = builder.load(_field(context, builder, address, one, places(context, kind)[0][k]))
    return impl_ret_borrowed(context, builder, one, value)


@unbox(TablesType)
def _unbox(kind: TablesType, source: Any, c: Any) -> NativeValue:
    """Write the fields of a tuple of Python to memory of the function that is called from there."""
    address = reserve(c.context, c.builder, kind)
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    cleanups = []
    for k, (one, begin) in enumerate(zip(kind.kinds, places(c.context, kind)[0], strict=True)):
        native = c.unbox(one, c.pyapi.tuple_getitem(source, k))
        c.builder.store(native.value, _field(c.context, c.builder, address, one, begin))
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(cgutils.true_bit, failed)
        if native.cleanup is not None:
            cleanups.append(native.cleanup)

    def clean() -> None:
        for cleanup in reversed(cleanups):
            cleanup()

    return NativeValue(address, cleanup=clean if cleanups else None, is_error=c.builder.load(failed))


@typeof_impl.register(tuple)
def _typeof(value: tuple[Any, ...], context: Any) -> Any:
    """Return the type of a tuple: ours for arguments that are named tuples of our packages."""
    cls = type(value)
    ours = hasattr(cls, "_fields") and cls.__module__.partition(".")[0] in PACKAGES
    if not ours or context.purpose != Purpose.argument:
        return _USUAL(value, context)
    kinds = tuple(typeof_impl(item, context) for item in value)
    return None if None in kinds else TablesType(cls, kinds)
