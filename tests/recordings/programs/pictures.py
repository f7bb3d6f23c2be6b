"""Functions of pictures."""

from __future__ import annotations

from tests.recordings.programs.text import loss

PICTURES = {
    "a contrast": loss("return tf.reduce_mean(tf.square(tf.image.adjust_contrast(picture, w[0])))"),
    "a contrast of a computed picture": loss(
        "return tf.reduce_mean(tf.square(tf.image.adjust_contrast(picture * 0.5, contrast_factor=w[0])))"
    ),
    "a contrast in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.square(tf.image.adjust_contrast(picture * 0.5, w[0])))\n",
    "a saturation": loss("return tf.reduce_mean(tf.square(tf.image.adjust_saturation(picture, w[0])))"),
    "colours from hues": loss("return tf.reduce_mean(tf.square(tf.image.hsv_to_rgb(picture * w)))"),
    "a glimpse that is not centred": loss(
        "return tf.reduce_mean(tf.image.extract_glimpse(picture, (2, 2), w[None, :2], centered=False))"
    ),
    "a glimpse in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.image.extract_glimpse(picture, (2, 2), w[None, :2] / 9.0))\n",
    "a glimpse of a named size": "size = (2, 2)\n"
    + loss("return tf.reduce_mean(tf.image.extract_glimpse(picture, size, w[None, :2] / 9.0))"),
    "a glimpse of a computed size": "side = 2\n"
    + loss("return tf.reduce_mean(tf.square(tf.image.extract_glimpse(picture, [side, side + 1], w[None, :2] / 9.0)))"),
    "a rotated picture": "import keras\nturn = tf.constant([[1.0, 0.1, 0.0, -0.1, 1.0, 0.0, 0.0, 0.0]])\n"
    + loss("return tf.reduce_mean(tf.square(keras.ops.image.affine_transform(picture, turn * w[0])))"),
    "a projected picture": loss(
        "theta = tf.concat([[1.1, 0.1], w[:1], [-0.1, 0.9], w[1:2], [0.01, 0.0]], 0)[None]",
        "moved = tf.raw_ops.ImageProjectiveTransformV3(",
        "    images=picture, transforms=theta, output_shape=tf.shape(picture)[1:3], fill_value=0.0,",
        "    interpolation='NEAREST',",
        ")",
        "return tf.reduce_mean(tf.square(moved))",
    ),
    "a projected picture in a lambda": "loss = lambda: tf.reduce_mean(tf.square(tf.raw_ops.ImageProjectiveTransformV3("
    "images=picture, transforms=tf.concat([[1.1, 0.1], w[:1], [-0.1, 0.9], w[1:2], [0.01, 0.0]], 0)[None], "
    "output_shape=[5, 4], fill_value=0.0, interpolation='BILINEAR')))\n",
}

PICTURES = {
    name: f"picture = tf.random.stateless_uniform((1, 6, 6, 3), (1, 2), 0.1, 0.9)\n{body}"
    for name, body in PICTURES.items()
}
