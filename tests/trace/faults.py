"""Raises at the n-th call of any function of the recorder while a small model trains, and says what that has changed.

    python -m tests.trace.faults fit                     # every function, at its first, a middle and its last call
    python -m tests.trace.faults fit --cases 30          # a sample, spread evenly over them
    python -m tests.trace.faults fit --only "experiments/|Meter._settle"
    python -m tests.trace.faults fit --small             # the smallest model that has the same functions called
    python -m tests.trace.faults fit --beyond-small      # the functions that it leaves out
    python -m tests.trace.faults fit_xla --beyond fit    # the functions that the other training leaves out
    python -m tests.trace.faults fit --skip 140          # goes on where an earlier run has stopped

The functions are found in the source: when a module of `tb_gradflow/trace` is imported here, a call of `reached` is put
at the beginning of each of its functions. Those that protect the training from all others are left out.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import hashlib
import importlib.abc
import importlib.machinery
import logging
import os
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PACKAGE = "tb_gradflow.trace"

PROTECTING = ("/protection/", "/fit/callback_base.py")
"""What keeps the faults of all others from the training, and what answers with constants: somebody has to be last."""

_REACHED = "__tb_gradflow_reached__"


class Injected(Exception):
    """What is raised."""


class TimeLimit(Exception):
    """What the program's own signal handler raises."""


