"""The answers to the cases, which several files look at and which take minutes."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable, Sequence

import pytest

from tests.cases.judge import Answer, answers

Asked = Callable[[Sequence[str]], dict[str, Answer]]


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Gives the answers to cases. No case is explained twice in one run of the tests, whatever process asks: who comes
    second waits for the first."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if own.name.startswith("popen-") else own
    known = shared / "answers.pickle"

    def ask(names: Sequence[str]) -> dict[str, Answer]:
        with (shared / "answers.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found: dict[str, Answer] = pickle.loads(known.read_bytes()) if known.exists() else {}
            found |= answers([name for name in names if name not in found])
            known.write_bytes(pickle.dumps(found))
        return {name: found[name] for name in names}

    return ask
