"""Texts for positions that depend on the order of values: from a sort, or of the largest values."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.discrete import INDEX_INPUTS
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import is_float, tensor_of
from tb_gradflow.analyse.words.code import is_simple
from tb_gradflow.analyse.words.names import Group, call_of, namespace


def largest(group: Group) -> str:
    """For the positions of the largest values, which become weights of the selected values: top-k pooling (Gao and Ji,
    2019)."""
    call = call_of(group)
    whole = call.text if call is not None else "tf.math.top_k(x, k)"
    keras = namespace(group) == "keras.ops"
    if picks := _picks_from_others(group):
        gate = "keras.ops.sigmoid" if keras else "tf.sigmoid"
        weights = f"{gate}(values)" if _are_numbers(group, picks) else f"{gate}(values)[..., None]"
        picked = f"{_gather(group, keras)} * {weights}"
        return f"Weight what is gathered by its values: `values, places = {whole}`, then `{picked}`."
    users = group.suspect.topology.consumers[group.culprit]
    if any(group.suspect.type_of(user) == "OneHot" for user, _ in users):
        softmax = "keras.ops.softmax" if keras else "tf.nn.softmax"
        scores = call.subject if call is not None else "x"
        return (
            f"Let the gradient be that of soft weights: `soft = {softmax}({scores}, axis=-1)`, then "
            "`soft + {lib}.stop_gradient(mask - soft)`, where `mask` has a one for each of the largest."
        )
    part = "[0]" if keras else ".values"
    return f"Use the values, which are differentiable, not the indices: `{whole}{part}`."


def _gather(group: Group, keras: bool) -> str:
    """Selects rows, or rows of each example if there are positions for each."""
    places = group.op.outputs[-1].shape if group.op is not None else None
    if places is not None and len(places) > 1:
        return "keras.ops.take_along_axis(rows, places[..., None], axis=1)" if keras else _OF_EACH
    return "keras.ops.take(rows, places, axis=0)" if keras else "tf.gather(rows, places)"


_OF_EACH = "tf.gather(rows, places, batch_dims=1)"


def in_order(group: Group) -> str:
    """Code that selects from other tensors needs those in order; code that gathers from the sorted tensor needs the
    sorted values; code that computes with the order needs ranks."""
    part = discrete_part(group.suspect)
    users = [*part.ops[1:], *(use.consumer for use in part.uses)]
    call, keras = call_of(group), namespace(group) == "keras.ops"
    x = call.subject if call is not None and is_simple(call.subject) else "v"
    first = "" if call is None or x != "v" else "`v = {x}`, then "
    down = "DESCENDING" in (call.text.upper() if call is not None else "")
    if picks := _picks_from_others(group):
        return _in_soft_order(x, first.replace("then ", ""), down, keras, _are_numbers(group, picks))
    if not part.uses or any(group.suspect.type_of(user) in INDEX_INPUTS for user in users):
        return "Sort the values, which is differentiable: `{lib}.sort({x})`."
    total = "keras.ops.sum" if keras else "tf.reduce_sum"
    places = ("None, :", ":, None") if down else (":, None", "None, :")
    rows = [f"{x}[..., {place}]" for place in places]
    return f"Use soft ranks: {first}`{total}({{lib}}.sigmoid(({rows[0]} - {rows[1]}) / 0.1), axis=-1)`."


def _in_soft_order(x: str, first: str, down: bool, keras: bool, numbers: bool) -> str:
    """SoftSort (Prillo and Eisenschlos, 2020): each row of the matrix is almost one at the position of its value."""
    softmax = "keras.ops.softmax" if keras else "tf.nn.softmax"
    product = "keras.ops.matmul" if keras else "tf.linalg.matvec" if numbers else "tf.matmul"
    order = f"-{{lib}}.sort(-{x})" if down else f"{{lib}}.sort({x})"
    matrix = f"{softmax}(-{{lib}}.abs({order}[..., :, None] - {x}[..., None, :]) / 0.1)"
    return f"Use a soft sort: {first}`p = {matrix}`, then `{product}(p, rows)`."


def _picks_from_others(group: Group) -> set[int]:
    """The ops that select at the positions, if the positions have no other use, and if they select from tensors other
    than the one that was ordered; otherwise none."""
    topology, ops = group.suspect.topology, group.trace.ops
    influence = topology.influence(group.suspect.target).hops
    searched = topology.made_by(group.culprit)
    queue, picks = [group.culprit], set[int]()
    for place in queue:  # grows while it is walked
        for user, edge in topology.consumers[place]:
            tensor = tensor_of(group.trace, edge)
            if influence[user] < 0 or (tensor is not None and is_float(tensor.dtype)):
                continue
            if not any(is_float(tensor.dtype) for tensor in ops[user].outputs):
                queue.extend({user}.difference(queue))
            elif ops[user].type not in _PICKING or edge.input == 0:
                return set()
            else:
                picks.add(user)
    inputs = [edge for op in picks for edge in ops[op].inputs if edge.op >= 0 and edge.input == 0]
    return set() if any(edge.op in searched for edge in inputs) else picks


_PICKING = ("GatherV2", "GatherNd", "Gather")


def _are_numbers(group: Group, picks: set[int]) -> bool:
    """Whether a single number is selected at each position."""
    places = group.op.outputs[-1].shape if group.op is not None else None
    picked = [group.trace.ops[op].outputs[0].shape for op in picks]
    return places is not None and all(shape is not None and len(shape) == len(places) for shape in picked)
