# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Detector(keras.Model):
    def __init__(self):
        super().__init__(name="detector")
        self.stem = keras.layers.Conv2D(8, 3, padding="same", activation="swish", name="stem")
        self.box_head = keras.layers.Conv2D(4, 1, name="box_head")
        self.obj_head = keras.layers.Conv2D(1, 1, name="obj_head")
        self.class_head = keras.layers.Conv2D(3, 1, name="class_head")

    def call(self, x):
        h = self.stem(x)
        return tf.concat([self.box_head(h), self.obj_head(h), self.class_head(h)], -1)


def box_iou(a, b):
    a_min, a_max = a[..., :2] - a[..., 2:] / 2, a[..., :2] + a[..., 2:] / 2
    b_min, b_max = b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
    wh = tf.maximum(tf.minimum(a_max, b_max) - tf.maximum(a_min, b_min), 0.0)
    inter = wh[..., 0] * wh[..., 1]
    union = a[..., 2] * a[..., 3] + b[..., 2] * b[..., 3] - inter
    return inter / (union + 1e-6)


def yolo_loss(y_true, y_pred):
    object_mask = y_true[..., 4]
    pred_xy = tf.sigmoid(y_pred[..., 0:2])
    pred_wh = tf.exp(y_pred[..., 2:4])
    iou = box_iou(tf.concat([pred_xy, pred_wh], -1), y_true[..., 0:4])
    ignore = tf.cast(iou > 0.6, tf.float32) * (1.0 - object_mask)
    xy_loss = tf.reduce_sum(object_mask[..., None] * tf.square(pred_xy - y_true[..., 0:2]), [1, 2, 3])
    wh_loss = tf.reduce_sum(object_mask[..., None] * tf.square(tf.sqrt(pred_wh) - tf.sqrt(y_true[..., 2:4])), [1, 2, 3])
    conf = tf.nn.sigmoid_cross_entropy_with_logits(labels=object_mask * tf.stop_gradient(iou), logits=y_pred[..., 4])
    conf_loss = tf.reduce_sum((1.0 - ignore) * conf, [1, 2])
    decoded = tf.nn.softmax(y_pred[..., 5:])
    class_loss = tf.reduce_sum(object_mask[..., None] * tf.square(y_true[..., 5:] - decoded), [1, 2, 3])
    return 5.0 * (xy_loss + wh_loss) + conf_loss + class_loss


def build():
    keras.utils.set_random_seed(501)
    model = Detector()
    rng = np.random.default_rng(501)
    x = rng.normal(size=(4, 4, 4, 2)).astype("float32")
    y = np.concatenate(
        [
            rng.uniform(0.2, 0.8, (4, 4, 4, 4)),
            rng.uniform(size=(4, 4, 4, 1)) > 0.6,
            np.eye(3)[rng.integers(0, 3, (4, 4, 4))],
        ],
        -1,
    ).astype("float32")
    model(x[:1])
    model.compile("adam", loss=yolo_loss)
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
