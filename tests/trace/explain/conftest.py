"""Programs that a test writes."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_NUMBERS = itertools.count()


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Any]:
    """Writes a program and loads it."""
    names = []

    def load(text: str) -> ModuleType:
        number = next(_NUMBERS)
        names.append(f"program_{number}")
        path = tmp_path / f"{names[-1]}.py"
        # AutoGraph takes equal functions, at one and the same line of two files, for one.
        path.write_text("\n" * number + text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(names[-1], path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[names[-1]] = module
        spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        del sys.modules[name]
