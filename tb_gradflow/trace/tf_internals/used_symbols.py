"""The private modules of TensorFlow that are used as they are; `private_symbols` has what is replaced in them.

A library may rename one in any release. If a module, or a name in it, is gone, importing the recorder fails with an
error that names it and the versions that have it; if only one of the `PARTS` needs it, importing that part fails, and
the others work.

A test finds every use in this package and compares it with these lists; and every use of a private attribute, which
`tests/trace/safety/private_attributes.py` lists.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.errors import SetupError

SEEN = ("2.16", "2.21")
"""The oldest and the newest TensorFlow that all of them were seen in."""


@dataclass(frozen=True, slots=True)
class Module:
    """A private module.

    Attributes:
        name: Its full name.
        uses: What is taken from it, and from what is taken from it.
    """

    name: str
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the recorder that the others do without.

    Attributes:
        lost: What does not work without it.
        modules: What it uses in addition to `MODULES`.
        needs: The parts that it imports.
    """

    lost: str
    modules: tuple[Module, ...]
    needs: tuple[str, ...] = ()


_EAGER = "tensorflow.python.eager"
_FRAMEWORK = "tensorflow.python.framework"
_OPS = "tensorflow.python.ops"

MODULES: tuple[Module, ...] = (
    Module("tensorflow.core.framework.attr_value_pb2", ("AttrValue",)),
    Module("tensorflow.core.framework.function_pb2", ("FunctionDef",)),
    Module("tensorflow.core.framework.graph_pb2", ("GraphDef",)),
    Module("tensorflow.core.framework.node_def_pb2", ("NodeDef",)),
    Module("tensorflow.core.framework.types_pb2", ("DT_BFLOAT16", "DT_DOUBLE", "DT_FLOAT", "DT_HALF", "DT_RESOURCE")),
    Module("tensorflow.core.function.capture.capture_container", ("FunctionCaptures",)),
    Module("tensorflow.core.function.polymorphism.function_cache", ("FunctionCache",)),
    Module("tensorflow.core.protobuf.config_pb2", ("ConfigProto",)),
    Module("tensorflow.core.protobuf.rewriter_config_pb2", ("RewriterConfig",)),
    Module("tensorflow.python.autograph.operators.py_builtins"),
    Module("tensorflow.python.distribute.values", ("DistributedValues", "DistributedVariable")),
    Module(f"{_EAGER}.backprop", ("_gradient_function",)),
    Module(f"{_EAGER}.backprop_util", ("IsTrainable",)),
    Module(f"{_EAGER}.cancellation", ("CancellationManager", "CancellationManagerContext", "context")),
    Module(f"{_EAGER}.context", ("context", "global_seed")),
    Module(f"{_EAGER}.core", ("_FallbackException",)),
    Module(f"{_EAGER}.execute", ("execute", "execute_with_cancellation", "record_gradient")),
    Module(f"{_EAGER}.forwardprop"),
    Module(f"{_EAGER}.imperative_grad"),
    Module(
        f"{_EAGER}.polymorphic_function.atomic_function",
        ("AtomicFunction", "InterpolateRuntimeError", "from_func_graph", "make_call_op_in_graph"),
    ),
    Module(
        f"{_EAGER}.polymorphic_function.concrete_function", ("ConcreteFunction", "_DelayedRewriteGradientFunctions")
    ),
    Module(f"{_EAGER}.polymorphic_function.polymorphic_function", ("Function",)),
    Module(f"{_EAGER}.polymorphic_function.transform", ("CONCRETE_FUNCTION_CALLBACKS",)),
    Module(f"{_EAGER}.record", ("could_possibly_record", "stop_recording")),
    Module(f"{_EAGER}.tape", ("Tape",)),
    Module(
        f"{_FRAMEWORK}.auto_control_deps_utils",
        (
            "READ_ONLY_RESOURCE_INPUTS_ATTR",
            "RESOURCE_READ_OPS",
            "get_read_only_resource_input_indices_graph",
        ),
    ),
    Module(f"{_FRAMEWORK}.constant_op"),
    Module(f"{_FRAMEWORK}.dtypes", ("resource",)),
    Module(f"{_FRAMEWORK}.func_graph", ("FuncGraph", "func_graph_from_py_func")),
    Module(f"{_FRAMEWORK}.function_def_to_graph", ("function_def_to_graph",)),
    Module(f"{_FRAMEWORK}.op_callbacks", ("add_op_callback", "remove_op_callback")),
    Module(f"{_FRAMEWORK}.op_def_library", ("value_to_attr_value",)),
    Module(f"{_FRAMEWORK}.op_def_registry", ("get",)),
    Module(f"{_FRAMEWORK}.ops", ("get_gradient_function", "gradient_registry", "uid")),
    Module(f"{_FRAMEWORK}.versions", ("GRAPH_DEF_VERSION",)),
    Module(f"{_OPS}.array_ops", ("zeros_like",)),
    Module(f"{_OPS}.cond"),
    Module(f"{_OPS}.cond_v2", ("get_func_graphs",)),
    Module(f"{_OPS}.gradients_util", ("POSSIBLE_GRADIENT_TYPES_FIRST_ORDER", "POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER")),
    Module(f"{_OPS}.handle_data_util", ("copy_handle_data", "get_resource_handle_data")),
    Module(f"{_OPS}.resource_variable_ops", ("BaseResourceVariable",)),
    Module(f"{_OPS}.stateful_random_ops", ("global_generator",)),
    Module(f"{_OPS}.while_v2", ("_WhileBodyGradFuncGraph", "_get_graph")),
    Module(
        "tensorflow.python.pywrap_tfe",
        (
            "TFE_ContextClearCaches",
            "TFE_Py_RegisterGradientFunction",
            "TFE_Py_TapeSetAdd",
            "TFE_Py_TapeSetIsEmpty",
            "TFE_Py_TapeSetIsStopped",
            "TFE_Py_TapeSetRemove",
            "TFE_Py_TapeSetRestartOnThread",
            "TFE_Py_TapeSetShouldRecordBackprop",
            "TFE_Py_TapeSetStopOnThread",
            "TFE_Py_TapeWatch",
        ),
    ),
    Module("tensorflow.python.util.function_utils", ("get_disabled_rewriter_config",)),
    Module("tensorflow.python.util.tf_stack", ("extract_stack",)),
)

