# mypy: ignore-errors
"""Inverse rendering of a sphere: albedo, light and ambient term are fitted to a photo in display colours."""

import numpy as np
import tensorflow as tf

SIZE = 8


def sphere_normals(size):
    axis = tf.linspace(-1.2, 1.2, size)
    x, y = tf.meshgrid(axis, axis)
    inside = 1.0 - tf.square(x) - tf.square(y)
    hit = tf.cast(inside > 0.0, tf.float32)
    z = tf.sqrt(tf.maximum(inside, 1e-6))
    return tf.stack([x, y, z], axis=-1), hit


def linear_to_srgb(linear):
    low = linear * 12.92
    high = 1.055 * tf.pow(linear, 1.0 / 2.4) - 0.055
    return tf.where(linear <= 0.0031308, low, high)


class Scene(tf.Module):
    def __init__(self):
        super().__init__(name="scene")
        self.albedo = tf.Variable([0.7, 0.4, 0.3], name="albedo")
        self.light = tf.Variable([0.3, 0.4, 0.8], name="light")
        self.exposure = tf.Variable(0.1, name="log_exposure")

    def shade(self):
        normals, hit = sphere_normals(SIZE)
        direction = self.light / tf.sqrt(tf.reduce_sum(tf.square(self.light)) + 1e-8)
        cosine = tf.nn.relu(tf.reduce_sum(normals * direction, axis=-1))
        radiance = tf.exp(self.exposure) * cosine[..., None] * tf.nn.softplus(self.albedo)
        return radiance * hit[..., None]

    def render(self):
        return linear_to_srgb(self.shade())


class Background(tf.Module):
    def __init__(self):
        super().__init__(name="background")
        self.colour = tf.Variable([0.2, 0.25, 0.3], name="background_colour")

    def __call__(self, hit):
        return (1.0 - hit)[..., None] * tf.sigmoid(self.colour)


def build():
    rng = np.random.default_rng(6)
    photo = tf.constant(rng.uniform(0.1, 0.8, size=(SIZE, SIZE, 3)).astype("float32"))
    scene, background = Scene(), Background()

    def loss_fn(photo):
        _, hit = sphere_normals(SIZE)
        image = scene.render() + background(hit)
        return tf.reduce_mean(tf.abs(image - photo)) + 1e-3 * tf.reduce_sum(tf.square(scene.light))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "args": (photo,),
        "variables": [scene.albedo, scene.light, scene.exposure, background.colour],
    }
