"""What every test of the recorder begins with."""

from __future__ import annotations

import keras
import pytest


@pytest.fixture(autouse=True)
def names_begin_anew() -> None:
    """Keras numbers the layers of a process; a test's names are its own. Looking for garbage each time took longer
    than most tests."""
    keras.utils.clear_session(free_memory=False)
