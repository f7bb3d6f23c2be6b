"""Of several kinds: what the programs of the other modules do not reach."""

from __future__ import annotations

from tests.recordings.programs.text import GATED, loss, methods, step

_NUMPY = "from tensorflow.python.ops.numpy_ops import np_config\nnp_config.enable_numpy_behavior()\n"

FURTHER = {
    "a position that looks up an element": loss("return tf.gather_nd(x, tf.argmax(w)[None])"),
    "a choice that is copied": methods(
        "choose(self, scores):\n        best = tf.identity(tf.argmax(scores, axis=-1))\n        return best",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + GATED,
    "a mask of the largest that another method makes": methods(
        "choose(self, scores):\n        return tf.math.top_k(scores, 2)[1]",
        "mask(self, chosen):\n        return tf.reduce_sum(tf.one_hot(chosen, 3), axis=0)",
    )
    + loss("return tf.reduce_sum(net.mask(net.choose(w)) * x)"),
    "a cast that another method makes": methods(
        "choose(self, v):\n        return tf.cast(v * 9.0, tf.int32)",
        "floating(self, v):\n        return tf.cast(v, tf.float32)",
    )
    + loss("return tf.reduce_sum(net.floating(net.choose(w)) * x)"),
    "a one-hot draw behind another statement": loss(
        "logits = rows * w; hot = tf.one_hot(tf.random.categorical(logits, 1)[:, 0], 3)",
        "return tf.reduce_sum(hot * rows)",
    ),
    "a learned bucket by keras": "import keras\n"
    + loss("return keras.ops.sum(keras.ops.take(x, keras.ops.digitize(w, [0.5, 1.5]), axis=0))"),
    "a learned bucket by an op": loss(
        "return tf.reduce_sum(tf.gather(x, tf.raw_ops.Bucketize(input=w, boundaries=[0.5, 1.5])))"
    ),
    "a learned place that is scaled in a plane": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    + loss("return tf.gather_nd(plane, tf.cast(w[:2] * 1.5, tf.int32))"),
    "a learned place in a learned table": "table = tf.Variable([1.0, 2.0, 4.0, 9.0], name='table')\n"
    "variables = [w, table]\n" + loss("return tf.reduce_sum(tf.gather(table, tf.cast(w, tf.int32)))"),
    "the right class in 32 bits": "labels = tf.constant([0, 2])\n"
    + loss(
        "right = tf.equal(tf.cast(tf.argmax(rows * w, -1), tf.int32), labels)",
        "return tf.reduce_mean(tf.cast(right, tf.float32))",
    ),
    "a norm of a named order": "order = 'euclidean'\n" + loss("return tf.norm(w - w, ord=order)"),
    "a logarithm of a sigmoid beside another": loss(
        "p = tf.sigmoid(w * 100.0)", "return tf.reduce_sum(tf.math.log(1.0 - p) + tf.math.log(x))"
    ),
    "a unit vector in a pair": loss("pair = tf.linalg.normalize(w - w)", "return tf.reduce_sum(pair[0])"),
    "a masked row by the smallest number": loss(
        "least = tf.float32.min * 10.0",
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, least)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a standard deviation by the name of its input": loss("return tf.math.reduce_std(input_tensor=w * 0.0)"),
    "a comparison of what is rounded by name": loss(
        "return tf.reduce_sum(tf.cast(tf.cast(x=w * 3.0, dtype=tf.int32) > 2, tf.float32) * x)"
    ),
    "a tiny vector that is normalised": "v = tf.Variable([1e-9, 2e-9, -1e-9], name='v')\nvariables = [v]\n"
    + loss("return tf.reduce_sum(tf.math.l2_normalize(v) * x)"),
    "a comparison and a cast of the data": loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.cast(x, tf.bool), tf.float32) * x)"
    ),
    "a comparison and what python knows": loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & (y is not None), tf.float32) * x)"
    ),
    "a state by a function": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("tf.compat.v1.assign(state, w * 2.0)", "return tf.reduce_sum(state * x)"),
    "a state that other methods read": "class Net:\n    def __init__(self):\n"
    "        self.state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    "    def advance(self):\n        self.state.assign(w * 2.0)\n"
    "    def told(self):\n        return self.state * x\n"
    "    def clear(self):\n        self.state.assign(x)\n        return self.state\n"
    "net = Net()\n" + loss("net.advance()", "return tf.reduce_sum(net.told())"),
    "an object with a method, made before the step": "class Prior:\n    def __init__(self, v):\n"
    "        self.scale = tf.exp(v)\n    def energy(self, v):\n        return v * self.scale\n"
    "prior = Prior(w)\ndef loss():\n    'The loss.'\n    return tf.reduce_sum(prior.energy(x))\n",
    "factors of zeros and another": "def make():\n    a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "    b = tf.Variable(tf.zeros((2, 3)), name='b')\n    c = tf.Variable(tf.ones((3, 3)), name='c')\n"
    "    return [a, b, c]\nvariables = make()\n"
    + loss("a, b, c = variables", "return tf.reduce_sum(tf.square(rows @ a @ b @ c - rows))"),
    "a relu that is never active, beside a number": loss("return tf.reduce_sum(tf.nn.relu(w - 9.0) * x) + 1.0"),
    "a maximum that is never active, beside a number": loss("return tf.reduce_sum(tf.maximum(w - 9.0, 0.0) * x) + 1.0"),
    "rounding of a variable and of data": loss("return tf.reduce_sum(tf.round(w * 2.0) * tf.round(x * 0.9))"),
    "rounding of a variable twice": loss("return tf.reduce_sum(tf.round(w * 2.0) * tf.round(w * 0.9))"),
    "rounding in two methods": methods(
        "choose(self, v):\n        return tf.round(v * 2.0)", "scaled(self, v):\n        return tf.round(v * 3.0)"
    )
    + loss("return tf.reduce_sum(net.choose(w) + net.scaled(w))"),
    "a variable that becomes a tensor beside a count": step(
        "global count",
        "count += 1",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(net.w * x))",
        "gradient = tape.gradient(loss, net.w)",
        "net.w = net.w - 0.1 * (gradient if gradient is not None else 0.0)",
        "return loss",
        before="class Net: pass\nnet, count = Net(), 0\nnet.w = tf.Variable([0.2, 1.4, 2.6], name='w')\n",
    ),
    "an exponential that underflows": loss("return 1.0 + tf.reduce_sum(tf.exp(-w * 1000.0 - 200.0) * x)"),
    "a power that underflows": loss("return 1.0 + tf.reduce_sum(tf.pow(w * 0.001, 20.0) * x)"),
    "a zero that is chosen": loss("return tf.reduce_sum(tf.where(x > 9.0, w, 0.0) * w[0] * 0.0) + tf.reduce_sum(x)"),
    "a product in half precision": loss(
        "return tf.reduce_sum(tf.cast(tf.cast(w * 0.0, tf.float16) * 1e6, tf.float32))"
    ),
    "a loss that is scaled by hand": loss("return 1e12 * tf.reduce_sum(w * x)"),
    "a loss that is scaled by a power of two": loss("return 1099511627776.0 * tf.reduce_sum(w * x)"),
    "a softmax in the denominator of a product": loss("return tf.reduce_sum(tf.nn.softmax(w * 1e6) * x)"),
    "the logarithm of a sum of exponentials": loss("return tf.math.log(tf.reduce_sum(tf.exp(w * 200.0)))"),
    "the logarithm of exponentials that underflow": loss("return tf.math.log(tf.reduce_sum(tf.exp(w * -2000.0)))"),
    "the root of a negative number": loss("return tf.reduce_sum(tf.sqrt(w - 9.0))"),
    "the power of a negative number": loss("return tf.reduce_sum(tf.pow(w - 9.0, 0.5))"),
    "a step that is compiled by xla": step(
        "with tf.GradientTape() as tape:",
        "    loss = forward(w)",
        "gradient = tape.gradient(loss, w)",
        "return loss",
        before="@tf.function(jit_compile=True)\ndef forward(v):\n"
        "    return tf.reduce_sum(tf.unique(tf.cast(v, tf.int32))[0]) * 1.0\n".replace(
            "tf.reduce_sum(tf.unique(tf.cast(v, tf.int32))[0]) * 1.0", "tf.reduce_sum(tf.boolean_mask(v, v > 1.0))"
        ),
    ),
    # Last: numpy's behaviour of tensors cannot be switched off again.
    "a comparison cast by a method": _NUMPY + loss("return tf.reduce_sum((w > 1.0).astype(tf.float32) * x)"),
    "a mask under a name cast by a method": _NUMPY
    + loss("mask = w > 1.0", "return tf.reduce_sum(mask.astype(tf.float32) * x)"),
    "a number cast by a method and compared": _NUMPY
    + loss("return tf.reduce_sum(tf.cast((w * 3.0).astype(tf.int32) > 2, tf.float32) * x)"),
}
