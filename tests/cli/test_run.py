"""`tb-gradflow run`, in processes of its own: the program must notice nothing, and its trainings be recorded."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tb_gradflow
from tests.serve.processes import environment

PROGRAMS = Path(__file__).parent / "programs"


def python(*arguments: str, directory: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """What Python does by itself."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment(tensorflow=True),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def run(*arguments: str, directory: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """What it does under `tb-gradflow run`."""
    return python("-m", "tb_gradflow.cli.main", "run", *arguments, directory=directory, stdin=stdin)


def program(directory: Path, code: str, name: str = "train.py") -> str:
    (directory / name).write_text(code, encoding="utf-8")
    return name


def runs_of(logdir: Path) -> list[str]:
    return sorted(each.parent.name for each in logdir.glob("*/gradflow"))


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("fit.py", ["critic", "regressor"]),
        ("batches.py", ["regressor"]),
        ("batches_2.py", ["regressor"]),
        ("compiled.py", ["dispatched", "late", "train_step", "train_step-2"]),
        ("eager.py", ["eager_20", "eager_28", "eager_38", "eager_46"]),
        ("eager_2.py", ["eager_2_17"]),
        ("eagerly.py", ["train_step"]),
        ("replicas.py", ["distributed_step"]),
    ],
)
def test_a_program_trains_the_same_to_the_bit(tmp_path: Path, name: str, runs: list[str]) -> None:
    """Its losses and weights are printed as hexadecimal numbers."""
    path = str(PROGRAMS / name)
    plain = python(path, directory=tmp_path)

    recorded = run("--logdir", "logs", "--update-freq", "2", path, directory=tmp_path)

    assert (plain.returncode, recorded.returncode) == (0, 0), plain.stderr + recorded.stderr
    assert recorded.stdout == plain.stdout != ""
    assert runs_of(tmp_path / "logs") == runs
    for each in runs:
        assert tb_gradflow.open_log(tmp_path / "logs" / each).steps[:2] in ((0, 2), (2, 4)), recorded.stderr
    assert "tensorboard --logdir logs" in recorded.stderr


AS_PYTHON_SEES_IT = """\
import os, pickle, sys
class Mine: pass
print(sys.argv, __name__, __file__, __spec__, sys.path, os.getcwd(), __package__)
print(pickle.dumps(Mine()), sys.modules["__main__"].__dict__.keys(), sys.flags)
print({name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "TB_"))})
print(sys.stdin.read(), sys.excepthook is sys.__excepthook__, "tb_gradflow.trace" in sys.modules)
sys.stdout.flush()
os.write(2, b"to the error")
"""


@pytest.mark.parametrize("status", ["", "sys.exit(7)", "sys.exit('text')", "os._exit(9)", "raise SystemExit"])
def test_a_program_sees_what_it_sees_under_python(tmp_path: Path, status: str) -> None:
    arguments = [program(tmp_path, AS_PYTHON_SEES_IT + status), "--logdir", "mine", "--", "-m", "x"]

    plain = python(*arguments, directory=tmp_path, stdin="given")
    recorded = run(*arguments, directory=tmp_path, stdin="given")

    assert recorded.stdout == plain.stdout
    assert recorded.returncode == plain.returncode
    assert recorded.stderr.startswith(plain.stderr)
    assert "nothing was recorded in train.py" in recorded.stderr


def test_a_module_is_run_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    program(tmp_path / "package", "", "__init__.py")
    program(tmp_path / "package", AS_PYTHON_SEES_IT.replace("__spec__", "__spec__.name"), "train.py")

    plain = python("-m", "package.train", "1", directory=tmp_path)
    recorded = run("-m", "package.train", "1", directory=tmp_path)

    assert recorded.stdout == plain.stdout != ""


SPAWNING = """\
import multiprocessing, os, sys
class Mine:
    def __init__(self, value): self.value = value
def work(mine):
    return type(mine).__module__, mine.value, os.environ.get("TB_GRADFLOW_RUN"), os.environ.get("PYTHONPATH")
