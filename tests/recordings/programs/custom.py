"""Custom gradients."""

from __future__ import annotations

from tests.recordings.programs.text import loss


def _custom(
    value: str, *gradient: str, arguments: str = "v", given: str = "w", mark: str = "@tf.custom_gradient"
) -> str:
    """A function with a custom gradient, and the loss that uses it."""
    body = "".join(f"        {line}\n" for line in gradient)
    function = f"{mark}\ndef own({arguments}):\n    def backward(upstream):\n{body}    return {value}, backward\n"
    return function + loss(f"return tf.reduce_sum(own({given}) * x)")


CUSTOM = {
    "a custom gradient of the other sign": _custom("v * 2.0", "return -2.0 * upstream"),
    "a custom gradient of twice the size": _custom("v * 2.0", "return 4.0 * upstream"),
    "a custom gradient of half the size": _custom("v * 2.0", "return upstream * 1.0"),
    "a custom gradient of an odd size": _custom("v * 2.0", "return upstream * 3.1"),
    "a custom gradient that forgets what arrives": _custom("tf.square(v)", "return 2.0 * v"),
    "a custom gradient of another function": _custom("tf.sin(v)", "return upstream * v"),
    "a custom gradient in another order": _custom(
        "a * b", "return upstream * a, upstream * b", arguments="a, b", given="w, tf.exp(w)"
    ),
    "a custom gradient that is summed": _custom("v * 2.0", "return tf.reduce_sum(upstream * 2.0)"),
    "a custom gradient that is not summed": _custom("v + rows", "return upstream"),
    "a custom gradient that fails": _custom("v * 2.0", "raise ValueError('not {ready}')"),
    "a custom gradient of zeros": _custom("v * 2.0", "return tf.zeros_like(upstream)"),
    "a custom gradient of zeros of the identity": _custom("tf.identity(v)", "return upstream * 0.0"),
    "a custom gradient that is not finite": _custom("v * 2.0", "return upstream / tf.zeros_like(v)"),
    "a custom gradient of nothing": _custom("v * 2.0", "return None"),
    "a custom gradient of one number": _custom("tf.square(v)", "return 1.0"),
}
