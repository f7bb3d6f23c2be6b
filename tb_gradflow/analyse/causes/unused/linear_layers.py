"""Several layers and no activation: the model is one linear function, which a single layer computes as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import with_activations
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, layer_of

_LINEAR = frozenset({"MatMul", "BiasAdd", "AddV2", "ReadVariableOp", "Identity", "Reshape", "Cast", "Squeeze"})
_STEPS = 20
"""After fewer steps, a loss says nothing."""

_FALLEN = 2.0
"""A loss that was this many times larger has fallen."""

_KERNELS = frozenset({"MatMul", "BatchMatMulV2", "Einsum", "Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2dNative"})


def rule(suspect: Suspect) -> Verdict | None:
    """All layers of a model are dense ones, and nothing but the last has an activation. A layer that is narrower than
    what it gets and than what follows has a purpose: it limits the rank, as in a linear autoencoder. Or several heads
    share it. It may be what is meant: so only in a training whose loss has hardly fallen."""
    if suspect.target < 0 or not _has_hardly_fallen(suspect):
        return None
    topology, target = suspect.topology, suspect.target
    for chain in suspect.measured.once(("linear", target), lambda: list(_chains(topology, target))):
        if suspect.leads_to(chain[-1]):
            return Verdict("linear_layers", "info", chain[-1], facts=chain)
    return None


def _has_hardly_fallen(suspect: Suspect) -> bool:
    measured = suspect.measured
    known = not measured.alone and measured.step >= _STEPS and suspect.target < len(measured.losses)
    return known and measured.shrunk_by(suspect.target) < _FALLEN


def _chains(topology: Topology, target: int) -> Iterator[list[int]]:
    """The products of each linear model, from the first to the last."""
    ops = topology.trace.ops
    arrives = topology.gradient(target).hops
    for last in topology.by_type.get("MatMul", ()):
        if arrives[last] < 0 or ops[last].backward or any(True for _ in _products_behind(topology, last)):
            continue
        before = [op for op in topology.made_by(last) if topology.of_variables[op]]
        products = [*sorted(op for op in before if ops[op].type == "MatMul"), last]
        widths = [_widths(topology, op) for op in products]
        if (
            len(products) > 1
            and all(ops[op].type in _LINEAR for op in before)
            and all(set(_products_behind(topology, op)) < {*products} for op in products)
            and all(layer_of(topology.trace, op) for op in products)
            and all(one and two and one[1] == two[0] >= min(one[0], two[1]) for one, two in pairwise(widths))
        ):
            yield products


def _products_behind(topology: Topology, op: int) -> Iterator[int]:
    ops = topology.trace.ops
    return (each for each in walked([op], topology.onward) if each != op and ops[each].type in _KERNELS)


def _widths(topology: Topology, product: int) -> Sequence[int]:
    """Of the kernel that an op multiplies by: its rows and columns; none if there is none, or several, or if it is
    frozen: what is computed with it is data then."""
    trace = topology.trace
    read = [trace.ops[edge.op].reads for edge in trace.ops[product].inputs if edge.op >= 0]
    kernels = [trace.variables[each].shape for each in read if each is not None and trace.variables[each].trainable]
    sizes = [size for size in kernels[0] if size is not None] if len(kernels) == 1 else []
    return sizes if len(sizes) == 2 else ()


def message_and_fix(group: Group) -> Text:
    layers = [f"`{layer_of(group.trace, op)}`" for op in group.verdict.facts]
    listed = f"{', '.join(layers[:-1])} and {layers[-1]}"
    return Template(
        f"{{they_get}} the gradient of one linear function: no activation stands between the layers {listed}, so that "
        "together they compute what a single one computes.",
        f'Give {", ".join(layers[:-1])} an activation, `activation="relu"`; or, if the function is linear, leave '
        f"{'it' if len(layers) == 2 else 'them'} out.",
    )(group)


CAUSE = Cause(
    name="linear_layers",
    meaning="a model of several dense layers without an activation between them, which a single one could replace, in "
    "a training whose loss has hardly fallen after 20 steps. Not where a layer is narrower than its neighbours, as in "
    "a linear autoencoder, and not where anything else, such as a normalisation or a dropout, stands between them",
    severity="info",
    fix="an activation in all layers but the last",
    text=message_and_fix,
    plight="the gradient of one linear function",
    told_at_once=True,
    edits=(with_activations,),
)
