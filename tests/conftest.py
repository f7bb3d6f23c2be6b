"""What tests of several packages need: records made by hand, and logs of them."""

from __future__ import annotations

import shutil

import pytest

from tb_gradflow.demo.gallery import chosen
from tests.demo.training import Trained, train


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's Chromium; `make test` installs one where it can."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.fail("no Chromium found: install it (on Debian, as root: apt-get install chromium)")


@pytest.fixture(scope="session")
def step_filter(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The runs `step_filter/broken` and `step_filter/fixed`, trained as `tb-gradflow demo` trains them."""
    [demo] = chosen(["step_filter"])
    return train(demo, tmp_path_factory.mktemp("step_filter"))
