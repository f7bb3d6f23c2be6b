"""Calls whose arguments are unpacked from a tuple or a dictionary, and functions imported by their names alone."""

from __future__ import annotations

from tests.recordings.programs.text import loss

STARRED = {
    "a position, its arguments in a tuple": loss(
        "given = (w,)", "return tf.reduce_sum(tf.cast(tf.argmax(*given), tf.float32))"
    ),
    "a position, its arguments in a dictionary": loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.cast(tf.argmax(**given), tf.float32))"
    ),
    "a one-hot position, its arguments in a tuple": loss(
        "given = (w,)", "return tf.reduce_sum(tf.one_hot(tf.argmax(*given), 3) * x)"
    ),
    "a one-hot position, its arguments in a dictionary": loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.one_hot(tf.argmax(**given), 3) * x)"
    ),
    "a chosen row, its arguments in a tuple": loss(
        "given = (w,)", "return tf.reduce_sum(tf.gather(x, tf.argmax(*given)))"
    ),
    "a chosen row, its arguments in a dictionary": loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.gather(x, tf.argmax(**given)))"
    ),
    "an order of an order, its arguments in a tuple": loss(
        "given = (w,)", "return tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(*given)), tf.float32) * x)"
    ),
    "an order of an order, its arguments in a dictionary": loss(
        "given = dict(values=w)", "return tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(**given)), tf.float32) * x)"
    ),
    "a rounded value, its arguments in a tuple": loss("given = (w,)", "return tf.reduce_sum(tf.round(*given))"),
    "a rounded value, its arguments in a dictionary": loss(
        "given = dict(x=w)", "return tf.reduce_sum(tf.round(**given))"
    ),
    "a sign, its arguments in a tuple": loss("given = (w,)", "return tf.reduce_sum(tf.sign(*given))"),
    "a sign, its arguments in a dictionary": loss("given = dict(x=w)", "return tf.reduce_sum(tf.sign(**given))"),
    "a look-up, its arguments in a tuple": loss(
        "given = (x, tf.cast(w, tf.int32),)", "return tf.reduce_sum(tf.gather(*given))"
    ),
    "a look-up, its arguments in a dictionary": loss(
        "given = dict(params=x, indices=tf.cast(w, tf.int32))", "return tf.reduce_sum(tf.gather(**given))"
    ),
    "a bucket, its arguments in a tuple": loss(
        "given = ([0.5, 1.5], w,)", "return tf.reduce_sum(tf.gather(x, tf.searchsorted(*given)))"
    ),
    "a bucket, its arguments in a dictionary": loss(
        "given = dict(sorted_sequence=[0.5, 1.5], values=w)",
        "return tf.reduce_sum(tf.gather(x, tf.searchsorted(**given)))",
    ),
    "a place in a plane, its arguments in a tuple": loss(
        "given = (rows, tf.cast(w[:2] * 0.5, tf.int32),)", "return tf.reduce_sum(tf.gather_nd(*given))"
    ),
    "a place in a plane, its arguments in a dictionary": loss(
        "given = dict(params=rows, indices=tf.cast(w[:2] * 0.5, tf.int32))",
        "return tf.reduce_sum(tf.gather_nd(**given))",
    ),
    "a histogram, its arguments in a tuple": loss(
        "given = (w, [0.0, 3.0], 4,)",
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(*given), tf.float32) * tf.range(4.0))",
    ),
    "a histogram, its arguments in a dictionary": loss(
        "given = dict(values=w, value_range=[0.0, 3.0], nbins=4)",
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(**given), tf.float32) * tf.range(4.0))",
    ),
    "branches, its arguments in a tuple": loss(
        "given = (w[0] > 0.1, lambda: x[0], lambda: y[0],)", "return tf.reduce_sum(tf.cond(*given))"
    ),
    "branches, its arguments in a dictionary": loss(
        "given = dict(pred=w[0] > 0.1, true_fn=lambda: x[0], false_fn=lambda: y[0])",
        "return tf.reduce_sum(tf.cond(**given))",
    ),
    "a mask of a sequence, its arguments in a tuple": loss(
        "given = (w, 4, tf.float32,)", "return tf.reduce_sum(tf.sequence_mask(*given))"
    ),
    "a mask of a sequence, its arguments in a dictionary": loss(
        "given = dict(lengths=w, maxlen=4, dtype=tf.float32)", "return tf.reduce_sum(tf.sequence_mask(**given))"
    ),
    "a standard deviation, its arguments in a tuple": loss(
        "given = (w * 0.0,)", "return tf.reduce_sum(tf.math.reduce_std(*given))"
    ),
    "a standard deviation, its arguments in a dictionary": loss(
        "given = dict(input_tensor=w * 0.0)", "return tf.reduce_sum(tf.math.reduce_std(**given))"
    ),
    "a power, its arguments in a tuple": loss("given = (w - w, 0.3,)", "return tf.reduce_sum(tf.pow(*given))"),
    "a power, its arguments in a dictionary": loss(
        "given = dict(x=w - w, y=0.3)", "return tf.reduce_sum(tf.pow(**given))"
    ),
    "a logarithm, its arguments in a tuple": loss("given = (w - w,)", "return tf.reduce_sum(tf.math.log(*given))"),
    "a logarithm, its arguments in a dictionary": loss(
        "given = dict(x=w - w)", "return tf.reduce_sum(tf.math.log(**given))"
    ),
    "an angle, its arguments in a tuple": loss("given = (w / w,)", "return tf.reduce_sum(tf.acos(*given))"),
    "an angle, its arguments in a dictionary": loss("given = dict(x=w / w)", "return tf.reduce_sum(tf.acos(**given))"),
    "a mean of nothing, its arguments in a tuple": loss(
        "given = (tf.boolean_mask(w * x, x > 9.0),)", "return tf.reduce_sum(tf.reduce_mean(*given))"
    ),
    "a mean of nothing, its arguments in a dictionary": loss(
        "given = dict(input_tensor=tf.boolean_mask(w * x, x > 9.0))", "return tf.reduce_sum(tf.reduce_mean(**given))"
    ),
    "a unit vector, its arguments in a tuple": loss(
        "given = (w - w,)", "return tf.reduce_sum(tf.linalg.normalize(*given)[0])"
    ),
    "a unit vector, its arguments in a dictionary": loss(
        "given = dict(tensor=w - w)", "return tf.reduce_sum(tf.linalg.normalize(**given)[0])"
    ),
    "an exponential, its arguments in a tuple": loss("given = (w * 200.0,)", "return tf.reduce_sum(tf.exp(*given))"),
    "an exponential, its arguments in a dictionary": loss(
        "given = dict(x=w * 200.0)", "return tf.reduce_sum(tf.exp(**given))"
    ),
    "a relu, its arguments in a tuple": loss("given = (w - 9.0,)", "return tf.reduce_sum(1.0 + tf.nn.relu(*given))"),
    "a relu, its arguments in a dictionary": loss(
        "given = dict(features=w - 9.0)", "return tf.reduce_sum(1.0 + tf.nn.relu(**given))"
    ),
    "a clip, its arguments in a tuple": loss(
        "given = (w + 9.0, 0.0, 1.0,)", "return tf.reduce_sum(tf.clip_by_value(*given))"
    ),
    "a clip, its arguments in a dictionary": loss(
        "given = dict(t=w + 9.0, clip_value_min=0.0, clip_value_max=1.0)",
        "return tf.reduce_sum(tf.clip_by_value(**given))",
    ),
    "a range, its arguments in a tuple": loss("given = (0.0, w[2], 0.5,)", "return tf.reduce_sum(tf.range(*given))"),
    "a range, its arguments in a dictionary": loss(
        "given = dict(start=0.0, limit=w[2], delta=0.5)", "return tf.reduce_sum(tf.range(**given))"
    ),
    "a random order, its arguments in a tuple": loss(
        "given = (w * 1.0,)", "return tf.reduce_sum(tf.random.shuffle(*given) * x)"
    ),
    "a random order, its arguments in a dictionary": loss(
        "given = dict(value=w * 1.0)", "return tf.reduce_sum(tf.random.shuffle(**given) * x)"
    ),
    "a contrast, its arguments in a tuple": loss(
        "given = (picture, w[0],)", "return tf.reduce_sum(tf.square(tf.image.adjust_contrast(*given)))"
    ),
    "a contrast, its arguments in a dictionary": loss(
        "given = dict(images=picture, contrast_factor=w[0])",
        "return tf.reduce_sum(tf.square(tf.image.adjust_contrast(**given)))",
    ),
    "a hue, its arguments in a tuple": loss(
        "given = (picture, w[0],)", "return tf.reduce_sum(tf.square(tf.image.adjust_hue(*given)))"
    ),
    "a hue, its arguments in a dictionary": loss(
        "given = dict(image=picture, delta=w[0])", "return tf.reduce_sum(tf.square(tf.image.adjust_hue(**given)))"
    ),
    "colours from hues, its arguments in a tuple": loss(
        "given = (picture * w,)", "return tf.reduce_sum(tf.square(tf.image.hsv_to_rgb(*given)))"
    ),
    "colours from hues, its arguments in a dictionary": loss(
        "given = dict(images=picture * w)", "return tf.reduce_sum(tf.square(tf.image.hsv_to_rgb(**given)))"
    ),
    "a glimpse, its arguments in a tuple": loss(
        "given = (picture, (2, 2), w[None, :2] / 9.0,)",
        "return tf.reduce_sum(tf.square(tf.image.extract_glimpse(*given)))",
    ),
    "a glimpse, its arguments in a dictionary": loss(
        "given = dict(input=picture, size=(2, 2), offsets=w[None, :2] / 9.0)",
        "return tf.reduce_sum(tf.square(tf.image.extract_glimpse(**given)))",
    ),
    "counts, its arguments in a tuple": loss(
        "given = ([8], tf.exp(w),)", "return tf.reduce_sum(tf.random.poisson(*given))"
    ),
    "counts, its arguments in a dictionary": loss(
        "given = dict(shape=[8], lam=tf.exp(w))", "return tf.reduce_sum(tf.random.poisson(**given))"
    ),
    "a stop, its arguments in a tuple": loss(
        "given = (w * 2.0,)", "return tf.reduce_sum(tf.stop_gradient(*given) * x)"
    ),
    "a stop, its arguments in a dictionary": loss(
        "given = dict(input=w * 2.0)", "return tf.reduce_sum(tf.stop_gradient(**given) * x)"
    ),
    "a gathered draw, its arguments in a tuple": loss(
        "given = (rows * w, 1,)", "return tf.reduce_sum(tf.gather(x, tf.random.categorical(*given)))"
    ),
    "a gathered draw, its arguments in a dictionary": loss(
        "given = dict(logits=rows * w, num_samples=1)",
        "return tf.reduce_sum(tf.gather(x, tf.random.categorical(**given)))",
    ),
}

