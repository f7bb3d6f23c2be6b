"""Values that leave TensorFlow, and settings at which nothing arrives."""

from __future__ import annotations

from tests.recordings.programs.text import loss

LEFT = {
    "a function of numpy": "import numpy as np\n"
    + loss("return tf.reduce_sum(tf.numpy_function(np.sin, [w], tf.float32))"),
    "a function of numpy without a counterpart": "import numpy as np\n"
    + loss("return tf.reduce_sum(tf.numpy_function(np.unwrap, [w], tf.float32))"),
    "a lambda outside": "import numpy as np\n"
    + loss("return tf.reduce_sum(tf.numpy_function(lambda v: np.tanh(v) * 2.0, [w], tf.float32))"),
    "a lambda outside without a counterpart": "import numpy as np\n"
    + loss("return tf.reduce_sum(tf.numpy_function(lambda v: np.unwrap(v), [w], tf.float32))"),
    "a named lambda outside": "import numpy as np\noutside = lambda v: np.exp(v)\n"
    + loss("return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))"),
    "a function outside": "import numpy as np\ndef outside(v):\n    return np.square(v) + 1.0\n"
    + loss("return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))"),
    "a function outside, in a lambda": "import numpy as np\ndef outside(v):\n    return np.square(v) + 1.0\n"
    "loss = lambda: tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))\n",
    "a function inside the same": "import numpy as np\n"
    + loss(
        "def outside(v):",
        "    doubled = v * 2.0",
        "    return np.sqrt(doubled)",
        "return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))",
    ),
    "a function that holds another": "import numpy as np\n"
    + loss(
        "def outside(v):",
        "    return np.array(list(map(lambda e: e * 2.0, v)), 'float32')",
        "return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))",
    ),
    "a function from elsewhere": "import numpy as np\nfrom functools import partial\n"
    + loss("return tf.reduce_sum(tf.numpy_function(partial(np.clip, a_min=0.3, a_max=2.0), [w], tf.float32))"),
    "a function of named inputs": "import numpy as np\n"
    + loss("given = [w]", "return tf.reduce_sum(tf.numpy_function(np.sin, given, tf.float32))"),
    "a python function": "import math\n"
    + loss("return tf.reduce_sum(tf.py_function(lambda v: tf.constant(math.sin(v[0])), [w], tf.float32))"),
}

SETTINGS = {
    "a relu that is never active": loss("return tf.reduce_sum(tf.nn.relu(w - 9.0) * x)"),
    "a maximum with zero": loss("return tf.reduce_sum(tf.maximum(w - 9.0, 0.0) * x)"),
    "a maximum with zero first": loss("return tf.reduce_sum(tf.maximum(0.0, w - 9.0) * x)"),
    "a relu with arguments": loss("return tf.reduce_sum(tf.keras.activations.relu(w - 9.0, max_value=6.0) * x)"),
    "a clip": loss("return tf.reduce_sum(tf.clip_by_value(w + 9.0, 0.0, 1.0) * x)"),
    "a clip by keras": "import keras\n" + loss("return keras.ops.sum(keras.ops.clip(w + 9.0, 0.0, 1.0) * x)"),
    "a relu6": loss("return tf.reduce_sum(tf.nn.relu6(w + 9.0) * x)"),
    "a hard sigmoid": loss("return tf.reduce_sum(tf.keras.activations.hard_sigmoid(w + 9.0) * x)"),
    "a softmax over one column": loss("return tf.reduce_sum(tf.nn.softmax(w[:, None]) * x[:, None])"),
    "attention over one column": loss(
        "return tf.reduce_sum(tf.nn.softmax(rows[..., None] * w[:, None], axis=-1) * rows[..., None])"
    ),
    "attention over one column by default": loss(
        "return tf.reduce_sum(tf.nn.softmax(rows[..., None] * w[:, None]) * rows[..., None])"
    ),
    "a softmax over one row": loss("return tf.reduce_sum(tf.nn.softmax(w[None, :, None], 2) * rows[:1, :, None])"),
    "a softmax over one number": loss("return tf.reduce_sum(tf.nn.softmax(w[:1]) * 2.0)"),
    "probabilities as logits": loss(
        "shares = tf.nn.softmax(rows * w)",
        "return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=shares))",
    ),
    "computed probabilities as logits": loss(
        "shares = tf.nn.softmax(rows * w, axis=-1)",
        "return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(tf.one_hot([0, 2], 3), shares))",
    ),
    "probabilities as logits, in the call": loss(
        "each = tf.nn.sigmoid_cross_entropy_with_logits(labels=rows, logits=tf.sigmoid(rows * w))",
        "return tf.reduce_mean(each)",
    ),
    "probabilities as logits, in another function": "def shares():\n    return tf.nn.softmax(rows * w)\n"
    + loss("return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=shares()))"),
    "probabilities as logits, under a name that is used twice": loss(
        "shares = tf.nn.softmax(rows * w)",
        "shares = tf.identity(shares)",
        "return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=shares))",
    ),
}
