"""What tests of several packages need: records made by hand, and logs of them."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's Chromium; `make test` installs one where it can."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.fail("no Chromium found: install it (on Debian, as root: apt-get install chromium)")
