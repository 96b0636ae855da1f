"""Functions of Numba's that it calls very often, in quicker versions: the same answers."""

from __future__ import annotations

from typing import Any

from numba.core import ir, transforms
from numba.core.base import BaseContext
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

_NOTHING, _VARIABLE, _INSTRUCTION, _LIST, _DICT = range(5)
# What to do with values of each kind within an instruction, as they are met.
_what: dict[type, int] = {}
_usual_size, _usual_alignment = BaseContext.get_abi_sizeof, BaseContext.get_abi_alignment
_usual_call_type, _usual_post = BaseFunction.get_call_type, PostProcessor.run
_refers: dict[tuple[Any, Any], bool] = {}
_sizes: dict[tuple[Any, Any, str], int] = {}
_signatures: dict[Any, tuple[Any, Any]] = {}


def list_vars_within(self: ir.Inst, value: Any) -> list[ir.Var]:  # noqa: ARG001 - a method
    """List the variables of an instruction in order; Numba's makes a list for each value, and asks four kinds."""
    variables: list[ir.Var] = []
    _collect(value, variables)
    return variables


def _collect(value: Any, variables: list[ir.Var]) -> None:
    kind = type(value)
    what = _what.get(kind)
    if what is None:
        what = _what[kind] = _kind(value)
    if what == _VARIABLE:
        variables.append(value)
    elif what == _INSTRUCTION:
        variables += value.list_vars()
    elif what:
        for one in value.values() if what == _DICT else value:
            _collect(one, variables)


def _kind(value: Any) -> int:
    kinds = ((ir.Var, _VARIABLE), (ir.Inst, _INSTRUCTION), (list | tuple, _LIST), (dict, _DICT))
    return next((what for kind, what in kinds if isinstance(value, kind)), _NOTHING)


def abi_size(self: Any, kind: Any) -> int:
    """Return the size of a type of LLVM in bytes; Numba's has LLVM read a module for each question."""
    return _size_of(_usual_size, self, kind)


def abi_alignment(self: Any, kind: Any) -> int:
    """Return the alignment of a type of LLVM in bytes, as :func:`abi_size` does."""
    return _size_of(_usual_alignment, self, kind)


def _size_of(usual: Any, context: Any, kind: Any) -> int:
    key = usual, context.target_data, str(kind)
    size = _sizes.get(key)
    if size is None:
        size = _sizes[key] = usual(context, kind)
    return size


def call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of a built-in function; Numba's tries all its overloads for each call anew."""
    flags = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    if flags is None or kws:
        return _usual_call_type(self, context, args, kws)
    key = self, context, tuple(args), flags
    found = _signatures.get(key)
    if found is None:
        signature = _usual_call_type(self, context, args, kws)
        if signature is not None:
            _signatures[key] = signature, self._impl_keys.get(signature.args)
        return signature
    signature, key_of_code = found
    self._impl_keys[signature.args] = key_of_code
    return signature


def post_process(self: PostProcessor, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Find where variables end, if that is asked for; Numba's finds it after each pass, for generators and objects.

    Where no references are counted nothing happens at the end of a variable, so that it is not marked.
    """
    flags = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    if flags is None or flags.enable_pyobject or self.func_ir.is_generator:
        _usual_post(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)  # type: ignore[no-untyped-call]
    self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)  # type: ignore[no-untyped-call]
    self.func_ir.generator_info = None
    if emit_dels and flags.nrt:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)  # type: ignore[no-untyped-call]


def meminfos(self: NRTContext, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    """List what a value refers to; Numba's takes each field apart, of an array nine where one refers to memory."""
    model = self._context.data_model_manager[kind]
    found = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
    for one, part in model.traverse(builder):
        if refers(self._context, one):
            found += meminfos(self, builder, one, part(value))
    return found


def refers(context: BaseContext, kind: Any) -> bool:
    """Return whether values of a type hold references."""
    key = context, kind
    if key not in _refers:
        _refers[key] = context.data_model_manager[kind].contains_nrt_meminfo()
    return _refers[key]


_OURS = (
    (ir.Inst, "_rec_list_vars", list_vars_within),
    (BaseContext, "get_abi_sizeof", abi_size),
    (BaseContext, "get_abi_alignment", abi_alignment),
    (BaseFunction, "get_call_type", call_type),
    (PostProcessor, "run", post_process),
    (NRTContext, "get_meminfos", meminfos),
)
_USUAL = [getattr(cls, name) for cls, name, _ in _OURS]


def install() -> None:
    """Replace Numba's, for the whole process: kernels of others are compiled by these, too."""
    for cls, name, ours in _OURS:
        setattr(cls, name, ours)


def remove() -> None:
    """Give Numba its own back."""
    for (cls, name, _), usual in zip(_OURS, _USUAL, strict=True):
        setattr(cls, name, usual)
