"""What a program sets up around its training: directories, logging, warnings, locales, limits."""

from __future__ import annotations

import gc
import locale
import logging
import os
import resource
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.hands.hand import LOG, Hand, model, squared_step


def directory_changed(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    hand.fit(net)
    hand.keep(sorted(each for each in os.listdir(".") if each != LOG))


def directory_deleted(hand: Hand) -> None:
    os.mkdir("short")
    callbacks, net = hand.callbacks(), model()
    os.chdir("short")
    os.rmdir(os.getcwd())
    net.fit(np.ones((8, 4)), np.ones((8, 1)), verbose=0, callbacks=callbacks)
    hand.keep(*net.get_weights())


def log_made_unwritable(hand: Hand) -> None:
    """By a file in the place of its directory, in the middle of the training."""

    class Replaces(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 0 and os.path.isdir(LOG):
                os.rename(LOG, "tfevents_moved")
                with open(LOG, "w"):
                    pass

    net = model()
    hand.fit(net, Replaces(), epochs=3)
    if os.path.isfile(LOG):
        os.remove(LOG)


def files_cannot_grow(hand: Hand) -> None:
    """As on a full disk."""
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    net = model()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
        hand.fit(net)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    hand.fit(net)


def few_files(hand: Hand) -> None:
    """No further file can be opened."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    net = model()
    hand.fit(net)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, before[1]))
    try:
        hand.fit(net)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def logging_configured(hand: Hand) -> None:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.name.startswith("tb_gradflow"):
                lines.append(f"{record.name} {record.levelname} {record.getMessage()}")

    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    try:
        hand.fit(model())
    finally:
        root.removeHandler(handler)
        hand.keep(root.level, len(root.handlers) >= 0)
        root.setLevel(level)
    hand.keep(lines)


def warnings_are_errors(hand: Hand) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        hand.fit(model())
        hand.keep(before == list(warnings.filters))


def warnings_of_user(hand: Hand) -> None:
    class Warns(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            warnings.warn(f"mine {epoch}", UserWarning, stacklevel=1)

    hand.fit(model(), Warns())


def other_locale(hand: Hand) -> None:
    before = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "C")
    try:
        hand.fit(model())
    finally:
        locale.setlocale(locale.LC_ALL, before)


def floating_point_errors(hand: Hand) -> None:
    with np.errstate(all="raise"):
        hand.fit(model())
        hand.keep(np.geterr())


def print_options(hand: Hand) -> None:
    before = np.get_printoptions()
    hand.fit(model())
    hand.keep(before == np.get_printoptions())


def collector_off(hand: Hand) -> None:
    gc.disable()
    try:
        hand.fit(model())
        hand.keep(gc.isenabled(), gc.get_threshold(), gc.get_debug())
    finally:
        gc.enable()


def local_variables_stay(hand: Hand) -> None:
    """The arguments of an experiment are kept as its configuration, and what is deleted is gone."""

    def training(rate: float = 0.1, epochs: int = 2) -> None:
        config = locals()
        hand.fit(model(keras.optimizers.SGD(rate)), epochs=epochs)
        step = hand.step(squared_step(tf.Variable(1.0)))
        hand.keep(step(tf.constant(1.0)), step(tf.constant(2.0)), sorted(config))

    def deleting() -> None:
        net, weight = model(), tf.Variable(1.0)
        hand.fit(net)
        step = hand.step(squared_step(weight))
        hand.keep(step(tf.constant(1.0)), step(tf.constant(2.0)))
        deleted = [weakref.ref(each) for each in (net, weight)]
        del net, weight, step
        gc.collect()
        hand.keep([each() is None for each in deleted])

    training()
    deleting()


def event_files_of_user(hand: Hand) -> None:
    """Summaries that a step writes, and those of a logger of Keras."""
    writer, weight = tf.summary.create_file_writer("mine"), tf.Variable(1.0)
    train = squared_step(weight)

    def noted(x: Any) -> Any:
        loss = train(x)
        tf.summary.scalar("loss", loss)
        return loss

    step = hand.step(noted)
    with writer.as_default(step=0):
        for number in range(5):
            tf.summary.experimental.set_step(number)
            step(tf.constant(1.0))
        hand.fit(model(), keras.callbacks.TensorBoard("board", update_freq=1))
        hand.keep(tf.summary.experimental.get_step())
    writer.close()
    for path in sorted(str(each) for name in ("mine", "board") for each in Path(name).rglob("*tfevents*")):
        for event in tf.compat.v1.train.summary_iterator(path):
            nodes = tf.compat.v1.GraphDef.FromString(event.graph_def).node
            values = [(each.tag, each.tensor.float_val, each.tensor.tensor_content) for each in event.summary.value]
            hand.keep(event.step, len(nodes), [each for each in values if "per_second" not in each[0]])


def recursion_limit(hand: Hand) -> None:
    before = sys.getrecursionlimit()
    hand.fit(model())
    hand.keep(before == sys.getrecursionlimit(), sys.getswitchinterval())


def environment_stays(hand: Hand) -> None:
    before = dict(os.environ)
    hand.fit(model())
    hand.keep(before == dict(os.environ), os.umask(os.umask(0o022)) >= 0)


def hooks_stay(hand: Hand) -> None:
    before = (sys.excepthook, sys.displayhook, sys.unraisablehook, list(sys.path), sys.getprofile())
    hand.fit(model())
    hand.keep(before == (sys.excepthook, sys.displayhook, sys.unraisablehook, list(sys.path), sys.getprofile()))


def output_replaced(hand: Hand) -> None:
    written: list[str] = []

    class Own:
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

        def flush(self) -> None: ...

    before = sys.stdout
    sys.stdout = Own()
    try:
        hand.fit(model())
        sys.stdout.write("mine")
    finally:
        sys.stdout = before
    hand.keep(written)


def no_output(hand: Hand) -> None:
    """As in a windowed program."""
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = None
    try:
        hand.fit(model())
    finally:
        sys.stdout, sys.stderr = before


def exits(hand: Hand) -> None:
    hand.fit(model())
    sys.exit(3)


def patched_fit(hand: Hand) -> None:
    """As tracking libraries do it."""
    original: Callable[..., Any] = keras.Model.fit
    calls: list[int] = []

    def fit(self: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return original(self, *arguments, **options)

    keras.Model.fit = fit
    try:
        hand.fit(model())
    finally:
        hand.keep(keras.Model.fit is fit, calls)
        keras.Model.fit = original


HANDS = (
    directory_changed,
    directory_deleted,
    log_made_unwritable,
    files_cannot_grow,
    few_files,
    logging_configured,
    warnings_are_errors,
    warnings_of_user,
    other_locale,
    floating_point_errors,
    print_options,
    collector_off,
    local_variables_stay,
    event_files_of_user,
    recursion_limit,
    environment_stays,
    hooks_stay,
    output_replaced,
    no_output,
    exits,
    patched_fit,
)