if __name__ == "__main__":
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(work, [Mine(1), Mine(2)]))
"""


def test_other_processes_of_the_program_find_what_they_would_find(tmp_path: Path) -> None:
    arguments = [program(tmp_path, SPAWNING)]

    assert run(*arguments, directory=tmp_path).stdout == python(*arguments, directory=tmp_path).stdout != ""


def test_a_sitecustomize_of_the_users_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    program(tmp_path / "own", "import sys; sys.was_customized = True", "sitecustomize.py")
    name = program(tmp_path, "import sys, sitecustomize; print(sys.was_customized, sitecustomize.__file__)")
    env = environment(tensorflow=True)
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "own"), env["PYTHONPATH"]])

    done = subprocess.run(
        [sys.executable, "-m", "tb_gradflow.cli.main", "run", name],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == f"True {tmp_path / 'own' / 'sitecustomize.py'}\n"


CUT = """\
import sys, tensorflow as tf
threshold = tf.Variable(0.5, name="threshold")
x = tf.constant([0.1, 0.9])
"""

CUT_STEP = """\
@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(x > threshold, tf.float32) * x)
    gradient = tape.gradient(loss, threshold)
    if gradient is None:
        raise ValueError("no gradient for the threshold")
"""

CUT_LOOP = """\
def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(x > threshold, tf.float32) * x)
    tf.keras.optimizers.SGD(0.1).apply_gradients([(tape.gradient(loss, threshold), threshold)])
"""

CUT_FIT = """\
import keras
class Step(keras.layers.Layer):
    def build(self, shape): self.threshold = self.add_weight(name="threshold")
    def call(self, x): return keras.ops.cast(x > self.threshold, "float32")
def train_step():
    model = keras.Sequential([Step()])
    model.compile("sgd", "mse")
    model.fit(tf.ones([4, 2]), tf.ones([4, 2]), verbose=0)
"""


@pytest.mark.parametrize("step", [CUT_STEP, CUT_LOOP, CUT_FIT], ids=["compiled", "eager", "fit"])
def test_a_crash_ends_as_it_does_under_python_and_the_report_says_why(tmp_path: Path, step: str) -> None:
    """In a `fit` of Keras the traceback may have fewer lines of Keras's own, and the same of the user's."""
    name = program(tmp_path, CUT + step + "train_step()\n")

    plain = python(name, directory=tmp_path)
    recorded = run(name, directory=tmp_path)

    assert recorded.returncode == plain.returncode == 1
    mine, usual = traceback_of(recorded.stderr), traceback_of(plain.stderr)
    if step == CUT_FIT:
        mine, usual = without_libraries(mine), without_libraries(usual)
    assert mine == usual != ""
    assert "tb_gradflow/" not in mine
    assert "ERROR  nondiff_comparison" in recorded.stderr


def traceback_of(said: str) -> str:
    """Up to the report; without what differs from one process to another."""
    last = said.rpartition("Traceback (most recent call last):")[2].partition("\n\n")[0]
    return re.sub(r"0x[0-9a-f]+|__autograph_generated_file\w+", "", last).strip()


def without_libraries(traceback: str) -> str:
    return re.sub(r'  File "[^"]*/site-packages/.*\n    .*\n( +\^+\n)?', "", traceback)


ENDLESS = (
    CUT
    + """\
import signal, time
w = tf.Variable(1.0, name="w")
HANDLER
@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = (w - 3.0) ** 2
    w.assign_sub(0.1 * tape.gradient(loss, w))
for _ in range(20):
    train_step()
try:
    # The signal is sent as soon as this is read.
    print("trained", flush=True)
    # Python sees a signal that arrives just before a sleep after that sleep.
    for _ in range(6000):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_signal_ends_it_as_it_ends_python(tmp_path: Path, number: signal.Signals) -> None:
    """A signal that is sent to the command's process. It dies of what its program dies of, and reports before."""
    name = program(tmp_path, ENDLESS.replace("HANDLER", ""))
    process = begun(tmp_path, name)
    assert process.stdout is not None
    assert process.stdout.readline() == "trained\n"

    target = process.pid if number != signal.SIGKILL else child_of(process.pid)
    os.kill(target, number)
    out, err = process.communicate(timeout=120)

    assert out == ("interrupted\n" if number == signal.SIGINT else "")
    assert process.returncode == -number
    assert "Healthy: the gradient reaches" in err
    assert f"The program ended with signal {number.value}: this report is about the steps that it got to." in err
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)


