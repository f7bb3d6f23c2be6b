"""What moved a variable, or kept it fixed, element by element, according to the measured update of an optimizer."""

from __future__ import annotations

import ast
import itertools
import math
import re
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.record.python import parsed
from tb_gradflow.record.schema import MOVEMENT_STATISTICS, Movement, Optimizer

# Their update of one element depends on the others, or only on sums of gradients: elements without a gradient move
# although no state exists for them (Jordan et al., Muon, 2024; McMahan et al., Ad Click Prediction, 2013).
_WHOLE = {
    "Muon": "Muon orthogonalises each update as a whole matrix, which spreads it over all elements",
    "Ftrl": "Ftrl recomputes each weight from its accumulated gradients, whatever the weight is",
    "FtrlOptimizer": "Ftrl recomputes each weight from its accumulated gradients, whatever the weight is",
    "ScheduleFreeAdamW": "ScheduleFreeAdamW recomputes each weight from two averages that it keeps",
}
# Their state represents the weight itself: it does not move the weight, and must not be set to zero.
_KEEP_WEIGHTS = ("Ftrl", "FtrlOptimizer", "ScheduleFreeAdamW")


@dataclass(frozen=True, slots=True)
class Moved:
    """One variable's update, in numbers of elements.

    Attributes:
        known: Its settings.
        optimizer: The optimizer that applied it.
        size: How many elements it has.
        zeros: Those for which the optimizer got a gradient of exactly zero.
        moved: Those of them that the step changed.
        remembered: Those of these for which the optimizer has state.
        unmoved: Those with a gradient that the step did not change.
        rounded: Those of them whose update is smaller than the spacing of numbers there.
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

    @property
    def by_memory_alone(self) -> bool:
        """Whether all elements that move without a gradient do so because of the optimizer's state from earlier
        gradients: setting that to zero keeps them fixed."""
        others = self.known.decay or self.known.constraint or self.optimizer.averages
        return self.moved == self.remembered and not others and self.optimizer.type not in _WHOLE


def movement_of(measured: Measured, variable: int) -> Moved | None:
    """How a variable was updated; `None` if that was not recorded."""
    return measured.once(("movement", variable), lambda: _movement_of(measured, variable))


def _movement_of(measured: Measured, variable: int) -> Moved | None:
    trace = measured.topology.trace
    # The first of a variable counts.
    movements = measured.once("movements", lambda: {each.variable: each for each in reversed(trace.movements)})
    known = movements.get(variable)
    if known is None or measured.gradients is None or np.isnan(measured.gradients[known.row, 0]):
        return None
    numbers = dict(zip(MOVEMENT_STATISTICS, measured.gradients[known.row].tolist(), strict=True))
    rate = numbers.pop("rate")
    counts = {name: round(number) for name, number in numbers.items()}
    size = math.prod(trace.variables[variable].shape)
    return Moved(known, trace.optimizers[known.optimizer], size, rate=None if np.isnan(rate) else rate, **counts)


def why_moved(moved: Moved) -> str:
    """What moves elements whose gradient is zero, as a clause without a full stop: "what Adam remembers of …"."""
    name, reasons = moved.optimizer.type, []
    if moved.remembered and name not in _KEEP_WEIGHTS:
        kept = "gradients that it accumulates" if moved.optimizer.accumulates > 1 else "gradients of earlier steps"
        reasons.append(f"{name} remembers {kept}")
    rest = moved.moved if name in _KEEP_WEIGHTS else moved.moved - moved.remembered
    if moved.known.decay:
        reasons.append(f"{name} applies a weight decay of {moved.known.decay:g} independently of the gradient")
    if rest and name in _WHOLE and (name != "Muon" or not moved.known.decay):
        reasons.append(_WHOLE[name])
    if moved.known.constraint and (rest or not reasons):
        reasons.append(f"the constraint `{moved.known.constraint}` is applied after each update")
    if moved.optimizer.averages and (rest or not reasons):
        reasons.append(f"{name} replaces the weight with a moving average")
    return " and ".join(reasons) or "something else in this step assigns to it"


@dataclass(frozen=True, slots=True)
class Mask:
    """How a line of code writes a variable and its mask.

    Attributes:
        variable: The variable.
        kept: The condition under which an element counts, such as `mask != 0`.
        factor: The same as a factor.
    """

    variable: str
    kept: str
    factor: str


def mask_in(code: str, variable: str) -> Mask | None:
    """The mask of a variable in a line of code: the factor that it is multiplied by, or the condition of a `tf.where`.
    Found by the variable's name, or by the mask's name if that is telling."""
    tree = parsed(code.strip())
    if tree is None:
        return None
    chosen = _chosen_in(tree, variable)
    if chosen is not None:
        return chosen
    products = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]
    named = (ast.Name, ast.Attribute)
    pairs = [(one, other) for node in products for one, other in ((node.left, node.right), (node.right, node.left))]
    pairs = [(one, other) for one, other in pairs if isinstance(one, named) and isinstance(other, named)]
    by_name = (pair for pair in pairs if ast.unparse(pair[0]).rpartition(".")[2] == variable)
    by_mask = (pair for pair in pairs if _MASK.search(ast.unparse(pair[1])))
    found = next(itertools.chain(by_name, by_mask), None)
    if found is None:
        return None
    written, mask = map(ast.unparse, found)
    return Mask(written, f"{mask} != 0", mask)


def _chosen_in(tree: ast.AST, variable: str) -> Mask | None:
    """The variable in one branch of a `tf.where`, and the condition for that branch."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 3 or not ast.unparse(node.func).endswith("where"):
            continue
        condition, *branches = map(ast.unparse, node.args)
        for branch, kept in zip(branches, (condition, f"tf.logical_not({condition})"), strict=True):
            if branch.rpartition(".")[2] == variable:
                return Mask(branch, kept, f"tf.cast({kept}, {branch}.dtype)")
    return None


_MASK = re.compile(r"mask|keep|kept|gate|prun|fre?oze|freez|active|alive", re.IGNORECASE)
