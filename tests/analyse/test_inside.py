"""A line that leaves TensorFlow, written so that it stays inside."""

from __future__ import annotations

import pytest

from tb_gradflow.analyse.user_code.inside import put_into, stays_inside


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("scale = np.exp(w.numpy())", "scale = tf.exp(w)"),
        ("y = x * float(self.gain)", "y = x * self.gain"),
        ("z = np.clip(t, 0.0, 1.0).astype('float32')", "z = tf.clip_by_value(t, 0.0, 1.0)"),
        ("return tf.constant(np.mean(t.numpy(), axis=0))", "return tf.reduce_mean(t, axis=0)"),
        ("p = self.net.predict(x, verbose=0)", "p = self.net(x)"),
        ("v = np.linalg.norm(np.array(w))", "v = tf.norm(w)"),
        ("q = math.sqrt(float(s))", "q = tf.sqrt(s)"),
        ("k = np.dot(a, b.numpy())", "k = tf.tensordot(a, b, 1)"),
        ("a = 1; b = np.square(w)", "b = tf.square(w)"),
        ("def call(self, x): return x * self.g.numpy()", "return x * self.g"),
        ("m = np.where(t.numpy() > 0, 1.0, 0.0)", None),
        ("order = np.argsort(t)", None),
        # Attributes of an array that a tensor does not have, and functions that return an array of one.
        ("y = d(g.numpy().T)", "y = d(tf.transpose(g))"),
        ("m = t.numpy().mean()", "m = tf.reduce_mean(t)"),
        ("r = t.numpy().reshape(2, n)", "r = tf.reshape(t, [2, n])"),
        ("y = (t.numpy()[1:] / 2).T", "y = tf.transpose(t[1:] / 2)"),
        ("y = w.numpy().dot(x)", "y = tf.tensordot(w, x, 1)"),
        ("r = t.numpy().reshape(*shape)", "r = tf.reshape(t, [*shape])"),
        ("m = t.numpy().mean(axis=0, keepdims=True)", "m = tf.reduce_mean(t, axis=0, keepdims=True)"),
        ("e = tfd.Normal(mu.numpy(), 1.0).mean()", "e = tfd.Normal(mu, 1.0).mean()"),
        ("s = np.std(t.numpy(), ddof=1)", None),
        ("f = (t.numpy() - m).flatten()", None),
        ("a = t.numpy().flat[0]", None),
        ("i = t.numpy().argmax()", None),
        ("y = d(moments(g.numpy()).reshape((1, 4)))", None),
        ("p = np.pad(w.numpy(), 1)", "p = tf.experimental.numpy.pad(w, 1, mode='constant')"),
        ("p = np.pad(w.numpy(), 1, 'edge')", "p = tf.experimental.numpy.pad(w, 1, 'edge')"),
        ("h = np.hypot(x.numpy(), y.numpy())", "h = tf.experimental.numpy.hypot(x, y)"),
        ("h = np.hypot(x.numpy(), 1.0)", None),
        ("l = np.logaddexp(x.numpy(), 0.0)", "l = tf.experimental.numpy.logaddexp(x, 0.0)"),
        ("h = np.hstack([x.numpy(), y.numpy()])", "h = tf.experimental.numpy.hstack([x, y])"),
        # TensorFlow makes float64 of a list, and then cannot compute with what is float32.
        ("a = np.append(x.numpy(), [1.0])", None),
        ("h = np.hstack([x.numpy(), [1.0]])", None),
        ("y = tf.exp(w)", None),
        ("y = np.exp(", None),
    ],
)
def test_the_line_inside(line: str, inside: str | None) -> None:
    assert stays_inside(line) == inside


@pytest.mark.parametrize(
    ("code", "put"),
    [
        ("table[i, j] = cost(a[i], b[j])", ("table", "cost(a[i], b[j])")),
        ("self.rows[t] = float(model(x))", ("self.rows", "model(x)")),
        ("rows[t] = h.numpy()", ("rows", "h")),
        ("rows[t] = np.sqrt(h)", None),
        ("total = float(h)", None),
    ],
)
def test_what_is_put_into_an_array_is_told_apart_from_it(code: str, put: tuple[str, str] | None) -> None:
    assert put_into(code) == put
