"""LLVM IR to machine code, through an object cache on disk.

Object code is compiled once per machine, cached under a key of all its inputs, and loaded in about a millisecond afterwards.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, cast

from semiring.arrays.threads import LONG, NEVER, stoppable
from semiring.common import forks
from semiring.kernels import cache
from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.hardware import Target, architecture

__all__ = ["Function", "Library", "assembly", "compile_library", "link"]

_lock = forks.lock()


class Function(Protocol):
    """Machine code that is called with its arguments, without the GIL."""

    def __call__(self, words: array[int], nanoseconds: float = 0) -> None:
        """Run the code for about `nanoseconds`; long calls react to signals, see `semiring.arrays.threads.stoppable`."""


class Library:
    """Loaded machine code: functions by name."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine  # owns the code

    def function(self, name: str) -> Function:
        """Return the function ``name(args, stop)``."""
        address = self._engine.get_function_address(name)
        assert address, name
        code = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

        def call(words: array[int], nanoseconds: float = 0) -> None:
            if nanoseconds < LONG:
                code(words.buffer_info()[0], NEVER)
            else:
                stoppable(code, words.buffer_info()[0])

        function: Any = call
        function.owner = self._engine  # the code lives as long as the function
        return cast("Function", function)


@functools.cache
def _generator_version() -> str:
    """Digest the generator's source, so that an upgraded library never loads older object code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _machine(target: Target) -> Any:
    """Create a target machine; an execution engine takes ownership of it."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # inline assembly needs it, or the process aborts
    if target.architecture == architecture():
        triple = llvm.Target.from_default_triple()
    else:  # for inspection; the code cannot run here
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        triple = llvm.Target.from_triple(f"{target.architecture}-unknown-linux-gnu")
    return triple.create_target_machine(cpu=target.cpu, features=target.features, opt=3, codemodel="jitdefault", jit=True)


def compile_library(key: Iterable[object], target: Target, ir: Callable[[], str]) -> Library:
    """Return the library of the functions in ``ir()``, called only on a cache miss; `key` holds all inputs of the IR."""
    import llvmlite
    from llvmlite import binding as llvm

    identity = "\n".join(map(repr, (*key, target, llvmlite.__version__, llvm.llvm_version_info, _generator_version())))
    with _lock:
        code = cache.compiled(identity, ".o", lambda: _compile(ir(), target))
        # The engine keeps its machine. A new machine is smaller, by most of a megabyte, than one that has compiled something.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Library(engine)


def attributes(target: Target) -> str:
    """Return the attribute groups of generated functions: #0, and #1 for functions never inlined."""
    bits = 8 * target.vector_bytes
    given = f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"' + f' "tune-cpu"="{target.tune}"' * bool(target.tune)
    return f"attributes #0 = {{ nounwind {given} }}\nattributes #1 = {{ nounwind noinline {given} }}\n"


def link(functions: Iterable[Emitter]) -> str:
    """Return the IR of a module of `functions`."""
    functions = list(functions)
    declarations = set[str]().union(*(f.declarations for f in functions))
    return "\n".join([*(f.text() for f in functions), *sorted(declarations), ""])


def _compile(ir: str, target: Target) -> bytes:
    machine, module = _optimised(ir, target)
    return bytes(machine.emit_object(module))


def _optimised(ir: str, target: Target) -> tuple[Any, Any]:
    """Return a target machine, and the module after LLVM's passes."""
    from llvmlite import binding as llvm

    machine = _machine(target)
    module = llvm.parse_assembly(ir + attributes(target))
    module.verify()
    # The vectors, tiles and unrolling are the generator's choice; the optimiser only cleans up.
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = False
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    # llvmlite's own ``_dispose`` of passes resolves to a base-class method that does nothing.
    own = llvm.newpassmanagers.NewPassManager._dispose
    if type(passes)._dispose is not own:
        own(passes)
        passes.detach()
    return machine, module


def assembly(ir: str, target: Target) -> str:
    """Return the machine code of ``ir`` as text, for inspection."""
    machine, module = _optimised(ir, target)
    return str(machine.emit_assembly(module))
