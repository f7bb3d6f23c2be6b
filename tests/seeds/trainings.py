"""The seeds' training loops, typed in as they stand, recorded by `watch` or beside summaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

import tb_gradflow
from tests.seeds.checks import FDM, FEA, LF, fem
from tests.seeds.programs import GETS


@dataclass(frozen=True)
class TrainingProgram:
    """A training loop of a question, and what is true of its last step.

    Attributes:
        name: The question's number and what the program is.
        train: Trains with a log in a directory, and says in words what TensorFlow itself did.
        statuses: Of what gradients were requested for.
        causes: Of the findings above information; none for what is right.
        says: What is said, among other things.
        is_silent: Whether nothing is found at all.
    """

    name: str
    train: Callable[[Path], str]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()
    says: str = ""
    is_silent: bool = False


batch_of_data = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
batch_of_labels = np.random.default_rng(1).normal(size=8).astype("float32")


def masked_training(make: Callable[[], Any], forget: Callable[[Any, Any], None] | None = None) -> Callable[[Path], str]:
    """Two iterations, in each of which half of `W` is held still by a mask."""

    def train(log: Path) -> str:
        W = tf.Variable(np.zeros(4), dtype=tf.float32, name="W")
        opt = make()

        @tb_gradflow.watch(str(log), update_freq=1)
        def iteration(MW: Any, x: Any, y_: Any) -> None:
            with tf.GradientTape() as tape:
                masked_W = MW * W + tf.stop_gradient(tf.abs(1 - MW) * W)
                loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, masked_W) - y_))
            grads = tape.gradient(loss, [W])
            opt.apply_gradients(zip(grads, [W], strict=True))

        # first iteration:
        iteration(tf.constant([0.0, 1.0, 1.0, 0.0]), batch_of_data, batch_of_labels)
        before = W.numpy()
        if forget is not None:
            forget(opt, W)
        # second iteration
        iteration(tf.constant([1.0, 0.0, 0.0, 1.0]), batch_of_data, batch_of_labels)
        iteration.flush()
        moved = np.flatnonzero(W.numpy() != before)
        return "moves " + ", ".join(f"`W[{each}]`" for each in moved)

    return train


def training_with_mask_variable(make: Callable[[], Any], *, puts_back: bool = False) -> Callable[[Path], str]:
    """The same where the mask is a variable of the program's, as the value of a placeholder becomes in TensorFlow 2;
    and with the lines of the report on it."""

    def train(log: Path) -> str:
        W = tf.Variable(np.zeros(4), dtype=tf.float32, name="W")
        MW = tf.Variable([0.0, 1.0, 1.0, 0.0], trainable=False, name="MW")
        opt = make()

        @tb_gradflow.watch(str(log), update_freq=1)
        def iteration(x: Any, y_: Any) -> None:
            with tf.GradientTape() as tape:
                masked_W = MW * W + tf.stop_gradient(tf.abs(1 - MW) * W)
                loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, masked_W) - y_))
            grads = tape.gradient(loss, [W])
            if puts_back:
                before = tf.identity(W)
                opt.apply_gradients(zip(grads, [W], strict=True))
                W.assign(tf.where(MW != 0, W, before))
            else:
                opt.apply_gradients(zip(grads, [W], strict=True))

        # first iteration:
        iteration(batch_of_data, batch_of_labels)
        before = W.numpy()
        # second iteration
        MW.assign([1.0, 0.0, 0.0, 1.0])
        iteration(batch_of_data, batch_of_labels)
        iteration.flush()
        moved = np.flatnonzero(W.numpy() != before)
        return "moves " + ", ".join(f"`W[{each}]`" for each in moved)

    return train


def forget_by_slot(opt: Any, W: Any) -> None:
    # momentums of W in the first iteration
    masked_m_vals = opt.get_slot(W, "m").numpy()
    masked_v_vals = opt.get_slot(W, "v").numpy()

    # mask them before running the second iteration
    masked_m_vals[[1, 2]] = 0
    masked_v_vals[[1, 2]] = 0
    opt.get_slot(W, "m").assign(masked_m_vals)
    opt.get_slot(W, "v").assign(masked_v_vals)


def forget_as_advised(optimizer: Any, W: Any) -> None:
    """The lines of the report on the program without them."""
    MW = tf.constant([1.0, 0.0, 0.0, 1.0])
    for slot in optimizer.variables:
        if slot.shape == W.shape:
            slot.assign(slot * MW)


def subsets(log: Path) -> str:
    """`W` in two parts, of which each iteration is given one to update."""
    first, second = (tf.Variable(np.zeros(2), dtype=tf.float32, name=name) for name in ("W_1_2", "W_0_3"))
    opt = tf.keras.optimizers.Adam(1e-5)
    opt.build([first, second])

    @tb_gradflow.watch(str(log), update_freq=1)
    def iteration(x: Any, y_: Any, updates_first: bool) -> None:
        with tf.GradientTape() as tape:
            W = tf.stack([second[0], first[0], first[1], second[1]])
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, W) - y_))
        grads_vars = list(zip(tape.gradient(loss, [first, second]), [first, second], strict=True))
        opt.apply_gradients(grads_vars[:1] if updates_first else grads_vars[1:])

    iteration(batch_of_data, batch_of_labels, True)
    before = first.numpy()
    iteration(batch_of_data, batch_of_labels, False)
    iteration.flush()
    return f"moves `{second.name[:-2]}`" if np.array_equal(before, first.numpy()) else "moves both"


def some_function(a: Any) -> Any:
    return tf.reduce_sum(a**3)


def hessian_norm(gradient: Callable[[Any, Any], Any]) -> Callable[[Path], str]:
    def train(log: Path) -> str:
        a = tf.Variable([1.0, 2.0], name="a")

        @tb_gradflow.watch(str(log), update_freq=1)
        def estimate(delta: Any) -> Any:
            found = gradient(a, delta), gradient(a, -delta)
            if found[0] is None:
                return 0.0
            return tf.norm((found[0] - found[1]) / (2 * delta))

        found = [float(estimate(tf.random.stateless_normal([2], [0, seed]))) for seed in range(3)]
        estimate.flush()
        return f"a norm of {np.mean(found):.3g}" if any(found) else "`None`"

    return train


def at_another_tensor(a: Any, delta: Any) -> Any:
    with tf.GradientTape() as t:
        b = some_function(a)
    return t.gradient(b, a + delta)


def at_a_copy(a: Any, delta: Any) -> Any:
    with tf.GradientTape() as t:
        b2 = some_function(a + delta)
    return t.gradient(b2, a + delta)


def at_the_tensor(a: Any, delta: Any) -> Any:
    with tf.GradientTape() as t:
        moved = a + delta
        b2 = some_function(moved)
    return t.gradient(b2, moved)


def through_the_variable(a: Any, delta: Any) -> Any:
    with tf.GradientTape() as t:
        b2 = some_function(a + delta)
    return t.gradient(b2, a)


def GD(thetas: list[float], alpha: float, *, only_first: bool) -> Callable[[Path], str]:
    """As in the question, and what it prints goes to a summary."""

    def train(log: Path) -> str:
        tol = 0.000001
        Nmax = 1000
        current = list(thetas)
        variable = tf.Variable(current, dtype=tf.float64, name="thetas")
        writer = tf.summary.create_file_writer(str(log))
        for n in range(Nmax):
            gradient = FDM(current, LF)
            if only_first:
                gradient = [gradient[0], 0.0, 0.0, 0.0, 0.0]
            thetas_new = []
            for gradient_item, theta_item in zip(gradient, current, strict=True):
                t_new = theta_item - (alpha * gradient_item)
                thetas_new.append(t_new)
            with writer.as_default(step=n):
                tb_gradflow.summary.gradients(tf.constant(LF(current)), [variable], [tf.constant(gradient)], name="LF")
            variable.assign(thetas_new)
            if tol >= abs(LF(thetas_new) - LF(current)) or not np.isfinite(LF(thetas_new)):
                writer.close()
                return f"ends after {n + 1} steps, with an output of {FEA(thetas_new, fem):.3g}"
            current = thetas_new
        writer.close()
        return f"reached max iterations, Nmax = {Nmax}"

    return train


TRAININGS = (
    TrainingProgram(
        "1 masked weight and Adam",
        masked_training(lambda: tf.keras.optimizers.Adam(1e-5)),
        (GETS,),
        says="Adam remembers gradients of earlier steps",
    ),
    TrainingProgram(
        "1 masked weight and SGD", masked_training(lambda: tf.keras.optimizers.SGD(1e-5)), (GETS,), is_silent=True
    ),
    TrainingProgram(
        "1 masked weight and Adam, slots masked",
        masked_training(lambda: tf.keras.optimizers.Adam(1e-5), forget_as_advised),
        (GETS,),
        is_silent=True,
    ),
    TrainingProgram(
        "1 masked weight and Adam of Keras 2",
        masked_training(lambda: tf_keras.optimizers.legacy.Adam(1e-5)),
        (GETS,),
        says="Adam remembers gradients of earlier steps",
    ),
    TrainingProgram(
        "1 masked weight and Adam of Keras 2, get_slot",
        masked_training(lambda: tf_keras.optimizers.legacy.Adam(1e-5), forget_by_slot),
        (GETS,),
        is_silent=True,
    ),
    TrainingProgram(
        "1 masked weight and Adam, mask in a variable",
        training_with_mask_variable(lambda: tf.keras.optimizers.Adam(1e-5)),
        (GETS,),
        says="Adam remembers gradients of earlier steps",
    ),
    TrainingProgram(
        "1 masked weight and Adam, mask in a variable, values put back",
        training_with_mask_variable(lambda: tf.keras.optimizers.Adam(1e-5), puts_back=True),
        (GETS,),
        is_silent=True,
    ),
    TrainingProgram("1 apply_gradients on subsets", subsets, (GETS, GETS)),
    TrainingProgram(
        "1 hessian norm, gradient(b, a + delta)", hessian_norm(at_another_tensor), ("unused",) * 2, ("output_not_used",)
    ),
    TrainingProgram(
        "1 hessian norm, gradient(b2, a + delta)", hessian_norm(at_a_copy), ("unused",) * 2, ("output_not_used",)
    ),
    TrainingProgram("1 hessian norm, gradient(b2, moved)", hessian_norm(at_the_tensor), (GETS, GETS)),
    TrainingProgram("1 hessian norm, gradient(b2, a)", hessian_norm(through_the_variable), (GETS,)),
    TrainingProgram(
        "2 gradient descent with summaries", GD([1000.0, 1.0, 1.0, 1.0, 1.0], 10000000, only_first=True), (GETS,)
    ),
    TrainingProgram(
        "2 gradient descent with summaries, all thetas",
        GD([1000.0, 1.0, 1.0, 1.0, 1.0], 10000000, only_first=False),
        ("vanishing",),
        ("vanishing_depth",),
    ),
)