STARRED = {name: f"picture = tf.ones((1, 6, 6, 3))\n{body}" for name, body in STARRED.items()}


def _alone(names: str, loss: str) -> str:
    """A program that imports functions of TensorFlow without the module."""
    return (
        f"import numpy as np\nfrom tensorflow import Variable, {names}\n"
        f"w = Variable([0.2, 1.4, 2.6], name='w')\ndef loss():\n    return {loss}\n"
    )


ALONE = {
    "a position by its name alone": _alone("argmax, cast, float32", "cast(argmax(w), float32)"),
    "a rounded value by its name alone": _alone("round as rounded, reduce_sum", "reduce_sum(rounded(w))"),
    "a sign by its name alone": _alone("sign, reduce_sum", "reduce_sum(sign(w))"),
    "a comparison by its name alone": _alone("cast, float32, reduce_sum", "reduce_sum(cast(w > 1.0, float32))"),
    "a branch by its name alone": _alone("cond", "cond(w[0] > 0.1, lambda: 1.0, lambda: 2.0)"),
    "a root by its name alone": _alone("sqrt, reduce_sum", "reduce_sum(sqrt(w - w))"),
    "a power by its name alone": _alone("pow as power, reduce_sum", "reduce_sum(power(w - w, 0.3))"),
    "a logarithm by its name alone": _alone("math as m", "m.reduce_sum(m.log(w - w))"),
    "an angle by its name alone": _alone("acos, reduce_sum", "reduce_sum(acos(w / w))"),
    "a quotient by its name alone": _alone("reduce_sum", "reduce_sum((w - w) / (w - w))"),
    "an exponential by its name alone": _alone("exp, reduce_sum", "reduce_sum(exp(w * 200.0))"),
    "a relu by its name alone": _alone("nn, reduce_sum", "1.0 + reduce_sum(nn.relu(w - 9.0))"),
    "a clip by its name alone": _alone("clip_by_value, reduce_sum", "reduce_sum(clip_by_value(w + 9.0, 0.0, 1.0))"),
    "a range by its name alone": _alone("range as numbers, reduce_sum", "reduce_sum(numbers(0.0, w[2], 0.5))"),
    "a contrast by its name alone": _alone(
        "image, ones, reduce_sum", "reduce_sum(image.adjust_contrast(ones((1, 6, 6, 3)), w[0]) ** 2)"
    ),
    "a glimpse by its name alone": _alone(
        "image, ones, reduce_sum", "reduce_sum(image.extract_glimpse(ones((1, 6, 6, 3)), (2, 2), w[None, :2]))"
    ),
    "a stop by its name alone": _alone("stop_gradient, reduce_sum", "reduce_sum(stop_gradient(w * 2.0))"),
    "a right class by its name alone": _alone(
        "argmax, equal, cast, float32, constant", "cast(equal(argmax(w, -1), constant(1, 'int64')), float32)"
    ),
    "a choice of a branch by its name alone": _alone(
        "where, reduce_sum", "reduce_sum(where(w > 1.0, 1.0 / (w - 0.2), w))"
    ),
    "a function of numpy by its name alone": _alone(
        "numpy_function, reduce_sum, float32", "reduce_sum(numpy_function(np.sin, [w], float32))"
    ),
}
