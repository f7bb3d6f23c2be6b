"""Records the trainings of this process, whatever starts them: `tb-gradflow run`, a notebook cell, or a test. Loads
nothing until TensorFlow is imported."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tb_gradflow.on_import import OnImport

TENSORFLOW = ("tensorflow", "keras", "tf_keras")
"""Whichever comes first loads the recorder."""


class Recorded:
    """The trainings that run between `start` and `stop`.

    Args:
        log_dir: Called once, when TensorFlow is imported: the directory of the runs.
        options: Those of `GradFlowCallback`, without `log_dir`.
        tell: Called with the name of each run and True when it begins, and with False when it is dropped.
        see: Called with each sentence about something that may train, and is not recorded so far.
        begins: Called before TensorFlow is imported.
    """

    def __init__(
        self,
        log_dir: Callable[[], str],
        options: Mapping[str, Any] | None = None,
        *,
        tell: Callable[[str, bool], None] = lambda name, is_there: None,
        see: Callable[[str], None] = lambda sentence: None,
        begins: Callable[[], None] = lambda: None,
    ) -> None:
        self._log_dir = log_dir
        self._options = options or {}
        self._tell = tell
        self._see = see
        self._waiting = OnImport(TENSORFLOW, self._start, lambda name: begins())
        self._starting = False
        # Modules of the recorder, and the recording that they started.
        self._hooks: Any = None
        self._recording: Any = None
        self._outer: Any = None

    def start(self) -> None:
        self._waiting.install()
        self._start()

    def stop(self, *, ended: bool = False) -> None:
        """Makes everything recorded readable. If another recording was active before, it continues. The fixes of what
        has to run Python code again are tried only when the program has `ended`, or if they are asked for."""
        self._waiting.remove()
        hooks, self._hooks = self._hooks, None
        if hooks is None:
            return
        from tb_gradflow.trace.log.findings import try_fixes
        from tb_gradflow.trace.protection.beside import surely
        from tb_gradflow.trace.protection.foreign import faults

        try:
            surely(partial(hooks.stop, self._outer, has_ended=ended))
            try_fixes(program_continues=not ended)
        except faults() as error:
            _say("the end of this recording may be missing", error)

    def flush(self) -> None:
        """Makes everything readable that was recorded so far."""
        if self._hooks is not None:
            self._hooks.flush()

    @property
    def names(self) -> list[str]:
        """The names of the runs, relative to the log directory."""
        return [] if self._recording is None else [place.name for place in self._recording.runs]

    def _start(self, imported: str | None = None) -> None:
        # The recorder itself may import `tf_keras`, through `tf.keras`: a start hooks all that is imported by then.
        if "tensorflow" not in sys.modules or self._starting:
            return
        self._starting = True
        # Keras 3 draws a number where it is imported, which a program with `tf_keras` does not do by itself.
        drawn = random.getstate()
        try:
            if self._recording is None:
                from tb_gradflow.trace.program import hooks
                from tb_gradflow.trace.program.recording import Recording

                self._recording = Recording(self._log_dir(), self._options, self._tell, self._see)
                self._outer = hooks.current()
                self._hooks = hooks  # from here on, `stop` ends it even if it starts only in part
                hooks.start(self._recording)
            if imported is not None and self._hooks is not None:
                self._hooks.hook(imported)
        except Exception as error:  # a fault in the recorder must never reach the training
            # Not imported here: that may be what failed.
            foreign = sys.modules.get("tb_gradflow.trace.protection.foreign")
            if foreign is not None and foreign.is_foreign(error):
                raise
            self.stop()
            _say("the trainings of this program are not recorded", error)
        finally:
            random.setstate(drawn)
            self._starting = False


def _say(what: str, error: Exception) -> None:
    sys.stderr.write(f"tb-gradflow: {what}. Please report this: {type(error).__name__}: {error}\n")
