"""Some steps of training from a step that was traced: on copies of the variables, each from the same batch and with the
same values of what is not trained.

Nothing of the program changes, and none of its Python runs. What the step took from outside, such as a batch of an
iterator, it is given again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.additions import Additions, unobserved
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.copies import copied, value_of, variables_given
from tb_gradflow.trace.engine.definitions import Definition
from tb_gradflow.trace.engine.draws import Draws, is_random, is_shareable
from tb_gradflow.trace.engine.effects import Effects, Giving
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.engine.siblings import Added, Sibling
from tb_gradflow.trace.experiments.loss_alone import Loss, gradients_of, left_in
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables

RATE = 0.01
"""If the step has no optimizer: the learning rate of Adam for a variable, in parts of the root mean square of its
elements."""

_LEAST_RATE = 1e-3
"""At least this, the default rate of Keras: a variable may be zero."""

_BETAS = (0.9, 0.999)
_EPSILON = 1e-7


@dataclass(frozen=True, slots=True)
class Course:
    """What some steps of training did.

    Attributes:
        losses: By target: that of each step, and the one after the last step, computed like the first: with the same
            random numbers, counters, and variables that are not trained.
        moved: By the name of a variable: the largest change of an element, in parts of the largest element.
        gradients: By the name of a variable: the largest element of its gradient in each step.
        values: By the name of a variable: its value after the last step.
        varies: Whether the losses depend on random numbers that cannot be drawn again.
    """

    losses: Mapping[int, Sequence[float]]
    moved: Mapping[str, float]
    gradients: Mapping[str, Sequence[float]]
    values: Mapping[str, Any]
    varies: bool


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A step that can be trained.

    Attributes:
        function: The `ConcreteFunction` of the step.
        args: Its arguments, with the handles of the variables.
        effects: Its effects.
        kept: What these resulted in.
        trace: Its structure.
        variables: Those of the trace.
        calls: The gradients that it takes.
        losses: Those of its losses that are known, by target.
        descended: The arguments that are trained here, because the step has no optimizer: it returns their gradients,
            in this order, after the loss. `None` for what is no argument of the step.
        inputs: The tensors of the batch that the model is given; none if they are not known.
        labels: Those that its predictions are compared with; none likewise.
    """

    function: Any
    args: Sequence[Any]
    effects: Effects
    kept: Mapping[Any, Any]
    trace: Trace
    variables: Variables
    calls: Sequence[Call]
    losses: Mapping[int, Loss]
    descended: Sequence[int | None] | None = None
    inputs: Sequence[Any] = ()
    labels: Sequence[Any] = ()

    def course(self, steps: int, seconds: float) -> Course:
        """Trains that many steps.

        Raises:
            NotRepeatable: it cannot be trained, or only in more time.
        """
        with self._opened() as run:
            return run.course(steps, seconds)

    def descents(self, steps: int, rates: Sequence[float | None], until: float) -> Iterator[list[float]]:
        """For each rate, from the same weights: the loss of its only target in that many steps, each with the random
        numbers of the first one, and after the last. With Adam at this rate, or else with its own optimizer.

        Raises:
            NotRepeatable: it cannot be trained, or not until this time on the monotonic clock.
        """
        with self._opened(descends=True) as run:
            for rate in rates:
                yield run.descent(steps, rate, until - time.monotonic())

    def with_batch(self, change: Callable[[Any], Any]) -> Training:
        """The same with other tensors in place of those that it was given or drew; it keeps what it captures."""
        graph = self.function.graph
        own = len(graph.inputs) - len(list(graph.captures))
        args = [change(each) if number < own else each for number, each in enumerate(self.args)]
        return replace(self, args=args, kept={output: change(value) for output, value in self.kept.items()})

    def losses_with(self, values: Mapping[str, Any]) -> dict[int, float]:
        """The losses of the step, by target, if variables have other values, by name.

        Raises:
            NotRepeatable: they cannot be computed again.
        """
        with self._opened() as run:
            return run.losses_with(values)

    @contextlib.contextmanager
    def _opened(self, *, descends: bool = False) -> Iterator[_Run]:
        step = self.function._inference_function
        given = self.effects.given(self.kept, all_run=True, redraws=True)
        _check(step, given)
        values = {number: value_of(self.args[number], dtype) for number, dtype in variables_given(step).items()}
        # Whatever the user's tapes and callbacks see is part of the program.
        with unobserved(), record.stop_recording(), copied(step, self.args, values) as copies:
            yield _Run(self, given, copies, values, descends=descends)

    def shapes(self) -> dict[int, list[str]]:
        """Those of what is differentiated, by target."""
        return {target: [str(each.shape) for each in loss.tensors] for target, loss in self.losses.items()}

    def name_of(self, variable: int) -> str:
        """Of a variable, by its number."""
        return self.trace.variables[variable].name

    def trained(self) -> dict[str, int]:
        """The variables and tensors that may be trained, by name: the numbers of their arguments."""
        return {name: number for name, number, is_trained in self._numbers() if is_trained}

    def state(self) -> list[int]:
        """The numbers of the arguments that are other variables of the step, but not those of an optimizer."""
        if self.descended is not None:
            trained = self.trained().values()
            return [number for number in variables_given(self.function._inference_function) if number not in trained]
        return [number for _, number, is_trained in self._numbers() if not is_trained]

    def _numbers(self) -> Iterator[tuple[str, int, bool]]:
        by_id = {id(each): number for number, each in enumerate(self.args)}
        differentiated = {variable for call in self.calls for variable in call.variables}
        for place, each in enumerate(self.trace.variables):
            variable = self.variables[place].variable
            number = by_id.get(id(getattr(variable, "handle", None)))
            if number is not None:
                is_meant = each.trainable or place in differentiated
                yield each.name, number, is_meant and variable.dtype.is_floating


