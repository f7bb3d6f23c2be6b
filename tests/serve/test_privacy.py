"""What a log says of the machine and of the code that wrote it: no more than it was allowed to."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tb_gradflow
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.trace.source.user_line import path_in_log
from tests.serve.processes import environment

PROGRAM = """\
import sys
import keras, numpy as np, tensorflow as tf, tb_gradflow

class SecretLayer(keras.layers.Layer):
    def build(self, shape):
        self.threshold = self.add_weight(name="threshold", initializer="ones")
    def call(self, x):
        unspeakable_formula = tf.round(x * self.threshold)
        return unspeakable_formula

@tf.custom_gradient
def unspeakable_function(x):
    def gradient_of_it(upstream):
        return upstream * 3.0
    return x * 3.0, gradient_of_it

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.secret, self.out = SecretLayer(), keras.layers.Dense(1)
    def call(self, x):
        return self.out(self.secret(x)) + unspeakable_function(self.out(x))
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            unspeakable_losses = [tf.reduce_mean(tf.square(y - self(x)))]
        gradients = tape.gradient(unspeakable_losses[0], self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": unspeakable_losses[0]}

model = Model()
model.compile("sgd")
recorder = tb_gradflow.GradFlowCallback(sys.argv[1], source=sys.argv[2] == "kept")
model.fit(np.ones((4, 3), "float32"), np.ones((4, 1), "float32"), verbose=0, callbacks=[recorder])
"""


def everything_in(log: Path) -> bytes:
    """The names and bytes of all files as they lie there, and of all that is packed in them once more unpacked."""
    [directory] = find_runs(str(log)).values()
    raw = b"".join(path.name.encode() + path.read_bytes() for path in sorted(Path(directory).iterdir()))
    reader = DirectoryReader(directory)
    blobs = (reader.blob(tag) for tag in reader.tags() if tag.kind in ("session", "trace"))
    return raw + b"".join(gzip.decompress(blob) for blob in blobs)


def record(program: Path, log: Path, source: str, cwd: Path) -> bytes:
    command = [sys.executable, str(program), str(log), source]
    environ = {**environment(tensorflow=True), "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, env=environ, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return everything_in(log)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "home_of_me" / "work" / "my_program.py"
    path.parent.mkdir(parents=True)
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def test_without_source_no_name_path_or_line_of_the_program_is_in_the_log(program: Path, tmp_path: Path) -> None:
    said = record(program, tmp_path / "log", "left out", cwd=program.parent)

    for secret in (b"my_program", b"home_of_me", b"unspeakable_formula", b"losses[0]", b"upstream * 3", b".py"):
        assert secret not in said, secret
    [finding] = [each for each in tb_gradflow.open_log(tmp_path / "log").report().findings if each.severity == "error"]
    assert (finding.cause, finding.source) == ("nondiff_rounding", None)
    [name] = (path.name for path in (tmp_path / "log" / "gradflow").iterdir())
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.\d{9}\.[0-9a-f]{12}\.gradflow", name), "tells of the machine"


def test_paths_in_a_log_are_relative_to_the_working_directory(program: Path, tmp_path: Path) -> None:
    said = record(program, tmp_path / "log", "kept", cwd=program.parents[1])

    assert b'"file":"work/my_program.py"' in said
    assert str(tmp_path).encode() not in said
    assert os.path.expanduser("~").encode() + b"/" not in said


def test_a_file_elsewhere_goes_by_the_path_that_it_is_imported_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "libraries"))

    assert path_in_log(str(tmp_path / "libraries" / "mine" / "layers.py"), "/somewhere") == "mine/layers.py"
    assert path_in_log(str(tmp_path / "other" / "layers.py"), "/somewhere") == "layers.py"


@pytest.mark.parametrize("name", ["<stdin>", "<string>", "models/mine.py"])
def test_what_is_no_absolute_path_stays_as_it_is(name: str) -> None:
    assert path_in_log(name, "/somewhere") == name


@pytest.mark.parametrize("name", ["<ipython-input-3-0a1b2c3d4e5f>", "/tmp/ipython-input-3-1234567890.py"])
def test_a_cell_of_colab_is_called_as_the_notebook_counts_it(name: str) -> None:
    assert path_in_log(name, "/content") == "In[3]"


def test_a_working_directory_that_is_the_root_of_all_files_makes_no_path_relative() -> None:
    assert path_in_log("/home/me/model.py", "/") == "model.py"
