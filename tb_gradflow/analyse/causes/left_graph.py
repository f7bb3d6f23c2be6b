"""Values that leave TensorFlow, or its tape, and come back as mere numbers."""

from __future__ import annotations

import re

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.dead_terms import term_in_vain
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import PYTHON, SNAPSHOT, Op

# The same name scope, entered again.
_NUMBERED = re.compile(r"_[0-9]+$")

_STOPS = ("StopGradient", "PreventGradient")
_WRITING = (
    *("Assign", "ResourceStridedSliceAssign", "ResourceScatter", "StridedSliceAssign"),
    *("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub"),
)

# `tf.py_function` has a gradient function, and what its body loses arrives as zeros.
_FUNCTIONS = ("PyFunc", "PyFuncStateless")
_PYTHON = frozenset({*_FUNCTIONS, "EagerPyFunc", PYTHON})


def python_escape(suspect: Suspect) -> Verdict | None:
    """Python code computes the value: `tf.numpy_function`, `tf.py_function` with NumPy in it, or `.numpy()` and its
    like in a step that runs eagerly."""
    return Verdict("python_escape", "error") if suspect.op.type in _PYTHON else None


def partly_in_python(suspect: Suspect) -> Verdict | None:
    """A gradient arrives, and not all of it: the value also goes through a `tf.numpy_function` on the way to the loss,
    which gets a gradient and hands none on. Information: a number that scales the rest may be meant so."""
    if suspect.target < 0:
        return None
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    arrives = topology.gradient(suspect.target).hops
    for op in sorted(place for kind in _FUNCTIONS for place in topology.by_type.get(kind, ())):
        given = {edge.op for edge in topology.trace.ops[op].inputs if edge.op >= 0}
        made = given.union(*(topology.made_by(each) for each in given)) if arrives[op] >= 0 else given
        if arrives[op] >= 0 and not made.isdisjoint(readers):
            return Verdict("python_escape", "info", op)
    return None


def variable_rebound(suspect: Suspect) -> Verdict | None:
    """What held the variable holds a tensor now; asked of connected variables too, as that may be since this step."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    return Verdict("variable_rebound", "error") if variable.rebound else None


def python_snapshot(suspect: Suspect) -> Verdict | None:
    """A tensor that was computed from the variable before the step takes its place in the step."""
    return Verdict("python_snapshot", "error") if suspect.op.type == SNAPSHOT else None


def variable_assign(suspect: Suspect) -> Verdict | None:
    """The value is stored in a `tf.Variable`, or in a metric, and read back: the tape does not look into those."""
    written = suspect.op.writes is not None or suspect.op.type.startswith(_WRITING)
    stored = written or any(edge.passes == "state" for edge in suspect.edges)
    return Verdict("variable_assign", "error") if stored else None


def stop_gradient_misuse(suspect: Suspect) -> Verdict | None:
    """`tf.stop_gradient` on the only way. A straight-through estimator has another way, and is no suspect."""
    return Verdict("stop_gradient_misuse", "error") if suspect.op.type in _STOPS else None


def term_left_out(suspect: Suspect) -> Verdict | None:
    """What a straight-through line leaves without a gradient, such as the codes of a codebook, has a term of its own
    to learn from; and that term is computed and never reaches the loss."""
    left = suspect.state.status == "disconnected" and suspect.op.type in _STOPS
    if not left or not keeps_value_alone(suspect.topology, suspect.culprit):
        return None
    term = term_in_vain(suspect.topology, suspect.state.variable)
    return Verdict("output_not_used", "error", term) if term >= 0 else None


def keeps_value_alone(topology: Topology, stop: int) -> bool:
    """Whether a `stop_gradient` is that of `x + stop_gradient(q - x)`, which has the value of `q` and hands the
    gradient to `x`."""
    ops = topology.trace.ops
    inner = ops[stop].inputs[0].op if ops[stop].inputs else -1
    if inner < 0 or ops[inner].type != "Sub":
        return False
    taken = [edge.op for edge in ops[inner].inputs if edge.input == 1 and edge.op >= 0]
    sums = [user for user, _ in topology.consumers[stop] if ops[user].type in ("AddV2", "Add")]
    added = [edge.op for user in sums for edge in ops[user].inputs if edge.op >= 0 and edge.op != stop]
    return any(one == other or _reads_same(ops[one], ops[other]) for one in taken for other in added)


def _reads_same(one: Op, other: Op) -> bool:
    return one.reads is not None and one.reads == other.reads


def density_of_own_sample(suspect: Suspect) -> Verdict | None:
    """What is stopped only weighs the density of a sample, as policy gradients do it, and the density is that of the
    distribution which the sample was drawn from: it takes out again what the variable has put in.

    TensorFlow Probability remembers what a sample was made of, so that not even a way is left.
    """
    if suspect.op.type not in _STOPS:
        return None
    topology, once, target = suspect.topology, suspect.measured.once, suspect.target
    densities = once(("densities", target), lambda: _with_a_gradient(_made_by(topology, "log_prob"), topology, target))
    # Most models have none, and a stop at each of many layers.
    if not densities:
        return None
    samples = once(("samples",), lambda: _made_by(topology, "sample"))
    reached = topology.reached_from(topology.readers[suspect.state.variable])
    drawn = {scope for op, scope in samples.items() if op in reached}
    own = [op for op, scope in densities.items() if scope in drawn]
    return Verdict("gradient_cancellation", "error", own[-1]) if own else None


def density_forgets_sample(suspect: Suspect) -> Verdict | None:
    """The way of the variable ends in a distribution's sample, and the loss is made of that distribution's density: of
    its own sample TensorFlow Probability remembers the noise, and asks for the density of that."""
    if suspect.culprit < 0:
        return None
    samples, densities = _made_by(suspect.topology, "sample"), _made_by(suspect.topology, "log_prob")
    scope = samples.get(suspect.culprit)
    own = [op for op, other in densities.items() if other == scope]
    return Verdict("gradient_cancellation", "warning", own[-1]) if scope is not None and own else None


def _with_a_gradient(ops: dict[int, str], topology: Topology, target: int) -> dict[int, str]:
    arrives = topology.gradient(target).hops
    return {op: scope for op, scope in ops.items() if arrives[op] >= 0}


def _made_by(topology: Topology, method: str) -> dict[int, str]:
    """The distribution of each op that a method of one made. Its scopes are numbered, `Normal_1`."""
    parts = ((op, each.name.partition(f"/{method}/")) for op, each in enumerate(topology.trace.ops))
    return {op: scope for op, (before, found, _) in parts if found and (scope := _NUMBERED.sub("", before))}


def is_stopped_behind(suspect: Suspect) -> bool:
    """Whether every way on from the cut leads through a `stop_gradient`."""
    if suspect.op.type in _STOPS:
        return False
    return suspect.culprit not in suspect.measured.once(("not stopped", suspect.target), lambda: _not_stopped(suspect))


def _not_stopped(suspect: Suspect) -> set[int]:
    """The ops with a way on to where a gradient arrives that leads through no `stop_gradient`."""
    topology, arrives = suspect.topology, suspect.topology.gradient(suspect.target).hops
    stack = [op for op, hops in enumerate(arrives) if hops >= 0 and suspect.type_of(op) not in _STOPS]
    found: set[int] = set()
    while stack:
        for source in topology.sources(stack.pop()):
            if source not in found:
                found.add(source)
                if suspect.type_of(source) not in _STOPS:
                    stack.append(source)
    return found