def _check(step: Any, given: Giving) -> None:
    for place in places(step):
        definition = Definition(place.definition)
        held = sorted(set(given.held(place, definition)))
        if held:
            raise NotRepeatable(f"it contains {', '.join(held)}, whose results change as it trains")
        unclear = sorted(set(given.unclear(place, definition)))
        if unclear:
            raise NotRepeatable(f"it contains {', '.join(unclear)} in a loop, or compiled by XLA")
        lacking = sorted(set(given.lacking(place.path, definition)))
        if lacking:
            raise NotRepeatable(f"it contains {', '.join(lacking)} in a branch that it did not take")


class _Run:
    """One training. See `Training.course`. If it `descends`, its gradients are kept."""

    def __init__(
        self,
        training: Training,
        given: Giving,
        copies: Mapping[int, Cell],
        values: Mapping[int, Any],
        *,
        descends: bool = False,
    ) -> None:
        step = training.function._inference_function
        self._training = training
        self._copies = {number: copies[id(training.args[number])] for number in values}
        self._values = values
        self._args = [copies[id(each)].opened() if id(each) in copies else each for each in training.args]
        self._first_args = list(self._args)
        self._trained = training.trained()
        # Such as a moving average: it would grow used to the one batch.
        self._state = training.state()
        self._draws = Draws(step)
        self._losses: dict[int, Cell] = {}
        self._gradients: list[tuple[str, Cell]] = []
        self._gradients_whole: dict[int, Cell] = {}
        graphs = [place.graph for place in places(step)]
        added = [left_in(self._losses, target, loss, f"loss_{target}") for target, loss in training.losses.items()]
        for target, call in enumerate(training.calls):
            for number, gradient in call.given.items():
                if gradient.dtype.is_floating and any(gradient.graph is graph for graph in graphs):
                    added.append(self._gradient_left(f"{target}_{number}", training.name_of(number), gradient))
        if descends:
            names = {each.name: number for number, each in enumerate(training.trace.variables)}
            known = gradients_of(training.calls, training.trace, {id(graph) for graph in graphs})
            for name, number in self._trained.items():
                if (gradient := known.get((0, names[name]))) is not None:
                    added.append(left_in(self._gradients_whole, number, gradient, f"whole_gradient_{number}"))
        self._sibling = Sibling(step, [self._draws, given, Added(added)], optimized=False)
        nodes = [node for place in places(step) for node in place.definition.node_def]
        self._varies = any(is_random(node) and not is_shareable(node) for node in nodes)
        self._descent = [_Adam() if number is not None else None for number in training.descended or ()]

    def course(self, steps: int, seconds: float) -> Course:
        """See `Training.course`."""
        losses: list[dict[int, float]] = []
        gradients: dict[str, list[float]] = {}
        before = {name: self._now(number) for name, number in self._trained.items()}
        for _ in _in_time(steps, seconds):
            losses.append(self._step(gradients))
        values = {name: self._now(number) for name, number in self._trained.items()}
        moved = {name: _moved(before[name], after) for name, after in values.items()}
        last = self._loss_as_at_first()
        curves = {
            target: [*(each.get(target, np.nan) for each in losses), last.get(target, np.nan)] for target in losses[0]
        }
        return Course(curves, moved, gradients, values, self._varies)

    def descent(self, steps: int, rate: float | None, seconds: float) -> list[float]:
        """One of `Training.descents`."""
        trained = {} if rate is None else {number: _Adam(rate) for number in self._gradients_whole}
        if rate is not None and not trained:
            raise NotRepeatable("its gradients are not known")
        losses: list[float] = []
        self._args = list(self._first_args)
        self._restore(list(self._values))
        for _ in _in_time(steps + 1, seconds):
            before = {number: self._now(number) for number in trained}
            self._draws.rewind()
            losses.append(self._step({}).get(0, np.nan))
            for number, cell in self._gradients_whole.items():
                gradient = cell.take()
                if number in trained and gradient is not None:
                    self._put(number, trained[number].after(before[number], gradient.numpy()))
        return losses

    def losses_with(self, values: Mapping[str, Any]) -> dict[int, float]:
        """See `Training.losses_with`."""
        for name, number in self._trained.items():
            if name in values:
                self._put(number, values[name])
        self._run()
        return self._losses_taken()

    def _step(self, gradients: dict[str, list[float]]) -> dict[int, float]:
        self._restore(self._state)
        results = self._run()
        for name, cell in self._gradients:
            largest = cell.take()
            if largest is not None:
                gradients.setdefault(name, []).append(float(largest.numpy()))
        for number, gradient, descent in zip(
            self._training.descended or (), results[1] if self._descent else (), self._descent, strict=True
        ):
            if number is not None and descent is not None and gradient is not None:
                self._put(number, descent.after(self._now(number), tf.convert_to_tensor(gradient).numpy()))
        return self._losses_taken()

    def _run(self) -> Any:
        with tf.init_scope():
            return self._sibling(self._args)

    def _losses_taken(self) -> dict[int, float]:
        taken = {target: cell.take() for target, cell in self._losses.items()}
        return {target: float(value.numpy()) for target, value in taken.items() if value is not None}

    def _loss_as_at_first(self) -> dict[int, float]:
        """The loss of the next step, with the random numbers and counters of the first one."""
        self._draws.rewind()
        counters = [number for number, value in self._values.items() if value is not None and value.dtype.is_integer]
        self._restore([*self._state, *counters])
        self._run()
        return self._losses_taken()

    def _restore(self, numbers: Sequence[int]) -> None:
        """Copies of variables get the values that they had before the training."""
        for number in numbers:
            if self._values.get(number) is not None:
                self._copies[number].write(self._values[number])

    def _now(self, number: int) -> Any:
        """The value of an argument that is trained."""
        copy = self._copies.get(number)
        return (self._args[number] if copy is None else copy.written()).numpy()

    def _put(self, number: int, value: Any) -> None:
        tensor = tf.convert_to_tensor(value)
        if number in self._copies:
            self._copies[number].write(tensor)
        else:
            self._args[number] = tensor

    def _gradient_left(self, part: str, name: str, gradient: Any) -> Additions:
        additions = Additions(gradient.graph, f"gradient_{part}")
        with additions.opened():
            largest = tf.reduce_max(tf.abs(tf.cast(gradient, tf.float32)))
            self._gradients.append((name, additions.leave(largest)))
        return additions