class Faults:
    """Counts the calls of each function; raises in one of them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.is_armed = False
        self.where: tuple[str, int] | None = None
        self.kind: type[BaseException] = Injected
        self.has_raised = False
        self.when: Callable[[], None] = lambda: None

    def arm(self, where: tuple[str, int] | None) -> None:
        self.calls.clear()
        self.where, self.has_raised, self.is_armed = where, False, True

    def reached(self, function: str) -> None:
        if not self.is_armed:
            return
        self.calls[function] += 1
        if self.where is not None and self.where == (function, self.calls[function]):
            self.has_raised = True
            self.when()
            if self.kind is TimeLimit:
                signal.raise_signal(signal.SIGALRM)  # its handler runs in the main thread, here or as soon as it can
                return
            raise self.kind(f"injected into {function}, call {self.calls[function]}")


FAULTS = Faults()


class _Instrumented(importlib.machinery.SourceFileLoader):
    # Python calls it with an argument more than the published signature has.
    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> Any:
        tree = ast.parse(data, path)
        _Calls(Path(path).as_posix().partition("tb_gradflow/trace/")[2]).visit(tree)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> Any:  # past the cache of compiled files
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Calls(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self._names = [module]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self._inside(node)
        name = f"{self._names[0]}:{'.'.join([*self._names[1:], node.name])}"
        place = 1 if ast.get_docstring(node) is not None else 0
        where = node.body[min(place, len(node.body) - 1)]
        call = ast.Expr(ast.Call(ast.Name(_REACHED, ast.Load()), [ast.Constant(name)], []))
        node.body.insert(place, ast.copy_location(call, where))
        return node

    def _inside(self, node: Any) -> Any:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()
        return node


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not name.startswith(f"{PACKAGE}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None or any(each in spec.origin for each in PROTECTING):
            return spec
        spec.loader = _Instrumented(name, spec.origin)
        return spec


def install() -> None:
    """Before anything of the recorder is imported."""
    assert not any(name.startswith(f"{PACKAGE}.") for name in sys.modules)
    setattr(builtins, _REACHED, FAULTS.reached)
    sys.meta_path.insert(0, _Finder())


@dataclass
class Result:
    """What one training has left.

    Attributes:
        losses: Of each batch.
        weights: At the end.
        states: A digest of the weights before the first step and after each.
        error: What ended it; null if nothing did.
        restored: Whether the model's functions are its own again.
        warned: Warnings of the recorder.
        logged: The same of its logger.
        steps: What the log has.
        written: What was written when the fault was raised.
    """

    losses: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    error: BaseException | None = None
    restored: bool = True
    warned: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    steps: tuple[int, ...] = ()
    written: tuple[int, ...] = ()


Scenario = Callable[[str | None, Result, bool], None]
"""Trains, with a log in that directory or without a recorder; a model of the usual size, or a small one."""


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


def run(scenario: Scenario, log_dir: str | None, where: tuple[str, int] | None = None, small: bool = False) -> Result:
    """One training, with a fault there."""
    import keras

    import tb_gradflow
    from tb_gradflow.store.writer import LogWriter

    result = Result()
    written: list[int] = []
    original = LogWriter.write_step

    def write_step(self: Any, record: Any) -> None:
        original(self, record)
        written.append(record.step)

    def when() -> None:
        result.written = tuple(written)

    handler = _Lines(result.logged)
    logger = logging.getLogger("tb_gradflow")
    logger.addHandler(handler)
    logger.propagate = False
    # Replaced for the training alone, to know which steps were given to the writer; the class has no hook for that.
    LogWriter.write_step = write_step  # type: ignore[method-assign]
    FAULTS.when = when
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            FAULTS.where, FAULTS.is_armed = where, False
            keras.utils.clear_session(free_memory=False)
            keras.utils.set_random_seed(7)
            scenario(log_dir, result, small)
        except BaseException as error:
            result.error = error
        finally:
            FAULTS.is_armed = False
            LogWriter.write_step = original  # type: ignore[method-assign]
            logger.removeHandler(handler)
    result.warned = [str(each.message) for each in told if "tb_gradflow" in str(each.message)]
    if log_dir is not None and written:
        # After a fault, a hook may begin a second run.
        logs = [
            tb_gradflow.open_log(run) for run in sorted({each.parent for each in Path(log_dir).rglob("*tfevents*")})
        ]
        result.steps = tuple(step for log in logs for step in log.steps)
        for log in logs:
            if log.steps:
                log.report()
    return result


def differences(plain: Result, recorded: Result, result: Result, exact: bool = True) -> Iterator[str]:
    """What a fault has changed that it must not; nothing if all is well. `recorded` has none."""
    import numpy as np

    def same(one: Any, other: Any) -> bool:
        return bool(
            np.array_equal(one, other, equal_nan=True)
            if exact
            else np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
        )

    if plain.error is not None:
        yield f"cannot be trained: {plain.error!r}"
    if repr(result.error) != repr(plain.error):
        yield f"ended with {result.error!r}, not {plain.error!r}"
    if len(result.losses) != len(plain.losses) or not same(result.losses, plain.losses):
        yield f"losses {result.losses}, not {plain.losses}"
    if len(result.weights) != len(plain.weights) or not all(map(same, result.weights, plain.weights)):
        yield "weights differ"
    if not result.restored:
        yield "the model's functions are not its own"
    if lost := set(result.written) - set(result.steps):
        yield f"recorded before and lost: {sorted(lost)}"
    told = [line for line in result.warned if "injected" in line]
    logged = [line for line in result.logged if "injected" in line]
    if len(result.warned) > 1 or len(told) + len(logged) > 1:
        yield f"told more than once: {[*result.warned, *logged]}"
    if not told and not logged and result.steps != recorded.steps:
        yield f"steps {result.steps}, not {recorded.steps}, and nothing was said: {result.warned}"


def interruptions(plain: Result, result: Result, kind: type[BaseException] = KeyboardInterrupt) -> Iterator[str]:
    """What a KeyboardInterrupt, or the program's time limit, has left that it would not have left without a recorder;
    nothing if all is well. Where an op of TensorFlow's has called the recorder, TensorFlow makes an error of its own of
    it."""
    if result.error is None and not any(kind.__name__ in line for line in result.warned):
        yield "the interrupt was lost"
    if kind is TimeLimit and not isinstance(result.error, TimeLimit):
        yield f"ended with {result.error!r}, not the time limit"
    if result.states and _digest(result.weights) not in plain.states:
        yield "weights that no step has left"
    if not result.restored:
        yield "the model's functions are not its own"
    if lost := set(result.written) - set(result.steps):
        yield f"recorded before and lost: {sorted(lost)}"


def _digest(weights: Sequence[Any]) -> str:
    return hashlib.sha256(b"".join(each.tobytes() for each in weights)).hexdigest()


# Scenarios.


def _data() -> tuple[Any, Any]:
    import numpy as np

    random = np.random.default_rng(3)
    return random.normal(size=(32, 4)).astype("float32"), random.normal(size=(32, 1)).astype("float32")


def _model(small: bool, broken: bool = False, **compiled: Any) -> Any:
    """With a seed, moving averages, a weight that gets no gradient, and one whose gradient is NaN in step 5 and which
    nothing else depends on. A small one is a single layer."""
    import keras
    import tensorflow as tf

    class Rounded(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.width = self.add_weight(name="width", shape=(), initializer="ones")

        def call(self, x: Any) -> Any:
            return x * tf.round(self.width)

    class Side(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.side = self.add_weight(name="side", shape=(), initializer="ones")
            self.count = self.add_weight(name="count", shape=(), initializer="zeros", trainable=False)

        def call(self, x: Any) -> Any:
            self.count.assign_add(1.0)
            bad = tf.cast(self.count >= 6.0, tf.float32)
            self.add_loss(0.01 * tf.sqrt(tf.nn.relu(self.side * (1.0 - bad))))
            return x

    hidden = x = keras.Input((4,))
    if not small:
        hidden = keras.layers.Dense(3, "tanh")(x)
        hidden = keras.layers.Dropout(0.2)(keras.layers.BatchNormalization()(hidden))
    if broken:
        hidden = Side()(hidden)
    model = keras.Model(x, keras.layers.Dense(1, use_bias=not small)(Rounded()(hidden)), name="net")
    model.compile("sgd" if small else "adam", "mse", **compiled)
    return model


def _fit(model: Any, log_dir: str | None, result: Result, fits: int = 1, **options: Any) -> None:
    import keras

    import tb_gradflow

    class Losses(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            result.losses.append(float(logs["loss"]))
            result.states.append(_digest([weight.numpy() for weight in model.weights]))

    callbacks: list[Any] = [Losses()]
    recorder = None
    if log_dir is not None:
        recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=3, **options)
        callbacks.append(recorder)
    FAULTS.arm(FAULTS.where)
    x, y = _data()
    result.states.append(_digest([weight.numpy() for weight in model.weights]))
    try:
        for _ in range(fits):
            model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
    finally:
        FAULTS.is_armed = False
        result.weights = [weight.numpy() for weight in model.weights]
        function = model.train_function
        owner = getattr(function, "__self__", None)
        result.restored = "train_step" not in vars(model) and (owner is None or owner is not recorder)
        result.restored = result.restored and _nothing_is_patched()


def _nothing_is_patched() -> bool:
    import keras
    import tensorflow as tf

    kept = (
        tf.GradientTape.gradient,
        tf.GradientTape.jacobian,
        keras.layers.Layer._open_name_scope,
        keras.layers.Layer._assert_input_compatibility,
    )
    if any("tb_gradflow" in getattr(getattr(each, "__code__", None), "co_filename", "") for each in kept):
        return False
    return _numpy_is_its_own()


def _numpy_is_its_own() -> bool:
    import numpy as np

    return isinstance(vars(np)["sqrt"], np.ufunc)


def fit(log_dir: str | None, result: Result, small: bool) -> None:
    _fit(_model(small), log_dir, result, fits=2)


def fit_not_finite(log_dir: str | None, result: Result, small: bool) -> None:
    _fit(_model(small, broken=True), log_dir, result, terms=True)


def fit_xla(log_dir: str | None, result: Result, small: bool) -> None:
    _fit(_model(small, jit_compile=True), log_dir, result)


def fit_eagerly(log_dir: str | None, result: Result, small: bool) -> None:
    _fit(_model(small, run_eagerly=True), log_dir, result)


def fit_several_steps(log_dir: str | None, result: Result, small: bool) -> None:
    _fit(_model(small, steps_per_execution=2), log_dir, result)


@functools.cache
def _strategy() -> Any:
    """One for all trainings: TensorFlow numbers the sums of each strategy anew, and takes those of two for the same."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def fit_mirrored(log_dir: str | None, result: Result, small: bool) -> None:
    with _strategy().scope():
        model = _model(small)
    _fit(model, log_dir, result)


