"""How Numba compiles kernels: those that Python calls to machine code, those within them only to be linked.

Numba makes of each function machine code, a door for Python and one for C, and optimizes it before it is linked into
its callers, which are optimized again. Of a kernel that only other kernels call none of this is used: its callers take
its LLVM code, and most inline it. Leaving it out more than halves the time until a command is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import compiler
from numba.core.compiler import CompilerBase, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import AnnotateTypes, NativeLowering
from numba.core.typing import templates

from .kernel_libraries import ENVIRONMENT, Called, Linked, from_disk
from .tables_type import LowerWithCopies, LowerWithoutReferences

_USUAL_JIT = templates._OverloadFunctionTemplate._get_jit_decorator


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerLinked(NativeLowering):
    """Lower to LLVM code only."""

    _name = "lower_linked"
    lowering_class = LowerWithoutReferences

    def run_pass(self, state: Any) -> bool:
        """Lower without wrappers, and enter the kernel for its callers."""
        state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().run_pass(state)
        state.library.finalize()
        lowered = state["cr"]
        key = _entry_point(lowered.fndesc, lowered.env, state.library)
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerCalled(NativeLowering):
    """Lower to machine code that Python calls."""

    _name = "lower_called"
    lowering_class = LowerWithCopies

    def run_pass(self, state: Any) -> bool:
        """Lower without a wrapper for C, and give the kernels within their constants."""
        state.library = Called(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.counts_references = bool(state.flags.nrt)
        state.library.has_long_loops = state.pipeline.has_long_loops
        state.library.enable_object_caching()
        state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT) and (environment := lookup_environment(variable.name)) is not None:
                state.library.codegen.set_env(variable.name, environment)
        return True


class HashedFlags(compiler.Flags):
    """Numba's flags, hashed and compared once: Numba does both for each overload that it tries at each call.

    They are those of a compilation that has begun, which nothing changes. Numba writes the name of the class into
    names of functions.
    """

    kept: tuple[tuple[str, Any], ...] = ()

    def copy(self) -> HashedFlags:
        """Return flags that are kept as they are."""
        copied = HashedFlags(self)
        copied.kept = tuple(copied.values().items())
        return copied

    def __hash__(self) -> int:
        return hash(type(self))

    def __eq__(self, other: object) -> bool:
        kept, others = self.kept, getattr(other, "kept", ())
        return kept == others if kept and others else bool(super().__eq__(other))


class Compiler(CompilerBase):
    """What both compilers share."""

    def _compile_core(self) -> Any:
        self.state.flags = HashedFlags(self.state.flags)
        with _overloads_linked():
            return super()._compile_core()


class LinkedCompiler(Compiler):
    """Of kernels that other kernels call, and of Numba's own functions within them."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes with another lowering."""
        return [_passes(self.state, LowerLinked)]


class FromFrontCompiler(LinkedCompiler):
    """Of kernels that other kernels call and whose indices are not negative: the context is this compilation's own."""

    def define_pipelines(self) -> list[Any]:
        """Return the same passes, with a context that tells :mod:`commsim.core.compiling.array_items`."""
        self.state.targetctx.counts_from_front = True
        return super().define_pipelines()


class CalledCompiler(Compiler):
    """Of kernels that Python calls; loops are left as they are, which saves a third of LLVM's time."""

    has_long_loops = False

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes with another lowering."""
        return [_passes(self.state, LowerCalled)]


class LongLoopsCompiler(CalledCompiler):
    """Of kernels that Python calls and whose loops are unrolled and vectorized."""

    has_long_loops = True


@contextlib.contextmanager
def _overloads_linked() -> Iterator[None]:
    """Have Numba compile its own functions, such as those of NumPy, only to be linked while it compiles a kernel."""
    if templates._OverloadFunctionTemplate._get_jit_decorator is _linked_jit:
        yield
        return
    usual = [(cls, name, getattr(cls, name)) for cls, name, _ in _LINKED]
    for cls, name, ours in _LINKED:
        setattr(cls, name, ours)
    try:
        yield
    finally:
        for cls, name, theirs in usual:
            setattr(cls, name, theirs)


def _linked_jit(template: Any) -> Any:
    jit = _USUAL_JIT(template)
    return lambda **options: jit(**{"pipeline_class": LinkedCompiler, **options})


# What is replaced while a kernel is compiled: the compilers of functions that Numba overloads, and of all others within
# a kernel, such as sorting.
_LINKED: tuple[tuple[type, str, Any], ...] = (
    (templates._OverloadFunctionTemplate, "_get_jit_decorator", _linked_jit),
    (compiler.Compiler, "define_pipelines", LinkedCompiler.define_pipelines),
)


def widened(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace the types of signed integers, and of constants, by int64, to which Numba converts them at the call.

    Numba would compile a kernel once for each mixture of them: ten times where there are two kinds of arrays.
    """
    plain = [types.unliteral(kind) for kind in arguments]
    return tuple(types.int64 if kind in types.signed_domain else kind for kind in plain)


def rebuild_linked(context: Any, *reduced: Any) -> Any:
    """Make of what is on the disk a compiled kernel that can be linked; its counterpart of `CompileResult._rebuild`."""
    (_, _, codes), fndesc, environment, signature, objectmode, lifted, typeann, reload_init, environments = reduced
    library, *others = (from_disk(context.codegen(), *one) for one in codes)
    library._linking_libraries[:] = others
    return compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=_entry_point(fndesc, environment, library),
        fndesc=fndesc,
        type_annotation=typeann,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _entry_point(fndesc: Any, environment: Any, library: Any) -> Any:
    """Return the object by which Numba knows a compiled function; it cannot be called from Python."""
    return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "linked only", 0, environment, (library,))


def _passes(state: Any, lowering: type) -> Any:
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes[:] = [
        (lowering if step is NativeLowering else step, text)
        for step, text in passes.passes
        if step is not AnnotateTypes  # the source with its types, for whoever reads it, in each file of the cache
    ]
    return passes
