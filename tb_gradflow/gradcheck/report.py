"""The result of a gradient check: a verdict for each argument, as text, as numbers, and as a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tb_gradflow.errors import IncorrectGradients

Verdict = Literal["agrees", "factor", "order", "kink", "straight_through", "disconnected", "random", "step", "differs"]
"""
agrees            the gradient is the derivative, as far as finite differences can tell
factor            it is the derivative times a number: a sign, a sum instead of a mean, a broadcast
order             it has the derivative's numbers in another order, or shape
kink              the function has a kink or a jump here, and no derivative
straight_through  the function is flat or jumps, and a straight-through estimator replaces its derivative
disconnected      there is no gradient at all
random            the function returns a different value each time
step              no step, or not the requested one, suits this function and its precision; without any step it is
                  not known whether the gradient is right
differs           none of these
"""


@dataclass(frozen=True, slots=True)
class StepError:
    """A step that was tried.

    Attributes:
        step: The distance by which elements were moved: the median over them.
        relative: The same, relative to their size.
        error: Norm of the difference between the gradient and the central difference at this step, divided by the
            larger of both norms; infinite if the function was not finite.
    """

    step: float
    relative: float
    error: float


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """The gradient with respect to one argument, against finite differences.

    Attributes:
        name: Its position among the arguments: `0`, or `1['kernel']` inside one.
        verdict: See `Verdict`.
        message: What was found, and why.
        correct: Whether nothing is wrong: it agrees; or, at a kink, it is the slope of one side or lies between
            the two; or it is a straight-through estimator, which is meant to differ.
        known: Whether that could be determined; if not, `correct` is false.
        relative_error: Norm of the difference between gradient and derivative, divided by the larger of both
            norms, where they were compared; `None` if they could not be.
        factor: The gradient divided by the derivative, if that is the same for all elements.
        steps: The steps that were tried, increasing.
        best_step: The step at which finite differences are most accurate; `None` if no step is good.
        compared: How many elements and directions were compared.
        is_cut_short: Whether fewer than usual were compared, because the function is slow.
    """

    name: str
    verdict: Verdict
    message: str
    correct: bool
    known: bool = True
    relative_error: float | None = None
    factor: float | None = None
    steps: tuple[StepError, ...] = ()
    best_step: float | None = None
    compared: int = 0
    is_cut_short: bool = False


@dataclass(frozen=True)
class GradientsCheck:
    """The result of `tb_gradflow.check_gradients`.

    Attributes:
        arguments: By position among the arguments, `"0"`; inside one, `"1['kernel']"`.
        evaluations: How often the function was called.
        notes: Further results, about the step and the learning rate that a training uses.
    """

    arguments: Mapping[str, ArgumentCheck]
    evaluations: int
    notes: tuple[str, ...] = ()

    @property
    def correct(self) -> bool:
        """Whether all of the gradients are known to be right."""
        return all(check.correct for check in self.arguments.values())

    def assert_correct(self) -> None:
        """Raises IncorrectGradients, with the text of `print`, unless all gradients are correct."""
        if not self.correct:
            raise IncorrectGradients(f"\n{self}")

    def __str__(self) -> str:
        lines: list[str] = []
        for check in self.arguments.values():
            lines += _lines(check)
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {check.verdict}" for name, check in self.arguments.items())
        return f"<GradientsCheck {told}>"

    def _repr_html_(self) -> str:
        from tb_gradflow.gradcheck.figure import page

        return page(self)


def checked(checks: list[ArgumentCheck], evaluations: int, notes: tuple[str, ...] = ()) -> GradientsCheck:
    """The result, in the order of the arguments."""
    return GradientsCheck(MappingProxyType({check.name: check for check in checks}), evaluations, notes)


def _lines(check: ArgumentCheck) -> list[str]:
    mark = "ok" if check.correct else "WRONG" if check.known else "not known"
    lines = [f"argument {check.name}: {check.verdict} ({mark})", f"  {check.message}"]
    if check.relative_error is not None:
        lines.append(f"  relative error {check.relative_error:.2g}, of {check.compared} compared")
    if check.steps:
        lines.append("  step        relative    error")
        for each in check.steps:
            best = "  best" if check.best_step == each.step else ""
            lines.append(f"  {each.step:<10.2g}  {each.relative:<10.2g}  {each.error:.2g}{best}")
    return lines