def _loop(log_dir: str | None, result: Result, small: bool, compiled: Callable[[Any], Any], **options: Any) -> None:
    import keras
    import tensorflow as tf

    import tb_gradflow

    hidden = [] if small else [keras.layers.Dense(3, "tanh"), keras.layers.BatchNormalization()]
    model = keras.Sequential([keras.Input((4,)), *hidden, keras.layers.Dense(1, use_bias=not small)])
    side, count = tf.Variable(1.0, name="side"), tf.Variable(0.0, trainable=False)
    width = tf.Variable(1.0, name="width")
    optimizer = keras.optimizers.SGD() if small else keras.optimizers.Adam()

    def step(x: Any, y: Any) -> Any:
        count.assign_add(1.0)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) * tf.round(width) - y))
            bad = tf.cast(count >= 6.0, tf.float32)
            both = loss + 0.01 * tf.sqrt(tf.nn.relu(side * (1.0 - bad)))
        weights = [*model.trainable_variables, side, width]
        optimizer.apply_gradients(zip(tape.gradient(both, weights), weights, strict=True))
        return loss

    trained: Any = compiled(step)
    if log_dir is not None:
        trained = tb_gradflow.watch(log_dir, update_freq=3, **options)(trained)
    x, y = _data()
    FAULTS.arm(FAULTS.where)
    try:
        for number in range(8):
            rows = slice(8 * (number % 4), 8 * (number % 4) + 8)
            result.losses.append(float(trained(tf.constant(x[rows]), tf.constant(y[rows]))))
        if log_dir is not None:
            trained.flush()
    finally:
        FAULTS.is_armed = False
        result.weights = [weight.numpy() for weight in model.weights]
        result.restored = _nothing_is_patched()


