"""Runs as Python starts, in a program that `tb-gradflow run` has started: the program is to notice nothing of it.

Python imports a module of this name from the first directory of its path that has one. This one takes itself off the
path, runs the one that would have been found without it, and waits for TensorFlow to be imported.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys

_VARIABLE = "TB_GRADFLOW_RUN"


def _begin() -> None:
    told = os.environ.pop(_VARIABLE, None)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    if told is None:
        return
    options = json.loads(told)
    # Programs that this one starts are not recorded, and find what they would have found.
    if options["pythonpath"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = options["pythonpath"]
    _load(options["package"])
    from tb_gradflow.startup import begin

    begin(options)


def _load(package: str) -> None:
    """The very tb_gradflow that the command is of, wherever it lies."""
    spec = importlib.util.spec_from_file_location(
        "tb_gradflow", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tb_gradflow"] = module
    spec.loader.exec_module(module)


def _go_on() -> None:
    """The `sitecustomize` that this one hides."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_begin()
_go_on()
