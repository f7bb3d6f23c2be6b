"""The functions of TensorFlow, Keras and NumPy that are replaced while a step is recorded, and the purpose of each.

A library may rename any of them in a release. `patching.replaced` then reports it once, by name and with what is no
longer recorded. The log's notes contain the report too, and training continues.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function that is replaced.

    Attributes:
        owner: Its class, or the last part of its module.
        name: Its name there; `*` stands for all functions of a module.
        lost: What is not recorded without it, as a noun phrase.
        optional: Whether some owners lack it by design: a base class, another version.
        seen: The oldest and the newest version of its library in which it was seen.
    """

    owner: str
    name: str
    lost: str
    optional: bool = False
    seen: tuple[str, str] = ("2.16", "2.21")


_KERAS_3 = ("3.3", "3.15")
_KERAS_2 = ("2.16", "2.21")

SYMBOLS: tuple[Symbol, ...] = (
    Symbol("GradientTape", "gradient", "which gradients the step requests"),
    Symbol("GradientTape", "jacobian", "which Jacobians the step requests"),
    Symbol("GradientTape", "batch_jacobian", "which Jacobians the step requests"),
    Symbol("ConcreteFunction", "_call_flat", "a step that was compiled before the recorder came"),
    Symbol("Function", "__call__", "which traces a tf.function has got only in a step of `explain`"),
    Symbol(
        "ConcreteFunction",
        "_select_forward_and_backward_functions",
        "gradients inside nested functions that have trained before",
    ),
    Symbol(
        "_DelayedRewriteGradientFunctions",
        "forward_backward",
        "gradients inside nested functions that have trained before",
    ),
    Symbol("gradients_util", "_GradientsHelper", "gradients that are requested inside nested functions"),
    Symbol("gradients_util", "PossibleTapeGradientTypes", "terms of a loss inside nested functions"),
    Symbol("FunctionCaptures", "capture_by_value", "tensors that functions inside a step copy as constants"),
    Symbol("cond", "_eager_cond_implementation", "branches that an eager step does not take"),
    Symbol("py_builtins", "_tf_float", "conversions to Python numbers that stay in TensorFlow"),
    Symbol("py_builtins", "_tf_int", "conversions to Python numbers that stay in TensorFlow"),
    Symbol("_EagerTensorBase", "__bool__", "Python conditions on a tensor's value in an eager step"),
    Symbol("_EagerTensorBase", "_numpy", "where a value leaves TensorFlow for NumPy"),
    Symbol("numpy", "*", "where a value leaves TensorFlow for NumPy", seen=("1.26", "2.3")),
    Symbol("linalg", "*", "where a value leaves TensorFlow for NumPy", seen=("1.26", "2.3")),
    Symbol("random", "*", "where a value leaves TensorFlow for NumPy", seen=("1.26", "2.3")),
    Symbol("pywrap_tfe", "TFE_Py_FastPathExecute", "the ops of an eager step"),
    Symbol("AtomicFunction", "call_flat", "the tf.functions that an eager step calls"),
    Symbol("constant_op", "convert_to_eager_tensor", "the constants of an eager step"),
    Symbol("record", "record_operation", "the custom gradients of an eager step"),
    Symbol("tape", "push_new_tape", "the terms of a loss"),
    Symbol("tape", "push_tape", "the terms of a loss"),
    Symbol("tape", "pop_tape", "the terms of a loss"),
    Symbol("imperative_grad", "imperative_grad", "the terms of a loss"),
    Symbol("*", "clip_by_global_norm", "what clips gradients"),
    Symbol("*", "clip_by_norm", "what clips gradients"),
    Symbol("*", "clip_by_value", "what clips gradients"),
    Symbol("Optimizer", "apply_gradients", "which gradients an optimizer applies", optional=True),
    Symbol("*", "scale_loss", "the scale of a loss", optional=True, seen=_KERAS_3),
    Symbol("*", "apply", "which gradients an optimizer applies", optional=True, seen=_KERAS_3),
    Symbol("*", "_backend_update_step", "the learning rate of a schedule", optional=True, seen=_KERAS_3),
    Symbol("*", "apply_gradients", "which gradients an optimizer applies", optional=True, seen=_KERAS_2),
    Symbol("*", "get_scaled_loss", "the scale of a loss", optional=True, seen=_KERAS_2),
    Symbol("Layer", "_open_name_scope", "the layer that an op belongs to", seen=_KERAS_3),
    Symbol("Layer", "_assert_input_compatibility", "the masks that layers receive", seen=_KERAS_3),
    Symbol("Layer", "_set_mask_metadata", "the masks that layers return", seen=_KERAS_3),
    Symbol("Layer", "_maybe_cast_inputs", "the layer that an op belongs to", seen=_KERAS_2),
)


def symbol_of(owner: str, name: str) -> Symbol | None:
    """The entry of a function; `None` if it has none."""
    fitting = (each for each in SYMBOLS if each.owner in (owner, "*") and each.name in (name, "*"))
    # An entry with this name takes precedence over one with `*`.
    return min(fitting, key=lambda each: (each.owner == "*", each.name == "*"), default=None)
