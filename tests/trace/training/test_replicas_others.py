"""Eager replicas and servers of parameters are told, not recorded; `explain` measures replicas on one device; with an
old TensorFlow replicas begin alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trace.training.test_replicas import found_by, started


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("others")
    found = found_by(started("mirrored_others", str(directory)))
    assert "fit" in found, found
    return directory, found


@pytest.mark.parametrize("kind", ["fit", "loop"])
def test_eager_replicas_are_told_once_and_train_as_without_the_recorder(kind: str, others: tuple[Path, Any]) -> None:
    """What one of them shows would pass for the whole step."""
    directory, found = others

    plain, recorded, told = found[kind]

    assert recorded == plain
    [message] = told
    assert "does not record this training: its replicas run eagerly" in message
    assert not list((directory / kind / "gradflow").iterdir())


@pytest.mark.parametrize("kind", ["explain", "explain eagerly"])
def test_explain_takes_the_gradients_of_the_whole_batch_and_puts_every_replica_back(
    kind: str, others: tuple[Path, Any]
) -> None:
    _, found = others

    assert found[kind]["found"] == pytest.approx(found[kind]["expected"], rel=1e-4, abs=1e-6)
    assert found[kind]["unchanged"]


def test_explain_inside_of_the_strategys_scope_says_to_leave_it(others: tuple[Path, Any]) -> None:
    _, found = others

    assert found["explain in the scope"] == "explain runs one step on one device: call it outside of `strategy.scope()`"


def test_a_second_strategy_with_replicas_is_refused(others: tuple[Path, Any]) -> None:
    _, found = others

    single, first, second, *again = found["second strategy"]
    assert [single, first, *again] == [None] * 4
    assert "another strategy with several replicas was recorded in this process" in second


def test_parameter_servers_are_told_and_train_as_without_the_recorder(tmp_path: Path) -> None:
    found = found_by(started("parameter_servers", str(tmp_path)))

    assert "told" in found, found
    plain, recorded = found["loop"]
    assert recorded == plain
    [message] = found["told"]
    assert (
        "does not record this training: the workers of a ParameterServerStrategy run its steps independently" in message
    )
    assert not [*(tmp_path / "fit" / "gradflow").iterdir(), *(tmp_path / "loop" / "gradflow").iterdir()]