def test_an_interruption_within_a_gradient_is_no_fault(tmp_path: Path) -> None:
    code = """\
import tensorflow as tf
w = tf.Variable([1.0, 2.0], name="w")
optimizer = tf.keras.optimizers.SGD(0.1)
calls = []
@tf.custom_gradient
def squared(x):
    def slope(upstream):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return upstream * 2 * x
    return tf.square(x), slope
for _ in range(6):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(squared(tf.identity(w)))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
"""
    done = run(program(tmp_path, code), directory=tmp_path)

    assert done.returncode in (130, -signal.SIGINT)
    assert "Please report" not in done.stderr
    assert "step 1\nHealthy: the gradient reaches" in done.stderr


def test_a_program_that_handles_a_signal_goes_on(tmp_path: Path) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(5)))"
    process = begun(tmp_path, program(tmp_path, ENDLESS.replace("HANDLER", handler)))
    assert process.stdout is not None
    assert process.stdout.readline() == "trained\n"

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)

    assert (out, process.returncode) == ("saved\n", 5)
    assert "Healthy: the gradient reaches" in err


FORKING = (
    CUT
    + """\
import os
w = tf.Variable(1.0)
@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = (w - 3.0) ** 2
    w.assign_sub(0.1 * tape.gradient(loss, w))
for _ in range(3):
    train_step()
if os.fork() == 0:
    sys.exit()
os.wait()
for _ in range(3):
    train_step()
"""
)


def test_a_process_that_the_program_forks_leaves_the_log_alone(tmp_path: Path) -> None:
    run("--logdir", "logs", "--update-freq", "1", program(tmp_path, FORKING), directory=tmp_path)

    assert runs_of(tmp_path / "logs") == ["train_step"]
    assert tb_gradflow.open_log(tmp_path / "logs" / "train_step").steps == (0, 1, 2, 3, 4, 5)


def begun(directory: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tb_gradflow.cli.main", "run", name],
        cwd=directory,
        env=environment(tensorflow=True),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores this signal, and so would what the tests start.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def child_of(pid: int) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        [found, *_] = [*Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), ""]
        if found:
            return int(found)
    raise AssertionError(f"{pid} has no child")


FITTED = """\
import keras, numpy as np, sys, tb_gradflow, tensorflow as tf
model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)], name="own")
model.compile("sgd", "mse")
x, y = np.ones((8, 2)), np.ones((8, 1))
"""

RECORDING_ITSELF = {
    "callback": 'model.fit(x, y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback("own_log")])',
    "explain": "print(tb_gradflow.explain(model, x, y).healthy)",
    "explain a function": "print(tb_gradflow.explain(lambda: model(x)[0, 0], variables=model.variables).healthy)",
    "check": "print(tb_gradflow.check_gradients(lambda v: tf.reduce_sum(v * v), [tf.constant([1.0])]))",
    "watch": """
@tb_gradflow.watch("watched_log")
def step():
    with tf.GradientTape() as tape: loss = tf.reduce_mean((model(x) - y) ** 2)
    return tape.gradient(loss, model.variables)
for _ in range(3): step()""",
    "summary": """
with tf.summary.create_file_writer("eager_log").as_default():
    for number in range(3):
        tf.summary.experimental.set_step(number)
        with tf.GradientTape() as tape: loss = tf.reduce_mean((model(x) - y) ** 2)
        tb_gradflow.summary.gradients(loss, model.variables, tape.gradient(loss, model.variables))""",
    "summary in a function": """
@tf.function
def step(number):
    with tf.GradientTape() as tape: loss = tf.reduce_mean((model(x) - y) ** 2)
    with writer.as_default(step=number):
        tb_gradflow.summary.gradients(loss, model.variables, tape.gradient(loss, model.variables))
writer = tf.summary.create_file_writer("compiled_log")
for number in range(3): step(tf.constant(number, tf.int64))""",
}


def test_a_program_that_records_itself_is_left_alone(tmp_path: Path) -> None:
    code = "\n".join(RECORDING_ITSELF.values())

    recorded = run("--logdir", "logs", program(tmp_path, FITTED + code), directory=tmp_path)

    assert recorded.returncode == 0, recorded.stderr
    assert runs_of(tmp_path / "logs") == [], recorded.stderr
    assert "nothing was recorded in train.py" in recorded.stderr


def test_what_it_does_not_record_itself_is_recorded(tmp_path: Path) -> None:
    code = RECORDING_ITSELF["callback"] + "\nother = keras.models.clone_model(model)\nother.compile('sgd', 'mse')\n"
    name = program(tmp_path, FITTED + code + "other.fit(x, y, verbose=0)")

    recorded = run("--logdir", "logs", name, directory=tmp_path)

    assert runs_of(tmp_path / "logs") == ["own"], recorded.stderr
    assert tb_gradflow.open_log(tmp_path / "own_log").steps == (0,)


