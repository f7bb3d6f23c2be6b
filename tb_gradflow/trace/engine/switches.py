"""How a traced function of the user's is called, once it may be recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.siblings import Sibling
from tb_gradflow.trace.engine.tracing import onlooker_here, onlooking
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.substitutes import substituted
from tb_gradflow.trace.protection.warning import warn


class Switch:
    """Lets who looks on decide what runs when the program calls a function.

    Args:
        function: The user's `ConcreteFunction`, which has not run yet.

    Attributes:
        draws: Where all functions that are made from it draw random numbers.
        kept: What lives as long as the function.
    """

    def __init__(self, function: Any) -> None:
        self.draws = Draws(function._inference_function)
        self._function = function
        self._run = function._inference_function.call_preflattened
        self._plain: Sibling | None = None
        self.kept: Any = None

    def __call__(self, args: Sequence[Any]) -> Any:
        """In place of the function's own `call_preflattened`."""
        onlooker, function = onlooker_here(), self._function
        if onlooker is None:
            return self.plain(args)
        with onlooking(None):  # it calls functions of its own
            return substituted(self.plain, lambda: onlooker.choose(function), args, onlooker.failed, onlooker.is_own)

    @property
    def is_settled(self) -> bool:
        """Whether another recorder has decided what runs in each call."""
        return bool(self.draws.unshared) and self._plain is not None

    def stay_with(self, sibling: Sibling) -> None:
        """From now on this runs in each call: two functions would draw other random numbers."""
        self._plain = sibling

    def plain(self, args: Sequence[Any]) -> Any:
        """What the function does."""
        if self.draws.has_seeds and self._plain is None:
            try:
                self._plain = Sibling(self._function._inference_function, [self.draws])
            except faults() as fault:
                self.draws.has_seeds = False
                warn(_DRAWS_ANEW.format(fault=f"{type(fault).__name__}: {fault}"))
        return self._run(args) if self._plain is None else self._plain(args)


def switch_of(function: Any) -> Switch:
    """The switch of a `ConcreteFunction`, which it keeps; made when it is first asked for."""
    plain = function._inference_function
    found = vars(plain).get("call_preflattened")
    if not isinstance(found, Switch):
        found = plain.call_preflattened = Switch(function)
    return found


_DRAWS_ANEW = (
    "tb_gradflow: the random numbers of this step may differ from those without the recorder. Please report this: "
    "{fault}"
)
