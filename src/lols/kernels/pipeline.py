"""One pass over a whole kernel: Numba types and lowers each function; then all of them are optimised together, once.

Numba itself optimises every function and generates machine code for it, even if it only ever becomes part of another;
that takes most of the compile time. This module does not use Numba's public interface only: if it fails, `backend` uses
Numba's own compiler, which is slower (and a test fails).
"""

from __future__ import annotations

from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import AnnotateTypes
from numba.core.untyped_passes import ReconstructSSA

from lols.kernels.as_in_python import AsInPython
from lols.kernels.dual import CHECKED, NOT_INLINED


class _CodegenWithoutEnvironment:
    """Numba's code generator, except that it sets no environments: a helper has no machine code to set one in."""

    def __init__(self, codegen: Any):
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only becomes part of a kernel: neither optimised nor made executable by itself."""

    _shared_module: Any
    not_inlined = False

    @property
    def codegen(self) -> Any:
        return _CodegenWithoutEnvironment(self._codegen)

    def add_llvm_module(self, module: Any) -> None:
        for function in module.functions:
            if self.not_inlined and not function.is_declaration:
                function.add_function_attribute("noinline")
        self._final_module.link_in(module)

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def _get_module_for_linking(self) -> Any:
        """The helper with everything it calls, for Numba's own libraries, which link only their direct dependencies."""
        module: Any = self._shared_module
        if module is None:
            self._shared_module = module = self.whole()
            for function in module.functions:
                if not function.is_declaration:
                    function.linkage = "linkonce_odr"
        return module

    def whole(self) -> Any:
        """A module of this function and everything it calls."""
        module, seen, queue = self._final_module.clone(), {self}, list(self._linking_libraries)
        while queue:
            library = queue.pop(0)
            if library in seen:
                continue
            seen.add(library)
            if isinstance(library, HelperLibrary):
                part = library._final_module
                queue += library._linking_libraries
            else:
                part = library._get_module_for_linking()
            module.link_in(part, preserve=True)
        return module

    def emit(self, symbol: str, name: str) -> tuple[bytes, str]:
        """Object code of the whole kernel, with function `symbol` as its only entry, renamed; and what it needs.

        That is "n" if it calls functions that come with Numba, as `math.gamma` does; "p" if it is valid in this process
        only, because it contains addresses of large arrays; otherwise a space.
        """
        module = self.whole()
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "external" if function.name == symbol else "internal"
        module.get_function(symbol).name = name
        manager, builder = self._codegen._module_pass_manager()
        manager.run(module, builder)
        called = [function.name for function in module.functions if function.is_declaration]
        held = [variable.name for variable in module.global_variables]
        needs = "n" if any(name.startswith(RUNTIME) for name in called) else " "
        if any(name.startswith("numba.dynamic.globals") for name in held):
            needs = "p"
        return bytes(self._codegen._tm.emit_object(module)), needs


@register_pass(mutates_CFG=False, analysis_only=True)
class _TakeLibrary(AnalysisPass):  # type: ignore[misc]
    """Give the function a `HelperLibrary`."""

    _name = "lols_take_library"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if state.library is None:
            state.library = HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.not_inlined = state.func_id.func in NOT_INLINED
        return False


RUNTIME = ("numba_", "NRT_", "__svml_")  # names of functions that come with Numba

# Passes for what the library's own functions do not use: closures, `with`, array expressions, literal arguments.
UNUSED = {
    "DeadBranchPrune",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",
    "WithLifting",
}


class QuickFlags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, which are keys of its caches: compared by what was set, not option by option."""

    def __hash__(self) -> int:
        return 0  # as good as the original, which hashes the names of the options

    def __eq__(self, other: object) -> bool:
        if isinstance(other, QuickFlags) and self._values == other._values:
            return True
        return bool(compiler.Flags.__eq__(self, other))


class HelperCompiler(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's own passes, with a `HelperLibrary`."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.state.flags = QuickFlags(self.state.flags)

    def compile_extra(self, function: Any) -> Any:
        if function in CHECKED:  # not by a flag: then all that the function calls would be compiled a second time
            self.state.targetctx = self.state.targetctx.subtarget(enable_boundscheck=True)
        return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        manager = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        if self.state.func_id.modname.startswith("lols."):
            manager.passes = [entry for entry in manager.passes if entry[0].__name__ not in UNUSED]
        manager.add_pass_after(_TakeLibrary, AnnotateTypes)
        if self.state.func_id.func in CHECKED:
            manager.add_pass_after(AsInPython, ReconstructSSA)
        manager.finalize()
        return [manager]


def object_code(entry: Any, argument: Any, name: str, *, boundscheck: bool) -> tuple[bytes, Any, str]:
    """Object code of a function of one argument, under this name; the type of its result; what it needs."""
    typing_context, target = cpu_target.typing_context, cpu_target.target_context
    typing_context.refresh()
    target.refresh()
    flags = compiler.Flags()
    flags.nrt = False
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.boundscheck = boundscheck
    library = HelperLibrary(target.codegen(), name)
    made = compiler.compile_extra(typing_context, target, entry, (argument,), None, flags, {}, library, HelperCompiler)
    code, needs = library.emit(made.fndesc.llvm_func_name, name)
    return code, made.signature.return_type, needs
