"""Compiled models."""

from __future__ import annotations

_DATA = "data = (tf.random.stateless_normal((8, 4), (1, 2)), tf.random.stateless_normal((8, 1), (3, 4)))\n"


def _model(*lines: str, loss: str = "mse", data: str = _DATA) -> str:
    """A model that the last of the lines makes."""
    *before, last = lines
    made = "".join(f"    {line}\n" for line in before)
    # AutoGraph knows the line of a function of the file, so that the file is known.
    return (
        f"import keras\n{data}def make():\n    keras.utils.set_random_seed(1)\n{made}    return {last}\n"
        f"model = make()\nmodel.compile('sgd', {loss!r})\n"
    )


_LINE = "keras.layers.Lambda(lambda p: tf.identity(p))"

_CHOICE = "keras.layers.Lambda(lambda p: tf.argmax(p, -1))"

MODELS = {
    "rows of a choice in a list": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, keras.layers.Embedding(6, 3), "
        "keras.layers.Dense(1)])"
    ),
    "rows of a choice in a list, with options": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), keras.layers.Lambda(lambda p: tf.argmax(p, -1), "
        "output_shape=()), keras.layers.Embedding(6, output_dim=3, name='rows', embeddings_initializer='zeros'), "
        "keras.layers.Dense(1)])"
    ),
    "rows of a choice of a named function": _model(
        "def choose(p):",
        "    return tf.argmax(p, -1)",
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), keras.layers.Lambda(choose), "
        "keras.layers.Embedding(6, 3), keras.layers.Dense(1)])",
    ),
    "rows of a choice with kept dimensions": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), "
        "keras.layers.Lambda(lambda p: keras.ops.argmax(p, -1, keepdims=True)), "
        "keras.layers.Embedding(6, 3), keras.layers.Flatten(), keras.layers.Dense(1)])"
    ),
    "rows of a choice that hide padding": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, "
        "keras.layers.Embedding(6, 3, mask_zero=True), keras.layers.Dense(1)])"
    ),
    "rows of a choice of a computed size": _model(
        "size = {'size': 6}",
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, "
        "keras.layers.Embedding(size['size'] + 0, 3), keras.layers.Dense(1)])",
    ),
    "a choice that is not looked up": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), "
        "keras.layers.Lambda(lambda p: tf.cast(tf.argmax(p, -1), tf.float32)[:, None]), keras.layers.Dense(1)])"
    ),
    "a choice at the end of a list": _model(
        f"front = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}])",
        "keras.Sequential([front, keras.layers.Embedding(6, 3), keras.layers.Dense(1)])",
    ),
    "rows of a choice in a function": _model(
        "inputs = keras.Input((4,))",
        "v = keras.layers.Dense(6)(inputs)",
        f"v = {_CHOICE}(v)",
        "v = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(v))",
    ),
    "rows of a choice in one expression": _model(
        "inputs = keras.Input((4,))",
        f"v = keras.layers.Embedding(6, 3)({_CHOICE}(keras.layers.Dense(6)(inputs)))",
        "keras.Model(inputs, keras.layers.Dense(1)(v))",
    ),
    "rows of a choice in a function, later": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "other = keras.layers.Dense(3)(inputs)",
        "u = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u + other))",
    ),
    "rows of a choice that is looked up twice": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u + keras.layers.Embedding(6, 3)(v)))",
    ),
    "rows of a choice that is returned": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Embedding(6, 3)(v)))",
    ),
    "rows of a choice in an attribute": _model(
        "class Net: pass",
        "net, inputs = Net(), keras.Input((4,))",
        f"net.v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.layers.Embedding(6, 3)(net.v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u))",
    ),
    "rows of a choice that a function looks up": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.ops.cast(v, 'float32')[:, None]",
        "keras.Model(inputs, keras.layers.Dense(1)(u))",
    ),
    "layers of zeros": _model(
        "one = keras.layers.Dense(2, use_bias=False, kernel_initializer='zeros', name='one')",
        "two = keras.layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Zeros(), name='two')",
        f"keras.Sequential([one, {_LINE}, two])",
    ),
    "a layer that is frozen": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, trainable=False, name='first'), {_LINE}, "
        "keras.layers.Dense(1, trainable=False, name='last')])"
    ),
    "a layer that is frozen afterwards": _model(
        "first = keras.layers.Dense(3, name='first')",
        f"model = keras.Sequential([keras.Input((4,)), first, {_LINE}, keras.layers.Dense(1, trainable=False)])",
        "first.trainable = False",
        "model",
    ),
    "a softmax of a single unit": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, 'tanh'), {_LINE}, "
        "keras.layers.Dense(1, activation='softmax', name='last')])"
    ),
    "a softmax of a single unit, in a loss of classes": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, 'tanh'), {_LINE}, "
        "keras.layers.Dense(1, activation='softmax')])",
        loss="categorical_crossentropy",
    ),
    "a softmax layer over one column": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Reshape((4, 1)), keras.layers.Dense(1), {_LINE}, "
        "keras.layers.Softmax(name='soft'), keras.layers.Flatten(), keras.layers.Dense(1, trainable=False)])"
    ),
    "a softmax layer over one unit": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), {_LINE}, keras.layers.Softmax(name='soft')])"
    ),
    "a relu that is dead": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation='relu', name='dead', "
        f"bias_initializer=keras.initializers.Constant(-99.0)), {_LINE}, keras.layers.Dense(1)])"
    ),
    "sigmoids in a loop": _model(
        "model = keras.Sequential([keras.Input((4,))])",
        "for _ in range(12):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        f"model.add({_LINE})",
        "model.add(keras.layers.Dense(1))",
        "model",
    ),
    "sigmoids in two loops": _model(
        "model = keras.Sequential([keras.Input((4,))])",
        "for _ in range(7):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        "for _ in range(7):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        f"model.add({_LINE})",
        "model.add(keras.layers.Dense(1))",
        "model",
    ),
    "half precision that overflows": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, dtype='float16', name='first'), "
        "keras.layers.Lambda(lambda p: tf.exp(p * 60000.0), dtype='float16'), keras.layers.Dense(1)])"
    ),
    "half precision by a function of numpy": _model(
        "import numpy as np",
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name='first'), "
        "keras.layers.Lambda(lambda p: tf.exp(tf.cast(p * 100.0, np.float16))), keras.layers.Dense(1)])",
    ),
}
