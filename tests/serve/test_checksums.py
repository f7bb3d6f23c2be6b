"""TensorBoard's loader in Python checks event files as it did, and sooner."""

from __future__ import annotations

import random
import sys

import google_crc32c
import pytest
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow

from tb_gradflow.serve.runs.checksums import quicken

WRITTEN = [b"", b"a", random.Random(1).randbytes(1000), bytes(64)]


@pytest.fixture
def unpatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pywrap_tensorflow, "crc32c", pywrap_tensorflow.crc32c)


@pytest.mark.usefixtures("unpatched")
def test_the_checksums_are_the_same() -> None:
    before = [pywrap_tensorflow.masked_crc32c(data) for data in WRITTEN]

    assert quicken()

    assert pywrap_tensorflow.crc32c is google_crc32c.value
    assert [pywrap_tensorflow.masked_crc32c(data) for data in WRITTEN] == before


@pytest.mark.usefixtures("unpatched")
@pytest.mark.parametrize("lacks", ["google_crc32c", "tensorboard.compat.tensorflow_stub"])
def test_without_either_of_them_all_stays_as_it_is(lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pywrap_tensorflow.crc32c
    monkeypatch.setitem(sys.modules, lacks, None)

    assert not quicken()

    assert pywrap_tensorflow.crc32c is before


@pytest.mark.usefixtures("unpatched")
def test_another_function_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pywrap_tensorflow, "crc32c", len)

    assert not quicken()

    assert pywrap_tensorflow.crc32c is len
