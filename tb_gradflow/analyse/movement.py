"""What moved a variable, or held it still, element by element: as an optimizer's update was measured."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.measured import Measured
from tb_gradflow.record.schema import MOVEMENT_STATISTICS, Movement, Optimizer

# Their update of one element depends on the others, or on sums of gradients alone: elements without a gradient move
# though nothing is remembered of them (Jordan et al., Muon, 2024; McMahan et al., Ad Click Prediction, 2013).
_WHOLE = {
    "Muon": "the update is made orthogonal as a whole matrix, which spreads it over all elements",
    "Ftrl": "it computes each weight anew from sums of gradients, and those are zero here",
    "ScheduleFreeAdamW": "it goes on from averages of the weights, which are not the weights themselves",
}


@dataclass(frozen=True, slots=True)
class Moved:
    """One variable's update, in numbers of elements.

    Attributes:
        known: Its settings.
        optimizer: What applied it.
        size: How many elements it has.
        zeros: Those for which the optimizer was given a gradient of exactly zero.
        moved: Those of them that the step changed.
        remembered: Those of these for which the optimizer remembered something.
        unmoved: Those with a gradient that the step did not change.
        rounded: Those of them whose step is smaller than the spacing of numbers there.
        rate: The learning rate; `None` if it is not known.
    """

    known: Movement
    optimizer: Optimizer
    size: int
    zeros: int
    moved: int
    remembered: int
    unmoved: int
    rounded: int
    rate: float | None

    @property
    def stands_still(self) -> bool:
        """Whether the step changed no element, though some have a gradient."""
        return self.unmoved > 0 and self.unmoved == self.size - self.zeros and not self.moved


def movement_of(measured: Measured, variable: int) -> Moved | None:
    """How a variable was updated; `None` where that was not seen."""
    trace = measured.topology.trace
    known = next((each for each in trace.movements if each.variable == variable), None)
    if known is None or measured.gradients is None or np.isnan(measured.gradients[known.row, 0]):
        return None
    numbers = dict(zip(MOVEMENT_STATISTICS, measured.gradients[known.row].tolist(), strict=True))
    rate = numbers.pop("rate")
    counts = {name: round(number) for name, number in numbers.items()}
    size = int(np.prod(trace.variables[variable].shape, dtype=np.int64))
    return Moved(known, trace.optimizers[known.optimizer], size, rate=None if np.isnan(rate) else rate, **counts)


def why_moved(moved: Moved) -> str:
    """What moves elements whose gradient is zero, as the subject of no sentence: "what Adam remembers of …"."""
    name, reasons = moved.optimizer.type, []
    if moved.remembered:
        kept = "gradients that it sums up" if moved.optimizer.accumulates > 1 else "gradients of earlier steps"
        reasons.append(f"{name} remembers {kept}")
    rest = moved.moved - moved.remembered
    if moved.known.decay:
        reasons.append(f"{name} applies a weight decay of {moved.known.decay:g} apart from the gradient")
    elif rest and name in _WHOLE:
        reasons.append(f"{name}: {_WHOLE[name]}")
    if moved.known.constraint and (rest or not reasons):
        reasons.append(f"the constraint `{moved.known.constraint}` is applied after each update")
    if moved.optimizer.averages and (rest or not reasons):
        reasons.append(f"{name} puts a moving average in the place of the weight")
    return " and ".join(reasons) or "something else in this step assigns to it"


def mask_in(code: str, variable: str) -> tuple[str, str]:
    """How a line of code writes a variable that it multiplies with a mask, and the mask: by the variable's own name, or
    by the mask's if that says what it is. Empty where the line does not show it."""
    try:
        tree = ast.parse(code.strip())
    except SyntaxError:
        return "", ""
    products = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]
    named = (ast.Name, ast.Attribute)
    pairs = [(one, other) for node in products for one, other in ((node.left, node.right), (node.right, node.left))]
    pairs = [(one, other) for one, other in pairs if isinstance(one, named) and isinstance(other, named)]
    by_name = (pair for pair in pairs if ast.unparse(pair[0]).rpartition(".")[2] == variable)
    by_mask = (pair for pair in pairs if _MASK.search(ast.unparse(pair[1])))
    found = next(itertools.chain(by_name, by_mask), None)
    return (ast.unparse(found[0]), ast.unparse(found[1])) if found is not None else ("", "")


_MASK = re.compile(r"mask|keep|kept|gate|prun|fre?oze|freez|active|alive", re.IGNORECASE)
