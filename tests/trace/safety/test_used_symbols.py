"""Every private name of TensorFlow and Keras that is used is registered, and what is installed has it."""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.tape import Tape
from tensorflow.python.framework.func_graph import FuncGraph

import tb_gradflow
from tb_gradflow.trace.tf_internals.private_symbols import SYMBOLS
from tb_gradflow.trace.tf_internals.used_symbols import MODULES, PARTS, Module, require_modules
from tests.trace.safety.private_attributes import ATTRIBUTES, Attribute

PACKAGE = Path(tb_gradflow.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}

PRIVATE = ("tensorflow.python", "tensorflow.core", "keras.src", "tf_keras.src")

# Private names of Python itself, and of IPython.
OTHERS = {
    "_SubParsersAction",
    "_args_from_interpreter_flags",
    "_current_frames",
    "_exit",
    "_fields",
    "_filename_map",
    "_getframe",
    "_initializing",
}


@dataclass(frozen=True)
class Use:
    """A place where a private attribute is used.

    Attributes:
        name: The attribute's.
        guarded: Whether the place does without it.
        path: The file.
        line: In it.
    """

    name: str
    guarded: bool
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE)}:{self.line} {self.name}"


def imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """By the name that it has here, each private module, or what is taken from one: the module and the name in it."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.startswith(PRIVATE)], "import it by `from`"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRIVATE):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = importlib.util.find_spec(full) is not None if is_package(node.module or "") else False
                found[alias.asname or alias.name] = (full, "") if is_module else (node.module or "", alias.name)
    return found


@functools.cache
def is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


Taken = set[tuple[str, str]]
"""Private modules, each with what is taken from it, and once with "" for the module itself."""


def part_of(path: Path) -> str:
    """The part of the recorder that a file belongs to; empty if the others need it."""
    inside = path.relative_to(PACKAGE / "trace") if path.is_relative_to(PACKAGE / "trace") else path
    name = inside.parts[0].removesuffix(".py")
    return name if name in PARTS else ""


@functools.cache
def taken_by(path: Path) -> frozenset[tuple[str, str]]:
    names, found = imported(TREES[path]), set()
    for module, name in names.values():
        found |= {(module, ""), (module, name)}
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, name = names.get(node.value.id, ("", ""))
            if module and not name and not is_special(node.attr):
                found.add((module, node.attr))
    return frozenset(found)


def taken(part: str) -> Taken:
    """What a part of the recorder takes from private modules."""
    return {each for path in TREES if part_of(path) == part for each in taken_by(path)}


def listed(modules: Iterable[Module]) -> Taken:
    return {(each.name, name.partition(".")[0]) for each in modules for name in ("", *each.uses)}


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@functools.cache
def uses_of_attributes() -> list[Use]:
    """Each use of a private attribute of something else than a module, `self` or what the file defines."""
    found: list[Use] = []
    for path, tree in TREES.items():
        modules, own = {name for name, (_, what) in imported(tree).items() if not what}, defined_in(tree)
        for node in ast.walk(tree):
            name, owner, guarded = used_by(node)
            is_private = name.startswith("_") and not is_special(name) and name not in OTHERS
            is_others = owner not in ({"self", "cls", "super()"} | modules)
            if is_private and is_others and (name not in own or name in REGISTERED):
                found.append(Use(name, guarded, path, getattr(node, "lineno", 0)))
    return found


def used_by(node: ast.AST) -> tuple[str, str, bool]:
    """The attribute that a node uses, of what, and whether it does without it."""
    if isinstance(node, ast.Attribute):
        return node.attr, ast.unparse(node.value), False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
        name = node.args[1]
        if node.func.id in ("getattr", "hasattr", "setattr") and isinstance(name, ast.Constant):
            return str(name.value), ast.unparse(node.args[0]), node.func.id == "hasattr" or len(node.args) > 2
    return "", "", False


def defined_in(tree: ast.Module) -> set[str]:
    found = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return found


REGISTERED = {each.name for each in ATTRIBUTES}


def test_every_private_module_and_what_is_taken_from_it_is_registered() -> None:
    assert unreplaced(taken("")) == unreplaced(listed(MODULES))


@pytest.mark.parametrize("part", PARTS)
def test_what_only_a_part_takes_is_registered_as_its(part: str) -> None:
    assert unreplaced(taken(part)) - listed(MODULES) == unreplaced(listed(PARTS[part].modules)) - {
        (each.name, "") for each in MODULES
    }


def unreplaced(found: Taken) -> Taken:
    """Without what is in the other list."""
    return {(module, name) for module, name in found if name not in {each.name for each in SYMBOLS}}


@pytest.mark.parametrize("part", ["", *PARTS])
def test_what_a_part_imports_needs_no_other_part_than_those_that_it_names(part: str) -> None:
    allowed = {part, *(PARTS[part].needs if part else ())}
    takers = {part_of(path) for path in files_loaded_with(part) if taken_by(path) - listed(MODULES)}

    assert takers - {""} <= allowed


def files_loaded_with(part: str) -> set[Path]:
    """The files of a part, or of the public recorders, and those that they import when they are loaded."""
    recorders = [PACKAGE / "trace" / "callback.py", PACKAGE / "trace" / "watch.py"]
    waiting = [path for path in TREES if part_of(path) == part] if part else recorders
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = (node.module for node in TREES[path].body if isinstance(node, ast.ImportFrom) and node.module)
            files = (PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in names)
            waiting += [each for each in files if each in TREES]
    return found


def test_every_private_attribute_that_is_used_is_registered_and_no_other_is() -> None:
    uses = uses_of_attributes()

    assert [str(each) for each in uses if each.name not in REGISTERED] == []
    assert REGISTERED - {each.name for each in uses} == set()


def test_what_is_called_optional_is_used_with_care_wherever_it_is_used() -> None:
    """A file that uses it asks whether it is there."""
    required = {each.name for each in ATTRIBUTES if not each.optional}
    uses = [each for each in uses_of_attributes() if each.name not in required]
    asked = {(each.path, each.name) for each in uses if each.guarded}

    assert [str(each) for each in uses if (each.path, each.name) not in asked] == []


def test_an_attribute_is_registered_once() -> None:
    listed = [(each.of, each.name) for each in ATTRIBUTES]

    assert len(set(listed)) == len(listed)
    for modules in (MODULES, *(part.modules for part in PARTS.values())):
        assert len({each.name for each in modules}) == len(modules)


def test_a_module_that_is_gone_is_named_with_the_versions_that_have_it() -> None:
    gone = [Module("tensorflow.python.eager.record", ("stop_recording", "nonsense")), Module("tensorflow.python.gone")]

    with pytest.raises(ImportError) as error:
        require_modules("2.99", gone)

    assert "TensorFlow 2.99 lacks `tensorflow.python.eager.record.nonsense`, `tensorflow.python.gone`" in str(
        error.value
    )
    assert "versions 2.16 to 2.21" in str(error.value)


def operation() -> Any:
    with tf.Graph().as_default():
        return tf.identity(1.0).op


def function() -> Any:
    @tf.function
    def made(x: Any) -> Any:
        return x

    made(tf.constant(1.0))
    return made


def model() -> Any:
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def optimizer() -> Any:
    made = keras.optimizers.SGD()
    made.build([keras.Variable(1.0)])
    return made


def tape() -> Any:
    with tf.GradientTape() as made:
        return made


def model_of_keras_2() -> Any:
    made = pytest.importorskip("tf_keras").Sequential()
    made.compile("sgd", "mse")
    return made


def variable_of_tensorflow_1() -> Any:
    with tf.Graph().as_default():
        return tf.compat.v1.get_variable("made", initializer=1.0, use_resource=False)


def session() -> Any:
    with tf.Graph().as_default():
        return tf.compat.v1.Session()


def iterator_of_replicas() -> Any:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(1.0)))


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Operation": operation,
    "EagerTensor": lambda: tf.constant(1.0),
    "Dataset": lambda: tf.data.Dataset.range(1),
    "Batches": lambda: tf.data.Dataset.range(1).batch(1),
    "Skipped": lambda: tf.data.Dataset.range(1).skip(1),
    "Shard": lambda: tf.data.Dataset.range(1).shard(1, 0),
    "Slices": lambda: tf.data.Dataset.from_tensor_slices([1]),
    "Iterator": lambda: iter(tf.data.Dataset.range(1)),
    "FuncGraph": lambda: FuncGraph("made"),
    "IteratorSpec": lambda: tf.data.IteratorSpec(tf.TensorSpec([])),
    "Function": function,
    "FunctionCache": lambda: function()._function_cache,
    "AtomicFunction": lambda: function().get_concrete_function(tf.constant(1.0))._inference_function,
    "ConcreteFunction": lambda: function().get_concrete_function(tf.constant(1.0)),
    "OpError": lambda: tf.errors.OpError(None, None, "made", 1),
    "BaseSession": session,
    "Context": context.context,
    "GradientTape": tape,
    "Tape": lambda: Tape(None),
    "DType": lambda: tf.float32,
    "RefVariable": variable_of_tensorflow_1,
    "DistributedIterator": iterator_of_replicas,
    "Model": model,
    "Model of Keras 2": model_of_keras_2,
    "Optimizer": optimizer,
    "ArgumentParser": argparse.ArgumentParser,
}


@pytest.mark.parametrize(
    "attribute", [each for each in ATTRIBUTES if not each.optional], ids=lambda each: f"{each.of} {each.name}"
)
def test_what_is_required_is_there(attribute: Attribute) -> None:
    assert hasattr(example(attribute.of), attribute.name)


@functools.cache
def example(of: str) -> Any:
    return EXAMPLES[of]()