def watch(log_dir: str | None, result: Result, small: bool) -> None:
    import tensorflow as tf

    _loop(log_dir, result, small, tf.function)


def watch_xla(log_dir: str | None, result: Result, small: bool) -> None:
    import tensorflow as tf

    _loop(log_dir, result, small, lambda step: tf.function(step, jit_compile=True))


def watch_eagerly(log_dir: str | None, result: Result, small: bool) -> None:
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    try:
        _loop(log_dir, result, small, tf.function)
    finally:
        tf.config.run_functions_eagerly(False)


def summaries(log_dir: str | None, result: Result, _: bool) -> None:
    """An eager loop that tells its gradients by itself; a small one in any case."""
    import contextlib
    import importlib

    import tensorflow as tf

    import tb_gradflow
    from tb_gradflow.trace import summaries as recorded

    # A fault outside of any log ends the recording of the whole process: begin as a new one would.
    importlib.reload(recorded)
    weight = tf.Variable([1.0, 2.0], name="weight")
    writer = tf.summary.create_file_writer(log_dir) if log_dir is not None else None
    FAULTS.arm(FAULTS.where)
    try:
        for number in range(5):
            with writer.as_default(step=number) if writer is not None else contextlib.nullcontext():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.square(weight))
                gradient = tape.gradient(loss, weight)
                if writer is not None:
                    tb_gradflow.summary.gradients(loss, [weight], [gradient])
                weight.assign_sub(0.1 * gradient)
                result.losses.append(float(loss))
        if writer is not None:
            writer.flush()
    finally:
        FAULTS.is_armed = False
        result.weights = [weight.numpy()]
        result.restored = _nothing_is_patched()


