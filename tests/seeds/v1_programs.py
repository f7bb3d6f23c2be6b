"""The seeds' programs that are written for TensorFlow 1, as they stand: prints the status and the causes of each.

A process of its own, since it switches eager execution off.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import tb_gradflow

tf.disable_eager_execution()


def answer(result: Any, asked: list[Any], **options: Any) -> dict[str, Any]:
    report = tb_gradflow.explain(result, variables=asked, **options)
    return {
        "statuses": [each.status for each in report.variables.values()],
        "causes": [each.cause for each in report.findings if each.severity != "info"],
        "healthy": report.healthy,
    }


@tf.RegisterGradient("CustomFloor")
def _custom_floor_grad(op: Any, grads: Any) -> list[Any]:
    return [grads]


@tf.RegisterGradient("CustomGrad")
def _const_mul_grad(unused_op: Any, grad: Any) -> Any:
    return 5.0 * grad


def main() -> None:
    told = {}
    x = tf.placeholder(tf.float32, [None])
    x2 = tf.placeholder(tf.int32, [None])
    results = {
        "square": (tf.square(x), [x]),
        "floor": (tf.floor(x), [x]),
        "sequence_mask": (tf.sequence_mask(x, dtype=tf.float32), [x]),
        "gather": (tf.gather(x, x2), [x, x2]),
    }
    feed = {x: [1.0, 2.0], x2: [0, 1]}
    for name, (result, asked) in results.items():
        told[name] = answer(result, asked)
        with tf.Session():
            told[f"{name}, fed"] = answer(result, asked, feed_dict={each: feed[each] for each in asked})

    a = tf.Variable([1.0, 2.0])
    delta = tf.random.normal([2])
    b, moved = tf.square(a), a + delta
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        told["a + delta"] = answer(b, [moved])
        told["a + delta, repaired"] = answer(tf.square(moved), [moved])

    vif = tf.constant(np.full([50, 7], 1.5), dtype=tf.float32)
    detour = tf.subtract(vif, tf.subtract(vif, tf.floor(vif)))
    with tf.get_default_graph().gradient_override_map({"Floor": "CustomFloor"}):
        overridden = tf.floor(vif)
    given = tf.placeholder(tf.float32, [3])
    with tf.get_default_graph().gradient_override_map({"Identity": "CustomGrad"}):
        output = tf.identity(given, name="Identity")
    values, other = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(2.0)
    with tf.get_default_graph().gradient_override_map({"Floor": "Identity"}):
        mean = tf.reduce_mean(tf.floor(values)) * other
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        told["detour"] = answer(detour, [vif])
        told["custom floor"] = answer(overridden, [vif])
        told["five times"] = answer(output, [given], feed_dict={given: [1, 2, 3]})
        told["floor as identity"] = answer(mean, [values, other])
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
