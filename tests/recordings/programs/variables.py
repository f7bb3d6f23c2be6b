"""Variables that are not trained, or not reached."""

from __future__ import annotations

from tests.recordings.programs.text import loss

VARIABLES = {
    "an integer variable": "variables = [tf.Variable([1, 2, 3], name='n')]\n"
    + loss("return tf.reduce_sum(tf.cast(variables[0], tf.float32) * x)"),
    "an integer variable under a name": "n = tf.Variable(2)\nvariables = [n]\n"
    + loss("return tf.reduce_sum(tf.cast(n, tf.float32) * x)"),
    "an integer variable by its dtype": "n = tf.Variable([1, 2, 3], dtype=tf.int32, name='n')\nvariables = [n]\n"
    + loss("return tf.reduce_sum(tf.cast(n, tf.float32) * x)"),
    "an integer weight of a layer": "import keras\nclass Shift(keras.layers.Layer):\n    def build(self, shape):\n"
    "        self.n = self.add_weight(name='n', shape=(3,), dtype='int32', initializer='ones')\n"
    "    def call(self, v):\n        return v + keras.ops.cast(self.n, 'float32')\n"
    "shift = Shift()\nshift.build((None, 3))\nvariables = [shift.n]\n" + loss("return tf.reduce_sum(shift(rows))"),
    "a variable that is not trainable": "s = tf.Variable([1.0, 2.0, 3.0], trainable=False, name='s')\nvariables = [s]\n"
    + loss("return tf.reduce_sum(s * x)"),
    "a state that is read back": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("state.assign(w * 2.0)", "return tf.reduce_sum(state * x)"),
    "a state that is read back as a value": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("kept = w * 2.0", "state.assign(kept)", "return tf.reduce_sum(state.read_value() * x)"),
    "a state that is added to": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("state.assign_add(w * 2.0)", "return tf.reduce_sum(tf.square(state) * x)"),
    "the result of an assignment": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("now = state.assign(w * 2.0)", "return tf.reduce_sum(now * x)"),
    "the result of an assignment of a name": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("kept = w * 2.0", "now = state.assign(kept)", "return tf.reduce_sum(now * x)"),
    "the result of an addition": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("now = state.assign_sub(w * 2.0)", "return tf.reduce_sum(now * x)"),
    "a state in a list": "states = [tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')]\n"
    + loss("states[0].assign(w * 2.0)", "return tf.reduce_sum(states[0] * x)"),
    "a state that a loop writes": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("for _ in range(2):", "    state.assign(w + state)", "return tf.reduce_sum(state * x)"),
    "a state behind another statement": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + loss("v = w * 2.0; state.assign(v)", "return tf.reduce_sum(state * x)"),
    "a state that another method reads": "class Net:\n    def __init__(self):\n"
    "        self.state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    "    def advance(self):\n        self.state.assign_add(w * 2.0)\n"
    "    def told(self):\n        self.count = 1\n        return self.state.value() * x\n"
    "net = Net()\n" + loss("net.advance()", "return tf.reduce_sum(net.told())"),
    "a tensor made before the step": "scale = tf.exp(w)\n" + loss("return tf.reduce_sum(scale * x)"),
    "a tensor made before the step, as a sum": "scale = w * 2.0 + 1.0\n"
    + loss("return tf.reduce_sum(scale * x + scale)"),
    "a tensor in a list, made before the step": "scales = [tf.exp(w)]\n" + loss("return tf.reduce_sum(scales[0] * x)"),
    "an object made before the step": "class Prior:\n    def __init__(self, v):\n        self.scale = tf.exp(v)\n"
    "prior = Prior(w)\n" + "def loss():\n    'The loss.'\n    return tf.reduce_sum(prior.scale * x)\n",
    "an object made before two functions": "class Prior:\n    def __init__(self, v):\n        self.scale = tf.exp(v)\n"
    "prior = Prior(w)\ndef other():\n    return prior.scale\n" + loss("return tf.reduce_sum(prior.scale * x)"),
    "factors of zeros": "def make():\n    a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "    b = tf.Variable(tf.zeros((2, 3)), name='b')\n    return [a, b]\nvariables = make()\n"
    + loss("a, b = variables", "return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "factors of zeros in two places": "a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "b = tf.Variable(tf.zeros((2, 3)), name='b')\nvariables = [a, b]\n"
    + loss("return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "factors of zeros by numpy": "import numpy as np\ndef make():\n"
    "    a = tf.Variable(np.zeros((3, 2), 'float32'), name='a')\n"
    "    b = tf.Variable(np.zeros((2, 3), 'float32'), name='b')\n    return [a, b]\nvariables = make()\n"
    + loss("a, b = variables", "return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "weights of zeros": "import keras\nclass Low(keras.layers.Layer):\n    def build(self, shape):\n"
    "        self.a = self.add_weight(name='a', shape=(3, 2), initializer='zeros')\n"
    "        self.b = self.add_weight(name='b', shape=(2, 3), initializer=keras.initializers.Zeros())\n"
    "    def call(self, v):\n        return v @ self.a @ self.b\n"
    "low = Low()\nlow.build((None, 3))\nvariables = low.weights\n"
    + loss("return tf.reduce_sum(tf.square(low(rows) - rows))"),
}