def _in_program(scenario: Scenario) -> Scenario:
    """The same without a recorder of its own, as under `tb-gradflow run`."""

    def trained(log_dir: str | None, result: Result, small: bool) -> None:
        from tb_gradflow.trace.program import eager_loops, hooks
        from tb_gradflow.trace.program.recording import Recording

        eager_loops._of_thread.tapes = 0  # a fault at the end of a tape ends the recording of a whole process
        if log_dir is not None:
            hooks.start(Recording(log_dir, {"update_freq": 3}))
        try:
            scenario(None, result, small)
        finally:
            FAULTS.is_armed = False
            hooks.stop()
            result.restored = _numpy_is_its_own()  # the hooks stay, and do nothing

    return trained


def _batches(_: str | None, result: Result, small: bool) -> None:
    model = _model(small)
    x, y = _data()
    FAULTS.arm(FAULTS.where)
    for number in range(8):
        rows = slice(8 * (number % 4), 8 * (number % 4) + 8)
        result.losses.append(float(model.train_on_batch(x[rows], y[rows])))
    result.weights = [weight.numpy() for weight in model.weights]


def program_fit(log_dir: str | None, result: Result, small: bool) -> None:
    _in_program(lambda _, result, small: _fit(_model(small), None, result))(log_dir, result, small)


def program_batches(log_dir: str | None, result: Result, small: bool) -> None:
    _in_program(_batches)(log_dir, result, small)


def program_function(log_dir: str | None, result: Result, small: bool) -> None:
    _in_program(watch)(log_dir, result, small)


def program_eagerly(log_dir: str | None, result: Result, small: bool) -> None:
    _in_program(lambda _, result, small: _loop(None, result, small, lambda step: step))(log_dir, result, small)


class _Hooked:
    """What the hooks are installed on, to take them away again: they stay for as long as a program runs."""

    def __init__(self) -> None:
        import keras
        import tensorflow as tf
        from tensorflow.python.eager.polymorphic_function import polymorphic_function

        owners = (tf.GradientTape, polymorphic_function.Function, *keras.Model.__mro__[:-1])
        self._before = [(owner, dict(vars(owner))) for owner in owners]

    def take_away(self) -> None:
        from tb_gradflow.trace.program import hooks

        for owner, before in self._before:
            for name, value in before.items():
                if vars(owner)[name] is not value:
                    setattr(owner, name, value)
        hooks._hooked.difference_update(("tensorflow", "keras", "tf_keras"))


def program_start(log_dir: str | None, result: Result, _: bool) -> None:
    """Only the beginning and the end of a recording of the whole program fail, not the eager loop in it."""
    import contextlib
    import io

    import tensorflow as tf

    from tb_gradflow.recorded import Recorded

    recorded = Recorded(lambda: str(log_dir), {"update_freq": 3})
    hooked, said = _Hooked(), io.StringIO()
    try:
        FAULTS.arm(FAULTS.where)
        with contextlib.redirect_stderr(said):
            if log_dir is not None:
                recorded.start()
        FAULTS.is_armed = False
        weight = tf.Variable([1.0, 2.0], name="weight")
        while len(result.losses) < 4:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(weight))
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            result.losses.append(float(loss))
        result.weights = [weight.numpy()]
        FAULTS.is_armed = log_dir is not None
        recorded.stop()
    finally:
        FAULTS.is_armed = False
        hooked.take_away()
        result.logged += [line for line in said.getvalue().splitlines() if "injected" in line]
        result.restored = _nothing_is_patched()


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        fit,
        fit_not_finite,
        fit_xla,
        fit_eagerly,
        fit_several_steps,
        fit_mirrored,
        watch,
        watch_xla,
        watch_eagerly,
        summaries,
        program_fit,
        program_batches,
        program_function,
        program_eagerly,
        program_start,
    )
}


