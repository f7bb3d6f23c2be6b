"""Callbacks that change what Keras lets them change, and those that Keras comes with."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.hands.hand import Hand, data, model


class Once(keras.callbacks.Callback):
    """Does something at the end of the second batch of the first epoch, or of the first epoch."""

    def __init__(self, change: Callable[[Any], None], *, of_epoch: bool = False) -> None:
        super().__init__()
        self.change, self.of_epoch, self.is_done = change, of_epoch, False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 1 and not self.of_epoch and not self.is_done:
            self.is_done = True
            self.change(self.model)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.of_epoch and not self.is_done:
            self.is_done = True
            self.change(self.model)


def _other_weights(net: Any) -> None:
    net.set_weights([0.5 * each for each in net.get_weights()])


def _learning_rate(net: Any) -> None:
    net.optimizer.learning_rate = 0.5


def _assigned_rate(net: Any) -> None:
    net.optimizer.learning_rate.assign(0.25)


def _frozen(net: Any) -> None:
    net.get_layer("inner").trainable = False


def _frozen_and_compiled(net: Any) -> None:
    net.get_layer("inner").trainable = False
    net.compile("sgd", "mae")


def _other_optimizer(net: Any) -> None:
    net.optimizer = keras.optimizers.SGD(0.1)


def _compiled(net: Any) -> None:
    net.compile("sgd", "mae")


def _stopped(net: Any) -> None:
    net.stop_training = True


def _function_again(net: Any) -> None:
    net.make_train_function(force=True)


def _no_function(net: Any) -> None:
    net.train_function = None


def _other_step(net: Any) -> None:
    original = net.train_step
    net.train_step = lambda batch: {**original(batch), "extra": tf.constant(1.0)}


def _other_dropout(net: Any) -> None:
    net.layers[1].rate = 0.7


def _saved(net: Any) -> None:
    net.save("inside.keras")
    net.save_weights("inside.weights.h5")


def _predicted(net: Any) -> None:
    net.predict(data()[0], verbose=0)
    net.evaluate(*data(), verbose=0)


def _trained_inside(net: Any) -> None:
    net.train_on_batch(*data(8))


def _fitted_another(net: Any) -> None:
    other = model("sgd")
    other.fit(*data(8), verbose=0)


def _session_cleared(net: Any) -> None:
    keras.backend.clear_session()


def _raised(net: Any) -> None:
    raise ValueError("from a callback")


def _interrupted(net: Any) -> None:
    raise KeyboardInterrupt


def _exited(net: Any) -> None:
    raise SystemExit(3)


CHANGES = (
    _other_weights,
    _learning_rate,
    _assigned_rate,
    _frozen,
    _frozen_and_compiled,
    _other_optimizer,
    _compiled,
    _stopped,
    _function_again,
    _no_function,
    _other_step,
    _other_dropout,
    _saved,
    _predicted,
    _trained_inside,
    _fitted_another,
    _session_cleared,
    _raised,
    _interrupted,
    _exited,
)


def changing(change: Callable[[Any], None], *, of_epoch: bool) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        try:
            given.fit(net, Once(change, of_epoch=of_epoch), keep=False)
        finally:
            given.keep(*net.get_weights(), net.train_function is None, "train_step" in vars(net))
            given.keep(getattr(net.train_function, "__name__", "none"))

    hand.__name__ = f"callback{change.__name__}_{'epoch' if of_epoch else 'batch'}"
    return hand


def between(change: Callable[[Any], None]) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        given.fit(net)
        change(net)
        given.fit(net)

    hand.__name__ = f"between{change.__name__}"
    return hand


def early_stopping(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.EarlyStopping("loss", patience=0, min_delta=9.0, restore_best_weights=True))


def checkpoints(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.ModelCheckpoint("at{epoch}.keras"))
    hand.keep(*keras.models.load_model("at2.keras").get_weights())


def backup(hand: Hand) -> None:
    def training(*more: Any) -> None:
        net = model()
        hand.fit(net, keras.callbacks.BackupAndRestore("backup"), *more, epochs=3)

    try:
        training(Once(_interrupted, of_epoch=True))
    except KeyboardInterrupt:
        hand.keep("interrupted")
    training()


def csv_logger(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.CSVLogger("losses.csv"))
    with open("losses.csv", newline="") as file:
        hand.keep(list(csv.reader(file)))


def tensorboard_beside(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.TensorBoard("gradient_log", histogram_freq=1, update_freq=1))


def tensorboard_profile(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.TensorBoard("board", profile_batch=(2, 3)))


def plateau(hand: Hand) -> None:
    net = model()
    hand.fit(net, keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0, min_delta=9.0), epochs=4)
    hand.keep(float(net.optimizer.learning_rate))


def terminate_on_nan(hand: Hand) -> None:
    hand.fit(model(keras.optimizers.SGD(1e30)), keras.callbacks.TerminateOnNaN(), epochs=4)


def scheduler(hand: Hand) -> None:
    hand.fit(model(), keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5), epochs=3)


def lambdas(hand: Hand) -> None:
    seen: list[Any] = []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append((epoch, logs["loss"])),
        on_train_begin=lambda logs: seen.append("begin"),
        on_train_end=lambda logs: seen.append("end"),
    )
    hand.fit(model(), callback)
    hand.keep(seen)


def swapped_averages(hand: Hand) -> None:
    hand.fit(model(keras.optimizers.Adam(use_ema=True, ema_momentum=0.5)), keras.callbacks.SwapEMAWeights())


def progress_bar(hand: Hand) -> None:
    x, y = data()
    net = model()
    net.fit(x, y, batch_size=8, epochs=1, verbose=2, callbacks=hand.callbacks())
    hand.keep(*net.get_weights())


def order_of_callbacks(hand: Hand) -> None:
    calls: list[str] = []

    class Spy(keras.callbacks.Callback):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_train"):
                calls.append(name)
            return super().__getattribute__(name)

    hand.fit(model(), Spy())
    hand.keep(calls)


def validation(hand: Hand) -> None:
    hand.fit(model(metrics=["mae"]), validation_data=data(8))


def class_weights(hand: Hand) -> None:
    x, _ = data()
    net = model()
    net.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    labels = (x[:, :1] > 0).astype("float32")
    net.fit(x, labels, class_weight={0: 1.0, 1: 3.0}, epochs=2, verbose=0, callbacks=hand.callbacks())
    hand.keep(*net.get_weights())


def sample_weights(hand: Hand) -> None:
    hand.fit(model(), sample_weight=np.linspace(0.0, 1.0, 24))


def callback_list_changed(hand: Hand) -> None:
    class Adds(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.extra = functools.partial(print, epoch)

    net = model()
    hand.fit(net, Adds())
    net.extra()


HANDS = (
    *(changing(change, of_epoch=of_epoch) for change in CHANGES for of_epoch in (False, True)),
    *(between(change) for change in CHANGES[:12]),
    early_stopping,
    checkpoints,
    backup,
    csv_logger,
    tensorboard_beside,
    tensorboard_profile,
    plateau,
    terminate_on_nan,
    scheduler,
    lambdas,
    swapped_averages,
    progress_bar,
    order_of_callbacks,
    validation,
    class_weights,
    sample_weights,
    callback_list_changed,
)
