"""Runs when Python starts, in a program that `tb-gradflow run` has started. The program must not notice it.

Python imports a module of this name from the first directory on its path that has one. This module removes itself from
the path, runs the module that would have been found without it, and waits until TensorFlow is imported.
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
    # Processes that the program starts are not recorded, and find what they would have found without us.
    if options["pythonpath"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = options["pythonpath"]
    _load(options["package"])
    from tb_gradflow.startup import begin

    begin(options)


def _load(package: str) -> None:
    """The same tb_gradflow as the command's, wherever it is installed."""
    spec = importlib.util.spec_from_file_location(
        "tb_gradflow", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tb_gradflow"] = module
    spec.loader.exec_module(module)


def _go_on() -> None:
    """The `sitecustomize` that this module hides."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_begin()
_go_on()
