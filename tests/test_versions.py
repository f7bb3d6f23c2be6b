"""The versions that `make versions` tests are those that the package promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.versions import CORE, MORE, NEWEST, NEXT, OLDEST, ROOT, Pair
from tb_gradflow.trace.tf_internals import private_symbols, used_symbols, versions

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_the_oldest_tensorflow_is_the_oldest_that_is_accepted() -> None:
    assert OLDEST.release == versions.OLDEST
    assert set(re.findall(r"tensorflow(?:-cpu)?>=([\d.]+)", PROJECT)) == {minor(OLDEST.tensorflow)}


def test_private_symbols_were_seen_in_both_pairs() -> None:
    seen = {each.seen for each in private_symbols.SYMBOLS if each.owner not in ("numpy", "linalg", "random")}

    tensorflow, keras = (
        (minor(OLDEST.tensorflow), minor(NEWEST.tensorflow)),
        (minor(OLDEST.keras), minor(NEWEST.keras)),
    )
    assert seen == {tensorflow, keras}
    assert tensorflow == used_symbols.SEEN


def test_the_pythons_are_the_oldest_and_the_newest_that_are_supported() -> None:
    supported = re.findall(r"Programming Language :: Python :: (3\.\d+)", PROJECT)

    assert (OLDEST.pythons[0], NEWEST.pythons[0]) == (supported[0], supported[-1])
    assert set(NEWEST.pythons) == set(supported)


@pytest.mark.parametrize("pair", [OLDEST, NEWEST])
def test_the_matrix_has_both_pairs(pair: Pair) -> None:
    matrix = (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")

    assert f"| TensorFlow {pair.tensorflow}, Keras {pair.keras}, Python {pair.pythons[0]} | `make versions`" in matrix


def test_the_matrix_has_the_next_pair() -> None:
    matrix = (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")

    assert f"| TensorFlow {NEXT.tensorflow}, Keras {NEXT.keras}, Python {NEXT.pythons[0]} | by hand" in matrix


@pytest.mark.parametrize("name", sorted({*CORE, *MORE}))
def test_what_is_run_under_other_versions_is_there(name: str) -> None:
    file, _, test = name.partition("::")

    assert (ROOT / file).exists()
    if test:
        assert f"def {test.partition('[')[0]}(" in Path(ROOT / file).read_text(encoding="utf-8")