PARTS: dict[str, Part] = {
    "explain": Part(
        "`tb_gradflow.explain` and `check_gradients` of tensors",
        (Module("tensorflow.python.autograph.core.ag_ctx", ("ControlStatusCtx", "Status")),),
    ),
    "graph_v1": Part(
        "`tb_gradflow.explain` of a tensor in a `tf.compat.v1` graph",
        (Module(f"{_FRAMEWORK}.meta_graph", ("create_meta_graph_def", "import_scoped_meta_graph")),),
    ),
    "program": Part(
        "`tb-gradflow run`, and recording in notebooks and tests",
        (Module("tensorflow.python.util.traceback_utils", ("filter_traceback",)),),
    ),
    "sessions": Part(
        "recording of `tf.compat.v1` sessions",
        (
            Module("tensorflow.core.protobuf.config_pb2", ("RunOptions",)),
            Module("tensorflow.python.client.pywrap_tf_session", ("TF_GetBuffer",)),
            Module(
                "tensorflow.python.client.session",
                (
                    "BaseSession",
                    "BaseSession._do_run",
                    "BaseSession._make_callable_from_options",
                    "BaseSession.make_callable",
                ),
            ),
            Module(f"{_FRAMEWORK}.composite_tensor", ("CompositeTensor",)),
            Module(f"{_OPS}.gradients_util", ("_GradientsHelper", "_LogOpGradients")),
        ),
        needs=("graph_v1",),
    ),
    "summaries": Part(
        "`tb_gradflow.summary.gradients`",
        (Module(f"{_OPS}.summary_ops_v2", ("_NoopSummaryWriter", "_summary_state")),),
    ),
}
"""By their rooms or modules in `tb_gradflow.trace`."""


def require_modules(version: str = tf.__version__, modules: Iterable[Module] = MODULES) -> None:
    """Raises ImportError if this version of TensorFlow lacks a private module, or what is taken from it."""
    gone = _missing(modules)
    if gone:
        raise ImportError(
            f"tb_gradflow records with internals of TensorFlow, and {_lacks(version, gone)}: install one of these, or "
            "a newer tb-gradflow. Logs can be read with any version."
        )


def require_part(name: str) -> None:
    """Raises SetupError if this version of TensorFlow lacks what only a part of the recorder uses."""
    part = PARTS[name]
    gone = _missing([*part.modules, *(each for other in part.needs for each in PARTS[other].modules)])
    if gone:
        raise SetupError(
            f"{part.lost} needs internals of TensorFlow, and {_lacks(tf.__version__, gone)}: install one of these, or "
            "a newer tb-gradflow. What else tb_gradflow does works with this version too."
        )


def _lacks(version: str, gone: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in gone)
    return f"TensorFlow {version} lacks {names}, which versions {SEEN[0]} to {SEEN[1]} have"


def _missing(modules: Iterable[Module]) -> list[str]:
    return [name for module in modules for name in _missing_of(module)]


def _missing_of(module: Module) -> Iterator[str]:
    try:
        found = importlib.import_module(module.name)
    except ImportError:
        yield module.name
        return
    yield from (f"{module.name}.{name}" for name in module.uses if not _has(found, name))


def _has(owner: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True
