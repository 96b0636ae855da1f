"""Operations of kernels that Numba lacks: prefetch memory, and call a function by its address."""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"
# since Numba has types for few of its functions

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from commsim.core.jit import call_at, fetch

LINE = 64  # bytes of a line of the cache
MOST_LINES = 2  # of a row: what most events need is there
READ, KEEP, DATA = 0, 3, 1  # arguments of LLVM's instruction


@type_callable(fetch)
def _type_of_fetch(_context: Any) -> Any:
    def typer(table: Any, row: Any) -> Any:
        return types.none if isinstance(table, types.Array) and isinstance(row, types.Integer) else None

    return typer


@lower_builtin(fetch, types.Array, types.Integer)
def _fetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit a prefetch for each line; a prefetch of a wrong address has no effect."""
    kind, row = signature.args[0], context.cast(builder, arguments[1], signature.args[1], types.intp)
    table = context.make_array(kind)(context, builder, arguments[0])
    byte, number, size = ir.IntType(8).as_pointer(), ir.IntType(32), context.get_abi_sizeof(table.data.type.pointee)
    instruction = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    )
    begin = builder.mul(row, ir.Constant(row.type, size))
    for line in range(min(MOST_LINES, -(-size // LINE))):
        at = builder.gep(builder.bitcast(table.data, byte), [builder.add(begin, ir.Constant(row.type, LINE * line))])
        builder.call(instruction, [at, *(ir.Constant(number, one) for one in (READ, KEEP, DATA))])
    return context.get_dummy_value()


@type_callable(call_at)
def _type_of_call(_context: Any) -> Any:
    def typer(address: Any, row: Any) -> Any:
        return types.none if isinstance(address, types.Integer) and isinstance(row, types.Record) else None

    return typer


@lower_builtin(call_at, types.Integer, types.Record)
def _call_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit a call of a C function that takes the row's address and returns nothing."""
    number = context.cast(builder, arguments[0], signature.args[0], types.intp)
    byte = ir.IntType(8).as_pointer()
    function = builder.inttoptr(number, ir.FunctionType(ir.VoidType(), [byte]).as_pointer())
    builder.call(function, [builder.bitcast(arguments[1], byte)])
    return context.get_dummy_value()