def test_a_finding_decides_the_status_where_that_is_wanted(tmp_path: Path) -> None:
    name = program(tmp_path, CUT + CUT_STEP.replace("raise ValueError", "print") + "train_step()\n")

    assert run("--logdir", "a", "--fail-on", "error", name, directory=tmp_path).returncode == 1
    again = run("--logdir", "a", name, directory=tmp_path)

    assert again.returncode == 0
    assert "train_step-2, step 0" in again.stderr, "a run of the same name has a directory of its own"
    assert runs_of(tmp_path / "a") == ["train_step", "train_step-2"]


@pytest.mark.parametrize(
    "options",
    [
        ["--update-freq", "0"],
        ["--update-freq", "often"],
        ["--overhead", "2"],
        ["--tensors", "some"],
        ["--fail-on", "info"],
        ["--logdir", "/proc/nowhere"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_options_are_said_before_the_program_starts(tmp_path: Path, options: list[str]) -> None:
    script = [program(tmp_path, "print('started')")] if options else []
    recorded = run(*options, *script, directory=tmp_path)

    assert recorded.returncode == 2
    assert recorded.stdout == ""
    assert recorded.stderr != ""


@pytest.mark.parametrize(("code", "is_told"), [("print(1)", True), ("print('has its own logdir')", False)])
def test_options_behind_a_program_that_does_not_know_them_are_told(tmp_path: Path, code: str, is_told: bool) -> None:
    recorded = run(program(tmp_path, code), "--logdir=a", "--epochs", "3", directory=tmp_path)

    assert ("--logdir: passed to train.py" in recorded.stderr) == is_told
    assert "--epochs" not in recorded.stderr


def test_options_reach_the_recorder(tmp_path: Path) -> None:
    name = program(tmp_path, FITTED + "model.fit(x, y, batch_size=1, verbose=0)")

    run("--logdir", "a", "--update-freq", "3", "--no-source", "--expected", "own/*", name, directory=tmp_path)

    log = tb_gradflow.open_log(tmp_path / "a" / "own")
    assert log.steps == (0, 3, 6)


def test_a_program_without_tensorflow_loads_no_recorder(tmp_path: Path) -> None:
    name = program(tmp_path, "import sys; print(sorted(each for each in sys.modules if 'gradflow' in each))")

    recorded = run(name, directory=tmp_path)

    assert recorded.stdout == (
        "['tb_gradflow', 'tb_gradflow.on_import', 'tb_gradflow.recorded', 'tb_gradflow.startup', "
        "'tb_gradflow.tracebacks']\n"
    )


def test_what_goes_wrong_in_loops_as_people_type_them_is_told_in_their_words(tmp_path: Path) -> None:
    run("--logdir", "logs", str(PROGRAMS / "as_typed.py"), directory=tmp_path)

    told = {}
    for name in runs_of(tmp_path / "logs"):
        log = tb_gradflow.open_log(tmp_path / "logs" / name)
        worst = log.report(step=min(log.steps) if log.steps else None).findings[0]
        told[worst.cause] = f"{worst.severity}: {worst.message}"
    assert told["untracked_variable"].startswith("warning: `biases['out']` is used in the loss")
    assert "`weights['out']`, the kernel of the same layer" in told["untracked_variable"]
    assert told["zero_init_product"].startswith("error: `weights['h1']` and `biases['b1']` get")
    assert "`tf.math.log` (as_typed.py:53) is given a negative value" in told["log_zero"]
    assert "leaves TensorFlow at `.predict()` (as_typed.py:62)" in told["python_escape"]


LEGACY = """\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

def train(keras):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.ones((8, 2)), tf.ones((8, 1)), verbose=0)

train(tf.keras)
import keras
train(keras)
"""


def test_keras_2_behind_tf_keras_is_recorded_and_keras_3_after_it(tmp_path: Path) -> None:
    """TensorFlow loads `tf_keras` when someone reads `tf.keras`, and the recorder is the first to do so."""
    recorded = run("--logdir", "logs", program(tmp_path, LEGACY), directory=tmp_path)

    assert recorded.returncode == 0, recorded.stderr
    assert "Please report this" not in recorded.stderr
    assert len(runs_of(tmp_path / "logs")) == 2


SEEDED_FIRST = """\
import os
import random
os.environ["TF_USE_LEGACY_KERAS"] = "1"
random.seed(0)
import tensorflow as tf

layer = tf.keras.layers.Dense(1)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(layer(tf.ones((8, 2))))
tape.gradient(loss, layer.trainable_variables)
print(random.random().hex(), [each.hex() for each in layer.kernel.numpy().ravel().tolist()])
"""


def test_python_draws_the_same_numbers_for_a_program_that_seeds_it_first(tmp_path: Path) -> None:
    """Keras 3, which the recorder needs and such a program does not load, draws a number where it is imported."""
    path = program(tmp_path, SEEDED_FIRST)

    recorded = run("--logdir", "logs", path, directory=tmp_path)

    assert recorded.stdout == python(path, directory=tmp_path).stdout != ""
    assert len(runs_of(tmp_path / "logs")) == 1


QUANTISED = """\
import atexit
import keras
import numpy as np
import tensorflow as tf
traced = []
class Quantised(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(name="scale", initializer="ones")
    def call(self, x):
        print("traced", traced.append(1))
        tf.print("ran")
        y = x * self.scale
        return tf.round(y)

def main():
    keras.utils.set_random_seed(0)
    atexit.register(lambda: print("traced", len(traced)))
    x = np.random.rand(64, 4).astype("f4") * 4
    model = keras.Sequential([keras.Input((4,)), Quantised(), keras.layers.Dense(1)], name="own")
    model.compile("adam", "mse")
    model.fit(x, x.sum(axis=1), batch_size=32, epochs=2, verbose=0)
    print([each.numpy().tobytes().hex() for each in model.weights])
    atexit.register(lambda: print("over", [each.numpy().tobytes().hex() for each in model.weights]))

main()
"""


def test_fixes_are_tried_when_the_program_has_ended(tmp_path: Path) -> None:
    name = program(tmp_path, QUANTISED)
    plain = python(name, directory=tmp_path)

    recorded = run("--logdir", "logs", "--try-fixes", name, directory=tmp_path)

    assert recorded.stdout == plain.stdout
    assert recorded.stderr.splitlines().count("ran") == plain.stderr.splitlines().count("ran") == 4
    text = " ".join(recorded.stderr.split())
    assert "Tried on the batch of step 0: `own/quantised/scale` now gets a gradient" in text
    assert "Trained for 20 steps with it" in text
    [finding] = tb_gradflow.open_log(tmp_path / "logs" / "own").report().to_dict()["findings"]
    assert finding["tried"]["works"]
    assert finding["tried"]["trained"]["steps"] == 20


def test_a_command_is_given_each_finding_while_the_program_trains(tmp_path: Path) -> None:
    name = program(tmp_path, QUANTISED)

    recorded = run("--logdir", "logs", "--on-finding", "cat >> told.txt; echo told", name, directory=tmp_path)

    [told] = (tmp_path / "told.txt").read_text(encoding="utf-8").splitlines()
    finding = json.loads(told)
    assert (finding["cause"], finding["source"]["line"]) == ("nondiff_rounding", 13)
    assert "told" not in recorded.stdout
    assert "told" in recorded.stderr


CHILDREN = """
import os
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""


def test_the_command_is_no_child_of_the_program(tmp_path: Path) -> None:
    """It may wait for its children, and be told of those that it forgets."""
    name = program(tmp_path, QUANTISED + CHILDREN)

    recorded = run("--logdir", "logs", "--on-finding", "cat > told.txt; sleep 60 >&- 2>&-", name, directory=tmp_path)

    assert (tmp_path / "told.txt").exists()
    assert "no child" in recorded.stdout


def test_without_standard_output_the_status_and_the_fixes_are_the_same(tmp_path: Path) -> None:
    name = program(tmp_path, QUANTISED + "\nraise SystemExit(3)\n")
    command = [sys.executable, "-m", "tb_gradflow.cli.main", "run", "--logdir", "logs", "--try-fixes", name]

    status = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        cwd=tmp_path,
        env=environment(tensorflow=True),
        check=False,
        timeout=600,
    ).returncode

    assert status == 3
    [finding] = tb_gradflow.open_log(tmp_path / "logs" / "own").report().findings
    assert finding.tried is not None
    assert finding.tried.works
