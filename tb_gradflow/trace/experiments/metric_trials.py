"""Whether an accuracy that a model was compiled with says anything of its loss: what is it for predictions without an
error, and for those of other rows?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_gradflow.record.graph import CERTAIN
from tb_gradflow.record.schema import MetricTrial
from tb_gradflow.trace.protection.foreign import suppressed

_FAR, _CLOSE = 20.0, 0.25
"""Logits of a class that is certain, and of one that is a little more probable than the others: less than 0.5, where
accuracies divide probabilities. Those of probabilities are as much closer to the middle."""

_RIGHT = 0.05
"""The loss of right predictions is a smaller part of that of wrong ones."""


def metric_trials(model: Any, rows: Sequence[Any]) -> tuple[MetricTrial, ...]:
    """Those of a model with one output and the steps of Keras. `rows` are a batch: its inputs and targets. Changes
    metrics of the model."""
    if not isinstance(model, keras.Model) or not model.compiled or len(rows) < 2:
        return ()
    if any(getattr(type(model), name) is not getattr(keras.Model, name) for name in _OF_KERAS):
        return ()
    found: list[MetricTrial] = []
    with suppressed():  # whatever a loss or a metric of the program raises for such predictions
        found.extend(_trials(model, rows[0], rows[1]))
    return tuple(found)


_OF_KERAS = ("train_step", "compute_loss", "compute_metrics")


def _trials(model: Any, x: Any, y: Any) -> Iterator[MetricTrial]:
    metrics = [each for each in _compiled(model) if _is_accuracy(each)]
    if not metrics or not isinstance(y, tf.Tensor) or len(model.outputs or ()) != 1 or y.shape[0] < 2:
        return
    spec = keras.src.backend.compute_output_spec(model, x, training=False)
    shape = [y.shape[0], *spec.shape[1:]]

    def loss(predicted: Any) -> float:
        return float(model.compute_loss(x=x, y=y, y_pred=predicted, training=False))

    regular = float(tf.add_n([*map(tf.reduce_sum, model.losses), tf.constant(0.0)]))
    made = [(right, close, tf.roll(right, 1, axis=0)) for right, close in _perfect(y, shape)]
    fitting = (each for each in made if loss(each[0]) - regular < _RIGHT * (loss(each[2]) - regular))
    predictions = next(fitting, None)
    if predictions is None:
        return
    others = {written: [compute(y, each) for each in predictions] for written, compute in _others(y, shape)}
    instead = next((each for each, known in others.items() if min(known[:2]) >= CERTAIN > known[2]), "")
    for metric in metrics:
        right, close, wrong = (_value(metric, y, each) for each in predictions)
        yield MetricTrial(metric.name, right, close, wrong, instead)


def _compiled(model: Any) -> Iterator[Any]:
    for metric in model.metrics:
        yield from getattr(metric, "metrics", ())


def _is_accuracy(metric: Any) -> bool:
    return type(metric) in (
        keras.metrics.Accuracy,
        keras.metrics.BinaryAccuracy,
        keras.metrics.CategoricalAccuracy,
        keras.metrics.SparseCategoricalAccuracy,
    )


def _value(metric: Any, y: Any, predicted: Any) -> float:
    empty = [tf.zeros(each.shape, each.dtype) for each in metric.variables]
    return float(metric.stateless_result(metric.stateless_update_state(empty, y, predicted)))


def _perfect(y: Any, shape: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Predictions of this shape that may be right, each with such that are so by a narrow margin, if there is one."""
    targets = tf.cast(y, tf.float32)
    if int(np.prod(y.shape)) == int(np.prod(shape)):
        targets = tf.reshape(targets, shape)
    elif int(np.prod(y.shape)) * shape[-1] == int(np.prod(shape)) and bool(tf.reduce_all(targets == tf.round(targets))):
        targets = tf.one_hot(tf.reshape(tf.cast(y, tf.int32), shape[:-1]), shape[-1])
    else:
        return
    if bool(tf.reduce_all((targets == 0) | (targets == 1))):
        yield targets, 0.5 + (targets - 0.5) * _CLOSE
        yield (2 * targets - 1) * _FAR, (2 * targets - 1) * _CLOSE
    else:
        yield targets, targets


def _others(y: Any, shape: Sequence[int]) -> Iterator[tuple[str, Callable[[Any, Any], float]]]:
    """Accuracies that take targets and predictions of such shapes, as they are written."""
    count, of_all = int(np.prod(y.shape)), int(np.prod(shape))
    if shape[-1] > 1 and count < of_all:
        yield '"sparse_categorical_accuracy"', _mean_of(keras.metrics.sparse_categorical_accuracy)
    elif count == of_all:
        if shape[-1] > 1:
            yield '"categorical_accuracy"', _mean_of(keras.metrics.categorical_accuracy)
        yield '"binary_accuracy"', _mean_of(keras.metrics.binary_accuracy)
        yield "keras.metrics.BinaryAccuracy(threshold=0.0)", _mean_of(keras.metrics.binary_accuracy, threshold=0.0)


def _mean_of(accuracy: Callable[..., Any], **options: float) -> Callable[[Any, Any], float]:
    def mean(y: Any, predicted: Any) -> float:
        y = tf.reshape(y, predicted.shape) if int(tf.size(y)) == int(tf.size(predicted)) else y
        return float(tf.reduce_mean(accuracy(y, predicted, **options)))

    return mean
