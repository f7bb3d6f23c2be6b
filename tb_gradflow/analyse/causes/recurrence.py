"""Values or gradients that grow with every step of a recurrence until they are infinite."""

from __future__ import annotations

from collections.abc import Iterable

from tb_gradflow.analyse.causes.not_finite import accused
from tb_gradflow.analyse.causes.unseen import unrecorded_between
from tb_gradflow.analyse.causes.zero_factor import first_of_loop
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.graph.paths import walked

# What comes out of these is bounded, whatever goes in.
_BOUNDED = frozenset(
    {"Tanh", "Sigmoid", "Softmax", "Softsign", "Sin", "Cos", "Atan", "Erf", "ClipByValue", "Minimum", "Relu6", "Rsqrt"}
    | {"L2Normalize", "FusedBatchNormV3", "LogSoftmax"}
)

# As many products with one weight, each made of the one before, are a recurrence that was written out.
_MANY = 8

# Half of float32's decades: what is above comes out of growth, and one more product may end it.
_ABOUT_TO_OVERFLOW = 1e19

# What a batch holds in units of its own: bytes, seconds since 1970.
LARGE_DATA = 1e10

_COPIES = frozenset({"Identity", "Cast", "Reshape", "Transpose"})


def overflowing_recurrence(suspect: Suspect) -> Verdict | None:
    """A loop, or as many products with the same weight, with nothing in it that keeps the state bounded; or a gradient
    that had grown nearly as large as numbers get."""
    if _is_singular(suspect, suspect.culprit):
        return None
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if incoming is not None and incoming.max_abs > _ABOUT_TO_OVERFLOW and not incoming.nan_count:
        return Verdict("exploding_recurrence", "error")
    if suspect.measured.loss_is_finite(suspect.target):
        place = _growing_in(suspect, _between(suspect))
    else:
        place = suspect.measured.once(("growing", suspect.culprit), lambda: _growing_before(suspect))
    return Verdict("exploding_recurrence", "error", place) if place >= 0 else None


def diverged(suspect: Suspect) -> Verdict | None:
    """The forward pass left the finite numbers where no function does so at a point of its own, and what is finite in
    this step is nearly as large as numbers get, the batch apart: weights have grown from step to step."""
    measured = suspect.measured
    if measured.loss_is_finite(suspect.target) or measured.gradients is None or measured.largest_input > LARGE_DATA:
        return None
    return Verdict("exploding_recurrence", "error") if measured.largest > _ABOUT_TO_OVERFLOW else None


def is_recurrent(suspect: Suspect) -> bool:
    """Whether anything in the step is multiplied with the same weights again and again."""
    topology = suspect.topology
    if any(topology.by_type.get(kind) for kind in LOOPS):
        return True
    return any(len(_products_with(suspect, readers)) >= _MANY for readers in topology.readers)


def _is_singular(suspect: Suspect, op: int) -> bool:
    """Whether the op leaves the finite numbers at a point of its own. A softmax does so only where what goes in has."""
    return suspect.type_of(op) not in ("Softmax", "LogSoftmax") and accused(suspect, op) is not None


def _between(suspect: Suspect) -> list[int]:
    return unrecorded_between(suspect, suspect.producer) if suspect.producer >= 0 and not suspect.exact else []


def _growing_before(suspect: Suspect) -> int:
    """In front of an op: the nearest recurrence that may grow, if nothing that leaves the finite numbers at a point of
    its own is nearer or inside; -1 if there is none."""
    nearest = [suspect.culprit, *suspect.topology.ancestors(suspect.culprit)]
    if any(_is_singular(suspect, op) for op in nearest):
        return -1
    loop = _growing_in(suspect, nearest)
    return loop if loop >= 0 else _written_out(suspect, set(nearest))


def _growing_in(suspect: Suspect, ops: Iterable[int]) -> int:
    for op in ops:
        if suspect.type_of(op) in LOOPS and _grows(suspect, op):
            return first_of_loop(suspect, op)
    return -1


def _grows(suspect: Suspect, loop: int) -> bool:
    """Whether a loop hands on a product with what the round before handed on, and nothing bounds it."""
    edges = suspect.topology.trace.ops[loop].inputs
    results = [edge.op for edge in edges if edge.carried and edge.input == 2 and edge.op >= 0]
    products = [op for op in _unbounded_before(suspect, results) if suspect.type_of(op) in PRODUCTS]
    return any(loop in _unbounded_before(suspect, [op]) for op in products if not _has_bounded_factor(suspect, op))


def _unbounded_before(suspect: Suspect, starts: Iterable[int]) -> list[int]:
    """The ops that some ops are made of, as far as nothing bounds them; a loop's own variables end the way."""

    def unbounded(ops: Iterable[int]) -> list[int]:
        return [op for op in ops if suspect.type_of(op) not in _BOUNDED]

    def before(op: int) -> list[int]:
        return [] if suspect.type_of(op) in LOOPS else unbounded(suspect.topology.sources(op))

    return list(walked(unbounded(starts), before))


def _has_bounded_factor(suspect: Suspect, product: int) -> bool:
    """A gate: what it lets through is not more than there was."""
    factors = [edge.op for edge in suspect.topology.trace.ops[product].inputs if edge.op >= 0]
    return any(suspect.type_of(op) in _BOUNDED for op in factors)


def _written_out(suspect: Suspect, nearest: set[int]) -> int:
    """The last of many products with the same variable, each made of the one before; -1 if there are none."""
    for readers in suspect.topology.readers:
        products = sorted(op for op in _products_with(suspect, readers) if op in nearest)
        if len(products) >= _MANY and _is_chain(suspect, products):
            return products[-1]
    return -1


def _products_with(suspect: Suspect, readers: Iterable[int]) -> set[int]:
    queue, found = list(readers), set()
    for op in queue:  # grows while it is walked
        for user in suspect.topology.onward(op):
            if suspect.type_of(user) in PRODUCTS:
                found.add(user)
            elif suspect.type_of(user) in _COPIES and user not in queue:
                queue.append(user)
    return found


def _is_chain(suspect: Suspect, products: list[int]) -> bool:
    """Whether nothing bounds what goes from the first product to the last, through all of them."""
    before = set(_unbounded_before(suspect, products[-1:]))
    return before.issuperset(products)