def places(calls: Counter[str]) -> list[tuple[str, int]]:
    """The first, a middle and the last call of each function."""
    return [(name, number) for name, count in sorted(calls.items()) for number in sorted({1, (count + 1) // 2, count})]


def sample(cases: Sequence[Any], count: int) -> list[Any]:
    """So many of them, spread evenly."""
    if count >= len(cases):
        return list(cases)
    return [cases[(2 * number + 1) * len(cases) // (2 * count)] for number in range(count)]


def sweep(
    name: str,
    count: int | None = None,
    only: str = "",
    part: tuple[int, int] = (0, 1),
    kind: type[BaseException] = Injected,
    small: bool = False,
    beyond_small: bool = False,
    beyond: str | None = None,
    skip: int = 0,
) -> tuple[int, list[str]]:
    """How many faults were tried in a scenario, and what they have changed. `beyond_small` and
    `beyond`: only in functions that a small model, or that other scenario, does not reach. `skip`: as many of the
    chosen, the first by name, are left out."""
    FAULTS.kind = kind
    if kind is TimeLimit:
        signal.signal(signal.SIGALRM, _end)
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as directory:
        reached: set[str] = set()
        if beyond_small:
            run(scenario, f"{directory}/small", small=True)
            reached = set(FAULTS.calls)
        if beyond is not None:
            run(SCENARIOS[beyond], f"{directory}/beyond", small=small)
            reached |= set(FAULTS.calls)
        plain = run(scenario, None, small=small)
        recorded = run(scenario, f"{directory}/clean", small=small)
        recorded = run(scenario, f"{directory}/again", small=small)  # some answers are kept for good
        listed = [place for place in places(FAULTS.calls) if place[0] not in reached]
        again = plain if "xla" not in name else recorded
        problems = [f"{name}: without a fault: {each}" for each in differences(again, recorded, recorded)]
        listed = [place for place in listed if re.search(only, place[0])][part[0] :: part[1]]
        chosen = listed if count is None else sample(listed, count)
        chosen = chosen[skip:]
        for number, where in enumerate(chosen):
            result = run(scenario, f"{directory}/{number}", where, small)
            if kind in (KeyboardInterrupt, TimeLimit):
                found = list(interruptions(plain, result, kind)) if FAULTS.has_raised else []
            else:
                found = list(differences(plain, recorded, result, exact="xla" not in name))
            problems += [f"{name}: {where[0]}, call {where[1]}: {each}" for each in found]
            if found:
                _say("\n".join(problems[-len(found) :]))
            if (number + 1) % 10 == 0:
                _say(f"{name}: {number + 1} of {len(chosen)} tried")
    return len(chosen), problems


def _end(number: int, interrupted: Any) -> None:
    raise TimeLimit("the program's own")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="+", choices=[*SCENARIOS, "all"])
    parser.add_argument("--cases", type=int)
    parser.add_argument("--only", default="", help="a regular expression, to be found in the function's name")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--skip", type=int, default=0, help="leave out as many faults, the first by name")
    parser.add_argument("--interrupt", action="store_true", help="as if somebody had pressed Ctrl-C there")
    parser.add_argument("--alarm", action="store_true", help="as if a time limit of the program had passed there")
    parser.add_argument("--small", action="store_true", help="train a model of one layer")
    parser.add_argument("--beyond-small", action="store_true", help="only where a small model does not come")
    parser.add_argument("--beyond", choices=SCENARIOS, help="only where that scenario does not come")
    given = parser.parse_args()
    import tensorflow as tf

    install()
    names = [*SCENARIOS] if given.scenario == ["all"] else given.scenario
    if any("mirrored" in name for name in names):
        [cpu] = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    failed = 0
    part = tuple(int(each) for each in given.part.split("/"))
    for name in names:
        kind = KeyboardInterrupt if given.interrupt else TimeLimit if given.alarm else Injected
        tried, problems = sweep(
            name,
            given.cases,
            given.only,
            (part[0], part[1]),
            kind,
            given.small,
            given.beyond_small,
            given.beyond,
            given.skip,
        )
        failed += len(problems)
        _say(f"{name}: {tried} faults, {len(problems)} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
