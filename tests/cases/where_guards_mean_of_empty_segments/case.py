# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class ClusterPool(keras.layers.Layer):
    """Mean vector of each cluster; clusters without points get zero."""

    def __init__(self, clusters, **kw):
        super().__init__(**kw)
        self.clusters = clusters

    def call(self, inputs):
        points, assignment = inputs
        member = ops.one_hot(assignment, self.clusters, dtype=points.dtype)
        weight = ops.exp(-ops.sum(ops.square(points), axis=-1, keepdims=True)) * member
        total = ops.einsum("bnc,bnd->bcd", weight, points)
        mass = ops.sum(weight, axis=1)[..., None]
        return ops.where(mass > 0, total / mass, ops.zeros_like(total))

    def compute_output_shape(self, shapes):
        return (shapes[0][0], self.clusters, shapes[0][2])


def build():
    keras.utils.set_random_seed(62)
    cloud = keras.Input((7, 3), name="cloud")
    cluster = keras.Input((7,), dtype="int32", name="cluster")
    h = keras.layers.Dense(4, activation="tanh", name="lift")(cloud)
    h = ClusterPool(3, name="pool")([h, cluster])
    h = keras.layers.Flatten(name="flat")(h)
    out = keras.layers.Dense(2, name="label")(h)
    model = keras.Model([cloud, cluster], out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(62)
    groups = rng.integers(0, 3, size=(5, 7)).astype("int32")
    groups[0] = groups[0] % 2  # cluster 2 is empty
    x = [rng.normal(size=(5, 7, 3)).astype("float32"), groups]
    y = rng.integers(0, 2, size=(5,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 5}}
