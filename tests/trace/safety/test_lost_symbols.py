"""A private symbol that a new TensorFlow has renamed costs only those parts of the recorder that use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_gradflow.trace.tf_internals.used_symbols import MODULES, PARTS
from tests.trace.sessions.sessions import python

PROGRAM = '''
import importlib, json, sys, types, warnings
import keras, numpy as np, tensorflow as tf

def renamed(module, name):
    """For those that import the module from now on, it has another name. TensorFlow has imported it before."""
    package, _, last = module.rpartition(".")
    old, new = importlib.import_module(module), types.ModuleType(module)
    vars(new).update({key: value for key, value in vars(old).items() if key != name})
    sys.modules[module] = new
    setattr(importlib.import_module(package), last, new)

renamed(*sys.argv[1:])
import tb_gradflow
from tb_gradflow.recorded import Recorded

def model():
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made

x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")

def callback():
    model().fit(x, y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback("callback")])
    assert tb_gradflow.open_log("callback").steps == (0,)

def explain():
    assert tb_gradflow.explain(model(), x, y).healthy

def minimized():
    weight = tf.compat.v1.get_variable("w", initializer=3.0, use_resource=True)
    return weight**2, tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(weight**2)

def graph_v1():
    with tf.Graph().as_default():
        assert tb_gradflow.explain(minimized()[0]).diagnosis

def summaries():
    weight = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = weight**2
    with tf.summary.create_file_writer("summaries").as_default(step=0):
        tb_gradflow.summary.gradients(loss, [weight], [tape.gradient(loss, weight)])
    assert tb_gradflow.open_log("summaries").steps == (0,)

def program():
    recorded = Recorded(lambda: "program")
    recorded.start()
    model().fit(x, y, verbose=0)
    recorded.stop()
    assert recorded.names

def sessions():
    recorded = Recorded(lambda: "sessions", {"update_freq": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recorded.start()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        _, train = minimized()
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(train)
    recorded.stop()
    assert recorded.names, [str(each.message) for each in caught]

lost = {}
for part in (callback, explain, graph_v1, summaries, sessions, program):
    try:
        part()
    except Exception as error:
        lost[part.__name__] = f"{type(error).__name__}: {error}"
print(json.dumps(lost))
'''

LOST = {
    "explain": {"explain": "SetupError", "graph_v1": "SetupError"},
    "graph_v1": {"graph_v1": "SetupError", "sessions": "AssertionError"},
    "sessions": {"sessions": "AssertionError"},
    "summaries": {"summaries": "SetupError"},
}
"""By the part whose symbol is gone, what does not work then, and how that is told. A session trains without being
recorded: a warning tells why."""


def lost_without(directory: Path, module: str, name: str) -> dict[str, str]:
    (directory / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = python("program.py", module, name, directory=directory)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("part", LOST)
def test_a_symbol_of_one_part_costs_that_part_alone(part: str, tmp_path: Path) -> None:
    [*_, module] = PARTS[part].modules
    name = module.uses[-1]

    lost = lost_without(tmp_path, module.name, name)

    assert {each: told.partition(":")[0] for each, told in lost.items()} == LOST[part]
    for each, told in lost.items():
        assert f"lacks `{module.name}.{name}`" in told
        assert PARTS["explain" if part == "explain" else each].lost in told
        assert "Please report" not in told


def test_a_symbol_that_all_use_costs_all(tmp_path: Path) -> None:
    module = next(each for each in MODULES if each.name.endswith("transform"))

    lost = lost_without(tmp_path, module.name, module.uses[0])

    assert sorted(lost) == ["callback", "explain", "graph_v1", "program", "sessions", "summaries"]
    assert all(module.uses[0] in lost[each] for each in ("callback", "explain", "graph_v1", "summaries"))
