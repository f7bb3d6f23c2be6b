"""Whether a fit goes on with what the one before has compiled, as Keras does where nobody calls `compile` in between.

What was frozen or thawed since then, or changed in Python, plays no part in such a fit. So the recorder must not trace
the step anew either: it would train something else than the training without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_gradflow.trace.fitting import Fitting
from tb_gradflow.trace.recorder import warn


class LastFit:
    """The training function of the last fit, and what was to be trained when it was compiled."""

    def __init__(self) -> None:
        self._function: Any = None
        self._kind: tuple[Any, ...] = ()
        self._trainable: frozenset[int] = frozenset()

    def begins(self, model: Any, fitted: Fitting) -> None:
        """A fit that compiles its functions begins."""
        self._function, self._kind = model.train_function, _kind(fitted)
        self._trainable = _trainable(model)

    def goes_on(self, model: Any, fitted: Fitting) -> bool:
        """Whether the fit that begins runs the same function; then tells of flags that have no effect on it."""
        if model.train_function is None or model.train_function is not self._function or fitted.is_eager:
            return False
        if _kind(fitted) != self._kind:
            return False
        trainable = _trainable(model)
        changed = [each for each in model.weights if id(each) in trainable ^ self._trainable]
        if changed:
            warn(_without_effect(changed, thawed=id(changed[0]) in trainable))
        return True


def _kind(fitted: Fitting) -> tuple[Any, ...]:
    return type(fitted), fitted.shows_graph


def _trainable(model: Any) -> frozenset[int]:
    return frozenset(map(id, model.trainable_weights))


def _without_effect(changed: Sequence[Any], *, thawed: bool) -> str:
    first = getattr(changed[0], "path", changed[0].name)
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    became = "trainable" if thawed else "frozen"
    return (
        f"tb_gradflow: `{first}`{more} became {became} after the model was compiled, and that has no effect: Keras "
        "goes on with the training step of the last `fit`. Call `model.compile(...)` again in front of this `fit`."
    )