def _in_time(steps: int, seconds: float) -> Iterator[int]:
    """Numbers the steps. Raises NotRepeatable if they would take longer."""
    began = 0.0
    for number in range(steps):
        yield number
        if number == 0:  # which TensorFlow has to prepare
            began = time.monotonic()
        elif (time.monotonic() - began) / number * (steps - 1) > seconds:
            raise NotRepeatable(f"{steps} steps of it would take too long")


class _Adam:
    """Adam for one variable. An optimizer of Keras's would change the names that the program's later ones get. Without
    a rate, see `RATE`."""

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._steps = 0
        self._mean: Any = 0.0
        self._square: Any = 0.0

    def after(self, value: Any, gradient: Any) -> Any:
        """The value after a step."""
        self._steps += 1
        if self._rate is None:
            self._rate = max(_LEAST_RATE, RATE * float(np.sqrt(np.mean(np.square(value.astype(np.float64))))))
        first, second = _BETAS
        gradient = gradient.astype(np.float64)
        self._mean = first * self._mean + (1 - first) * gradient
        self._square = second * self._square + (1 - second) * np.square(gradient)
        mean, square = self._mean / (1 - first**self._steps), self._square / (1 - second**self._steps)
        return (value - self._rate * mean / (np.sqrt(square) + _EPSILON)).astype(value.dtype)


def _moved(before: Any, after: Any) -> float:
    change = float(np.max(np.abs(after.astype(np.float64) - before), initial=0.0))
    size = float(np.max(np.abs(before.astype(np.float64)), initial=0.0))
    return change / size if size else change
