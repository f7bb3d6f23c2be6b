"""Saving, copying, pickling and cloning: of models, callbacks and steps, before, during and after a training."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import keras
import numpy as np
import tensorflow as tf

from tests.hands.hand import Hand, data, model, squared_step


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _by_cloudpickle(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


COPIES = (_pickled, copy.deepcopy, copy.copy)


class Copies(keras.callbacks.Callback):
    """Copies the other callbacks of a fit in it."""

    def __init__(self, copied: Callable[[Any], Any], others: list[Any]) -> None:
        super().__init__()
        self.copied, self.others = copied, others
        self.copies: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 1:
            self.copies = [self.copied(each) for each in self.others]


def callback_before(copied: Callable[[Any], Any]) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        x, y = data()
        callbacks = [copied(each) for each in given.callbacks()]
        net.fit(x, y, batch_size=8, verbose=0, callbacks=callbacks)
        given.keep(*net.get_weights())
        again = [copied(each) for each in callbacks]
        net.fit(x, y, batch_size=8, verbose=0, callbacks=again)
        given.keep(*net.get_weights())

    hand.__name__ = f"callback_copied_by_{copied.__name__.strip('_')}"
    return hand


def callback_during(copied: Callable[[Any], Any]) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        x, y = data()
        callbacks = given.callbacks()
        copies = Copies(copied, callbacks)
        net.fit(x, y, batch_size=8, verbose=0, epochs=2, callbacks=[*callbacks, copies])
        given.keep(*net.get_weights())
        net.fit(x, y, batch_size=8, verbose=0, callbacks=copies.copies)
        given.keep(*net.get_weights())

    hand.__name__ = f"callback_copied_in_fit_by_{copied.__name__.strip('_')}"
    return hand


def subclass_of_callback_pickled(hand: Hand) -> None:
    callbacks = hand.callbacks()
    for each in callbacks:
        each.note = {"mine": 1}
    copies = _pickled(callbacks)
    hand.keep([each.note for each in copies] or [{"mine": 1}])
    hand.keep([each.model is None for each in copies] or [True])


def model_copied(copied: Callable[[Any], Any]) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        given.fit(net)
        other = copied(net)
        given.fit(other)
        given.keep(other.predict(data()[0], verbose=0))

    hand.__name__ = f"model_copied_by_{copied.__name__.strip('_')}"
    return hand


def model_copied_in_fit(copied: Callable[[Any], Any]) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        copies: list[Any] = []

        class Keeps(keras.callbacks.Callback):
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                if batch == 0:
                    copies.append(copied(net))

        given.fit(net, Keeps(), epochs=1)
        given.fit(copies[0])

    hand.__name__ = f"model_copied_in_fit_by_{copied.__name__.strip('_')}"
    return hand


def saved(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    net.save("whole.keras")
    net.save_weights("only.weights.h5")
    again = keras.models.load_model("whole.keras")
    hand.fit(again)


def saved_as_h5(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    net.save("whole.h5")


def exported(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    net.export("exported", verbose=False)
    served = tf.saved_model.load("exported")
    hand.keep(served.serve(data()[0]))


def saved_by_tensorflow(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    module = tf.Module()
    module.net, module.call = net, tf.function(net.call, input_signature=[tf.TensorSpec((None, 4))])
    tf.saved_model.save(module, "module")


def checkpointed(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    tf.train.Checkpoint(model=net, optimizer=net.optimizer).write("checkpoint")
    other = model()
    other.fit(*data(8), verbose=0)
    tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore("checkpoint").expect_partial()
    hand.fit(other)
    hand.keep(sorted(name for name, _ in tf.train.list_variables("checkpoint")))


def pickled_to_file(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    with open("model.pickle", "wb") as file:
        pickle.dump(net, file)


def cloned(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    other = keras.models.clone_model(net)
    other.set_weights(net.get_weights())
    other.compile("sgd", "mse")
    hand.fit(other)


def from_config(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    other = keras.Sequential.from_config(net.get_config())
    other.compile("sgd", "mse")
    hand.fit(other)
    hand.keep(net.get_config(), net.get_compile_config(), net.optimizer.get_config())


def to_json(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    hand.keep(net.to_json())
    net.summary()


def attributes_of_model(hand: Hand) -> None:
    net = model()
    before = sorted(vars(net))
    hand.fit(net)
    # `run` adds one, which no copy and no file has: see docs/dependability.md.
    after = sorted(vars(net).keys() - {"_tb_gradflow_kept"})
    hand.keep(before, after, sorted(map(str, net._trackable_children())))


def step_in_module_saved(hand: Hand) -> None:
    class Line(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable([[1.0], [2.0], [0.5], [-1.0]])

        @tf.function(input_signature=[tf.TensorSpec((None, 4))])
        def predict(self, x: Any) -> Any:
            return x @ self.weight

    line, optimizer = Line(), keras.optimizers.SGD(0.1)

    def train(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(line.predict(x) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, [line.weight]), [line.weight], strict=True))
        return loss

    step = hand.step(train)
    hand.keep(*(step(*map(tf.constant, data())) for _ in range(4)), line.weight)
    tf.saved_model.save(line, "line")


def step_deep_copied(hand: Hand) -> None:
    step = hand.step(squared_step(tf.Variable(2.0)))
    hand.keep(step(tf.constant(1.0)), copy.copy(step)(tf.constant(2.0)), step(tf.constant(3.0)))


def custom_optimizer(hand: Hand) -> None:
    class Signs(keras.optimizers.Optimizer):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.assign_sub(variable, keras.ops.sign(gradient) * keras.ops.cast(learning_rate, variable.dtype))

    net = model(Signs(learning_rate=0.1))
    hand.fit(net)
    hand.keep(int(net.optimizer.iterations))


def wrapped_optimizer(hand: Hand) -> None:
    calls: list[int] = []

    class Clipped(keras.optimizers.SGD):
        def apply(self, gradients: Any, variables: Any = None) -> Any:
            calls.append(len(gradients))
            return super().apply([tf.clip_by_norm(each, 0.1) for each in gradients], variables)

    net = model(Clipped(0.5))
    hand.fit(net)
    hand.keep(calls)


def custom_train_step(hand: Hand) -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.layers.Dense(1)
            self.tracker = keras.metrics.Mean(name="own")

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.tracker.update_state(loss)
            return {"own": self.tracker.result()}

    net = Own()
    net.compile("sgd")
    hand.fit(net)


def weights_are_their_own(hand: Hand) -> None:
    net = model()
    held = [weight.numpy() for weight in net.weights]
    hand.fit(net)
    hand.keep(*held, [weight.path for weight in net.weights], [weight.dtype for weight in net.weights])


def fifty_fits(hand: Hand) -> None:
    """Threads and open files of the process stay what they are, once what is unused was collected."""
    import gc
    import os
    import threading

    net = model()
    x, y = data(8)
    for number in range(50):
        net.fit(x, y, verbose=0, callbacks=hand.callbacks())
        if number in (9, 49):
            gc.collect()
        if number == 9:
            threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    hand.keep(threading.active_count() <= threads, len(os.listdir("/proc/self/fd")) <= files + 2, *net.get_weights())


def folds(hand: Hand) -> None:
    x, y = data()
    for part in np.split(np.arange(24), 3):
        rest = np.setdiff1d(np.arange(24), part)
        net = model("sgd")
        net.fit(x[rest], y[rest], verbose=0, callbacks=hand.callbacks())
        hand.keep(net.evaluate(x[part], y[part], verbose=0))


def sweep(hand: Hand) -> None:
    for rate in (0.5, 0.1, 0.01):
        net = model(keras.optimizers.Adam(rate))
        hand.fit(net)
        keras.backend.clear_session()


def random_search(hand: Hand) -> None:
    """As a tuner does it: each trial has deep copies of the callbacks."""
    callbacks = hand.callbacks(keras.callbacks.EarlyStopping("loss"))
    x, y = data()
    for rate in (0.1, 0.01):
        net = model(keras.optimizers.SGD(rate))
        net.fit(x, y, epochs=2, verbose=0, callbacks=[copy.deepcopy(each) for each in callbacks])
        hand.keep(*net.get_weights())


HANDS = (
    *(callback_before(copied) for copied in (*COPIES, _by_cloudpickle)),
    *(callback_during(copied) for copied in (*COPIES[:2], _by_cloudpickle)),
    *(model_copied(copied) for copied in (_pickled, copy.deepcopy, _by_cloudpickle)),
    *(model_copied_in_fit(copied) for copied in (_pickled, copy.deepcopy)),
    subclass_of_callback_pickled,
    saved,
    saved_as_h5,
    exported,
    saved_by_tensorflow,
    checkpointed,
    pickled_to_file,
    cloned,
    from_config,
    to_json,
    attributes_of_model,
    step_in_module_saved,
    step_deep_copied,
    custom_optimizer,
    wrapped_optimizer,
    custom_train_step,
    weights_are_their_own,
    fifty_fits,
    folds,
    sweep,
    random_search,
)
