"""Where the trainings of one program are recorded: a directory for each, below one log directory."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shutil
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from tb_gradflow.store.elsewhere import is_elsewhere, local_path
from tb_gradflow.trace.fidelity.warning import warn

if TYPE_CHECKING:
    from tb_gradflow.trace.log.options import Options

DEFAULTS: Mapping[str, Any] = {
    "update_freq": "auto",
    "overhead": 0.01,
    "tensors": "all",
    "catch_nonfinite": True,
    "expected": (),
    "source": True,
    "terms": False,
    "examples": False,
}

MOST_OF_A_NAME = 999


class Flushable(Protocol):
    """What has recorded a training."""

    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """One training's run.

    Attributes:
        name: Of the run, relative to the log directory.
        log_dir: What a recorder is given.
    """

    name: str
    log_dir: str


class Recording:
    """The trainings of one program, or of one cell of a notebook.

    Args:
        log_dir: Holds the runs. Any path that `tf.io.gfile` can write.
        options: Those of `GradFlowCallback`, without `log_dir`.
        tell: Is given the name of each run as it begins, and whether it is there; it is not, once it was dropped.
    """

    def __init__(
        self, log_dir: str, options: Mapping[str, Any], tell: Callable[[str, bool], None] = lambda name, is_there: None
    ) -> None:
        self.log_dir = log_dir if is_elsewhere(log_dir) else os.path.abspath(local_path(log_dir))
        self.options = {**DEFAULTS, **options}
        self.runs: list[Place] = []
        self._tell = tell
        self._recorders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._failed = False

    def begin(self, name: str) -> Place | None:
        """A run of its own with a name like this one: the first that nobody has used. Null if it cannot be written,
        which is said once."""
        if self._failed:
            return None
        wanted = _safe(name)
        try:
            for number in range(1, MOST_OF_A_NAME):
                chosen = wanted if number == 1 else f"{wanted}-{number}"
                place = Place(chosen, posixpath.join(self.log_dir, chosen))
                if _made(place.log_dir):
                    self.runs.append(place)
                    self._tell(place.name, True)
                    return place
            raise OSError(f"{self.log_dir} already contains {MOST_OF_A_NAME} runs named {wanted}")
        except (OSError, tf.errors.OpError) as error:
            self._failed = True
            warn(f"tb_gradflow stopped recording: cannot write to {self.log_dir} ({error})")
            return None

    def drop(self, place: Place) -> None:
        """The run turned out to be none."""
        if place in self.runs:
            self.runs.remove(place)
            self._tell(place.name, False)
            with contextlib.suppress(OSError, tf.errors.OpError):
                if is_elsewhere(place.log_dir):
                    tf.io.gfile.rmtree(place.log_dir)
                else:
                    shutil.rmtree(place.log_dir)

    def checked(self, place: Place) -> Options:
        """What a recorder of that run goes by."""
        # Loads half of the recorder: not before something trains.
        from tb_gradflow.trace.log.options import checked

        return checked(place.log_dir, **self.options)

    def keeps(self, recorder: Flushable) -> None:
        """It is flushed when the program ends."""
        self._recorders.add(recorder)

    def flush(self) -> None:
        """All that was recorded can be read when this returns."""
        for recorder in list(self._recorders):
            with contextlib.suppress(Exception):  # one that failed must not keep the others from being read
                recorder.flush()


class Kept:
    """What the hooks keep with an object of the program: a copy of that object does not have it.

    Attributes:
        recording: That it belongs to.
        value: The recorder; null for an object that is left alone.
    """

    def __init__(self, recording: Recording | None, value: Any) -> None:
        self.recording = recording
        self.value = value

    def __deepcopy__(self, memo: Any) -> Kept:
        return Kept(None, None)

    def __reduce__(self) -> Any:
        return Kept, (None, None)


_ATTRIBUTE = "_tb_gradflow_kept"


def kept_with(owner: Any, recording: Recording) -> Kept | None:
    """What this recording has kept with an object; null if it has nothing."""
    found = vars(owner).get(_ATTRIBUTE)
    return found if isinstance(found, Kept) and found.recording is recording else None


def keep_with(owner: Any, recording: Recording, value: Any) -> Kept:
    """Keeps something with an object, past its `__setattr__`: Keras tracks what that is given."""
    kept = vars(owner)[_ATTRIBUTE] = Kept(recording, value)
    return kept


def _safe(name: str) -> str:
    """As a directory's name, on every system."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "training"


def _made(log_dir: str) -> bool:
    """Makes a directory; false if there is one already."""
    if is_elsewhere(log_dir):
        if tf.io.gfile.exists(log_dir):
            return False
        tf.io.gfile.makedirs(log_dir)
        return True
    os.makedirs(os.path.dirname(log_dir), exist_ok=True)
    try:
        os.mkdir(log_dir)
    except FileExistsError:
        return False
    return True
