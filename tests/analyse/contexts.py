"""A pytest plugin by which coverage.py notes which test runs a line, of parametrized tests which parameters.

coverage run --branch --source tb_gradflow -m pytest -p tests.analyse.contexts …
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _context_of_coverage(request: pytest.FixtureRequest) -> Iterator[None]:
    measuring: Any = importlib.import_module("coverage").Coverage.current()
    if measuring is not None:
        measuring.switch_context(request.node.nodeid)
    yield
    if measuring is not None:
        measuring.switch_context("")
