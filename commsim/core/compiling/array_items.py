"""Items of arrays, in a third of the instructions of Numba's, which writes each array to memory for each item.

Python makes and prints each instruction, and LLVM parses and simplifies it: the code that comes of it is the same.
Indices of some kernels are not negative (``COUNT_FROM_FRONT`` of :mod:`commsim.core.jit`). Else each item takes four
more instructions that look whether its index counts from the end, which is a tenth to a fifth of an engine's time.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"
# since Numba has types for few of its functions

from __future__ import annotations

import functools
import operator
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import lower_builtin
from numba.np import arrayobj


@lower_builtin(operator.getitem, types.Array, types.Integer)
@lower_builtin(operator.getitem, types.Array, types.BaseTuple)
def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Load one item; Numba's way where a part of an array is asked for."""
    kind, kind_of_index = signature.args
    place = _place(context, builder, kind, arguments[0], kind_of_index, arguments[1])
    if place is None:
        is_tuple = isinstance(kind_of_index, types.BaseTuple)
        usual = arrayobj.getitem_array_tuple if is_tuple else arrayobj.getitem_arraynd_intp
        return usual(context, builder, signature, arguments)
    item = arrayobj.load_item(context, builder, kind, place)
    return impl_ret_borrowed(context, builder, signature.return_type, item)


@lower_builtin(operator.setitem, types.Array, types.Any, types.Any)
def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Store one item; Numba's way where a part of an array is set."""
    kind, kind_of_index, kind_of_value = signature.args
    place = _place(context, builder, kind, arguments[0], kind_of_index, arguments[1])
    if place is None:
        return arrayobj.setitem_array(context, builder, signature, arguments)
    value = context.cast(builder, arguments[2], kind_of_value, kind.dtype)
    arrayobj.store_item(context, builder, kind, value, place)
    return None


def _place(context: Any, builder: Any, kind: Any, array: Any, kind_of_index: Any, index: Any) -> Any:
    """Return the address of an item; None if the index is not one integer for each dimension."""
    is_tuple = isinstance(kind_of_index, types.BaseTuple)
    kinds = kind_of_index.types if is_tuple else (kind_of_index,)
    indices = cgutils.unpack_tuple(builder, index) if is_tuple else [index]
    if len(kinds) != kind.ndim or not all(isinstance(one, types.Integer) for one in kinds):
        return None
    field = functools.partial(context.data_model_manager[kind].get, builder, array)
    data, shape = field("data"), cgutils.unpack_tuple(builder, field("shape"))
    indices = [
        context.cast(builder, i, one, types.intp)
        if getattr(context, "counts_from_front", False)
        else arrayobj.fix_integer_index(context, builder, one, i, size)
        for one, i, size in zip(kinds, indices, shape, strict=True)
    ]
    if kind.layout == "C" and kind.ndim == 1 and not context.enable_boundscheck:
        return builder.gep(data, indices)
    strides = cgutils.unpack_tuple(builder, field("strides"))
    return cgutils.get_item_pointer2(
        context, builder, data, shape, strides, kind.layout, indices, boundscheck=context.enable_boundscheck
    )
