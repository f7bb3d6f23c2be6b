"""Conditions on a decoded record beyond the right fields, checked once, where it enters the program. A log may come
from anyone. After these checks every index refers to something that exists, every size and count is possible, and no
part is larger than a program could have recorded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tb_gradflow.record.codec import MalformedRecord
from tb_gradflow.record.expected import is_pattern
from tb_gradflow.record.experiments import Influence, Slope
from tb_gradflow.record.schema import (
    BatchFit,
    Edge,
    Op,
    Session,
    StepValues,
    Target,
    TensorGradient,
    TermTensor,
    Trace,
    Trial,
    Trials,
)

MOST_OPS = 200_000
"""Six times the largest trace that anybody has recorded."""
MOST_ROWS = 1_000_000
"""Rows of `Chunk.gradients`."""
MOST_INPUTS = 65_536
"""Inputs of one op."""
MOST_DIMENSIONS = 254
"""As in TensorFlow."""
MOST_ELEMENTS = 2**62
"""Elements of a tensor: what an int64 can count."""
MOST_CODE = 400_000
"""Characters of the user's files in a trace: twice what a recorder keeps."""
MOST_SCOPES = 1_000
"""Name scopes around an op."""
MOST_PATTERNS = 1_000
"""Patterns of variables that are meant to get no gradient; names of variables are none."""

_ID = re.compile("[0-9]{13}", re.ASCII)

# Field of a trace, field of its members, what that indexes, and the lowest index: -1 means none.
_INDICES = (
    ("targets", "op", "ops", -1),
    ("targets", "source", "sources", 0),
    ("variable_gradients", "target", "targets", 0),
    ("variable_gradients", "variable", "variables", 0),
    ("tensor_gradients", "target", "targets", 0),
    ("tensor_gradients", "op", "ops", -1),
    ("gradient_checks", "op", "ops", 0),
    ("gradient_checks", "source", "sources", 0),
    ("movements", "variable", "variables", 0),
    ("movements", "optimizer", "optimizers", 0),
    ("overrides", "source", "sources", 0),
    ("dropped_masks", "target", "targets", 0),
    ("dropped_masks", "op", "ops", -1),
    ("terms", "target", "targets", 0),
    ("terms", "op", "ops", -1),
    ("terms", "source", "sources", 0),
    ("term_gradients", "term", "terms", 0),
    ("term_gradients", "variable", "variables", 0),
    ("term_cosines", "target", "targets", 0),
    ("term_cosines", "variable", "variables", 0),
    ("deferred", "variable", "variables", 0),
    ("deferred", "summed_at", "sources", 0),
    ("deferred", "condition_at", "sources", 0),
    ("replaced", "variable", "variables", 0),
    ("replaced", "by", "variables", 0),
    ("replaced", "at", "sources", 0),
    ("term_tensors", "term", "terms", 0),
    ("term_tensors", "op", "ops", 0),
    ("ranges", "op", "ops", 0),
    ("passed", "op", "ops", 0),
    ("clips", "optimizer", "optimizers", 0),
    ("clips", "at", "sources", 0),
    ("loss_scales", "optimizer", "optimizers", 0),
    ("raised", "op", "ops", -1),
    ("raised", "source", "sources", 0),
)

# Fields whose members have a `row` of `Chunk.gradients`.
_WITH_ROWS = (
    "inputs",
    "variable_gradients",
    "tensor_gradients",
    "movements",
    "dropped_masks",
    "terms",
    "term_gradients",
    "term_cosines",
    "term_tensors",
    "ranges",
    "passed",
    "clips",
    "loss_scales",
)


def check_session(session: Session) -> None:
    """Raises MalformedRecord, as all of these do."""
    if not _ID.fullmatch(session.id):
        raise _wrong("Session.id", "thirteen digits", session.id)
    patterns = sum(map(is_pattern, session.expected))
    if patterns > MOST_PATTERNS:
        raise _wrong("Session.expected", f"at most {MOST_PATTERNS} patterns", patterns)


def check_trace(trace: Trace) -> None:
    """Raises MalformedRecord if a number in the trace is impossible."""
    if trace.index < 0:
        raise _wrong("Trace.index", "a number from 0", trace.index)
    if len(trace.ops) > MOST_OPS:
        raise _wrong("Trace.ops", f"at most {MOST_OPS}", len(trace.ops))
    for number, op in enumerate(trace.ops):
        _check_op(trace, number, op)
    for number, variable in enumerate(trace.variables):
        _check_shape(f"Trace.variables[{number}].shape", variable.shape)
        _check_scopes(f"Trace.variables[{number}].name", variable.name)
    for number, layer in enumerate(trace.layers):
        _check_scopes(f"Trace.layers[{number}].scope", layer.scope)
    for name, field, indexed, least in _INDICES:
        _check_indices(name, getattr(trace, name), field, indexed, len(getattr(trace, indexed)), least)
    for name in _WITH_ROWS:
        _check_indices(name, getattr(trace, name), "row", "rows", MOST_ROWS, 0)
    for number, clip in enumerate(trace.clips):
        for place, clipped in enumerate(clip.variables):
            _check_below(f"Trace.clips[{number}].variables[{place}]", clipped, len(trace.variables))
    for name in ("targets", "tensor_gradients", "term_tensors"):
        for number, each in enumerate(getattr(trace, name)):
            _check_output(f"Trace.{name}[{number}]", trace, each)
    for number, target in enumerate(trace.targets):
        _check_least(f"Trace.targets[{number}].sources", target.sources, 0)
    for name in ("ranges", "passed"):
        for number, given in enumerate(getattr(trace, name)):
            _check_below(f"Trace.{name}[{number}].input", given.input, MOST_INPUTS)
    for number, each in enumerate(trace.ranges):
        for place, row in enumerate(each.beyond):
            _check_below(f"Trace.ranges[{number}].beyond[{place}]", row, MOST_ROWS)
    for number, optimizer in enumerate(trace.optimizers):
        _check_least(f"Trace.optimizers[{number}].accumulates", optimizer.accumulates, 0)
    for number, check in enumerate(trace.gradient_checks):
        for place, each in enumerate(check.inputs):
            at = f"Trace.gradient_checks[{number}].inputs[{place}]"
            _check_least(f"{at}.input", each.input, 0)
            _check_shape(f"{at}.shape", each.shape)
            _check_shape(f"{at}.returned_shape", each.returned_shape)
    _check_code(trace)


def check_values(values: StepValues, trace: Trace) -> None:
    """Raises MalformedRecord if they do not belong to a step of that trace."""
    ops, targets = len(trace.ops), len(trace.targets)
    _check_least("StepValues.batch", values.batch, -1)
    for number, value in enumerate(values.values):
        at = f"StepValues.values[{number}]"
        _check_below(f"{at}.op", value.op, ops)
        if value.output < -1 or value.input < -1 or (value.output < 0) == (value.input < 0):
            raise _wrong(at, "an output or an input", f"output {value.output} and input {value.input}")
        _check_shape(f"{at}.shape", value.shape, least=0)
        for field in ("zeros", "negative", "nan_count", "inf_count", "negative_inf_count"):
            _check_least(f"{at}.{field}", getattr(value, field), 0)
        for field in ("rows", "columns"):
            _check_rows(f"{at}.{field}", getattr(value, field))
    for number, gradient in enumerate(values.gradient_rows):
        at = f"StepValues.gradient_rows[{number}]"
        _check_below(f"{at}.target", gradient.target, targets)
        _check_below(f"{at}.op", gradient.op, ops)
        _check_least(f"{at}.output", gradient.output, 0)
        _check_rows(f"{at}.rows", gradient.rows)
    for number, example in enumerate(values.examples):
        _check_least(f"StepValues.examples[{number}].row", example.row, 0)
        _check_least(f"StepValues.examples[{number}].count", example.count, len(example.numbers))
    for number, data in enumerate(values.data_rows):
        _check_least(f"StepValues.data_rows[{number}].row", data.row, 0)
        _check_least(f"StepValues.data_rows[{number}].index", data.index, 0)
        _check_least(f"StepValues.data_rows[{number}].equal", data.equal, 1)
    for number, kept in enumerate(values.kept_numbers):
        _check_least(f"StepValues.kept_numbers[{number}].line", kept.line, 1)
    moves: dict[str, Sequence[Influence | Slope]] = {"influences": values.influences, "slopes": values.slopes}
    for kind, listed in moves.items():
        for number, move in enumerate(listed):
            at = f"StepValues.{kind}[{number}]"
            _check_below(f"{at}.target", move.target, targets)
            _check_below(f"{at}.variable", move.variable, len(trace.variables))
    for number, weights in enumerate(values.weights):
        _check_below(f"StepValues.weights[{number}].variable", weights.variable, len(trace.variables))
    if values.spike is not None:
        _check_below("StepValues.spike.target", values.spike.target, targets)
        _check_least("StepValues.spike.steps", values.spike.steps, 0)
        _check_least("StepValues.spike.earlier", values.spike.earlier, 0)
        for number, moved in enumerate(values.spike.moved):
            _check_below(f"StepValues.spike.moved[{number}].variable", moved.variable, len(trace.variables))
            _check_least(f"StepValues.spike.moved[{number}].count", moved.count, 0)
        for number, trial in enumerate(values.spike.trials):
            _check_least(f"StepValues.spike.trials[{number}].copied", trial.copied, -1)
            for row in trial.rows:
                _check_least(f"StepValues.spike.trials[{number}].rows", row, 0)
    for number, reaction in enumerate(values.reactions):
        at = f"StepValues.reactions[{number}]"
        _check_below(f"{at}.op", reaction.op, ops)
        _check_below(f"{at}.target", reaction.target, targets)
    for number, search in enumerate(values.line_searches):
        at = f"StepValues.line_searches[{number}]"
        _check_below(f"{at}.target", search.target, targets)
        if len(search.factors) != len(search.losses):
            raise _wrong(at, "a loss for each factor", f"{len(search.factors)} factors and {len(search.losses)} losses")
    for number, intervention in enumerate(values.interventions):
        at = f"StepValues.interventions[{number}]"
        _check_below(f"{at}.target", intervention.target, targets)
        if intervention.op != -1:
            _check_below(f"{at}.op", intervention.op, ops)
        _check_least(f"{at}.input", intervention.input, -1)
        _check_least(f"{at}.copied", intervention.copied, -1)
        for row in intervention.rows:
            _check_least(f"{at}.rows", row, 0)
        for place, changed in enumerate(intervention.gradients):
            _check_least(f"{at}.gradients[{place}].was_broken", changed.was_broken, 0)
            _check_least(f"{at}.gradients[{place}].broken", changed.broken, 0)
            _check_below(f"{at}.gradients[{place}].variable", changed.variable, len(trace.variables))


def _check_op(trace: Trace, number: int, op: Op) -> None:
    # Written out, because there may be thirty thousand of them.
    sources, variables = len(trace.sources), len(trace.variables)
    if op.source is not None and not 0 <= op.source < sources:
        raise _no_such(f"Trace.ops[{number}].source", "sources", sources, op.source)
    if op.reads is not None and not 0 <= op.reads < variables:
        raise _no_such(f"Trace.ops[{number}].reads", "variables", variables, op.reads)
    if op.writes is not None and not 0 <= op.writes < variables:
        raise _no_such(f"Trace.ops[{number}].writes", "variables", variables, op.writes)
    _check_scopes(f"Trace.ops[{number}].name", op.name)
    for place, edge in enumerate(op.inputs):
        if not -1 <= edge.op < len(trace.ops):
            raise _no_such(f"Trace.ops[{number}].inputs[{place}].op", "ops", len(trace.ops), edge.op)
        if edge.op >= number and not edge.carried:
            at = f"Trace.ops[{number}].inputs[{place}].op"
            raise _wrong(at, "an op before this one, as no iteration carries the value", edge.op)
        if not 0 <= edge.input < MOST_INPUTS or edge.output < 0:
            at = f"Trace.ops[{number}].inputs[{place}]"
            raise _wrong(at, "an input and an output from 0", f"input {edge.input} and output {edge.output}")
        # The state of a variable is no output of the op that assigns it.
        if edge.op >= 0 and edge.passes != "state":
            _check_output(f"Trace.ops[{number}].inputs[{place}]", trace, edge)
    for place, tensor in enumerate(op.outputs):
        _check_shape(f"Trace.ops[{number}].outputs[{place}].shape", tensor.shape)
    for place, constant in enumerate(op.constants):
        _check_below(f"Trace.ops[{number}].constants[{place}].input", constant.input, MOST_INPUTS)
    for place, given in enumerate(op.given):
        _check_below(f"Trace.ops[{number}].given[{place}].input", given.input, MOST_INPUTS)
        _check_shape(f"Trace.ops[{number}].given[{place}].shape", given.shape)
    if op.input_count is not None:
        _check_below(f"Trace.ops[{number}].input_count", op.input_count, MOST_INPUTS + 1)


def _check_output(place: str, trace: Trace, named: Edge | Target | TensorGradient | TermTensor) -> None:
    """Of the op that is named, unless it was left out."""
    outputs = len(trace.ops[named.op].outputs) if named.op >= 0 else None
    if named.output < 0 or (outputs is not None and named.output >= outputs):
        expected = "a number from 0" if outputs is None else f"one of the {outputs} outputs of that op"
        raise _wrong(f"{place}.output", expected, named.output)


def _check_code(trace: Trace) -> None:
    for number, source in enumerate(trace.sources):
        _check_least(f"Trace.sources[{number}].line", source.line, 0)
    for number, passage in enumerate(trace.passages):
        _check_least(f"Trace.passages[{number}].line", passage.line, 1)
    _check_trials("Trace", trace.trials)
    _check_fits("Trace", trace.fits)
    kept = sum(len(passage.text) + sum(map(len, passage.after)) for passage in trace.passages)
    if kept > MOST_CODE:
        raise _wrong("Trace.passages", f"at most {MOST_CODE} characters", kept)


def check_trials(found: Trials) -> None:
    """Raises MalformedRecord if no program could have recorded them."""
    _check_trials("Trials", found.trials)
    _check_fits("Trials", found.fits)
    written = sum(len(trial.after) for trial in found.trials)
    if written > MOST_CODE:
        raise _wrong("Trials.trials", f"at most {MOST_CODE} characters", written)


def _check_trials(of: str, trials: Sequence[Trial]) -> None:
    for number, trial in enumerate(trials):
        _check_least(f"{of}.trials[{number}].line", trial.line, 1)
        _check_least(f"{of}.trials[{number}].end_line", trial.end_line, trial.line)
        _check_least(f"{of}.trials[{number}].step", trial.step, 0)


def _check_fits(of: str, fits: Sequence[BatchFit]) -> None:
    for number, fit in enumerate(fits):
        _check_least(f"{of}.fits[{number}].step", fit.step, 0)
        _check_least(f"{of}.fits[{number}].rows", fit.rows, -1)


def _check_indices(name: str, members: Iterable[Any], field: str, indexed: str, count: int, least: int) -> None:
    for number, member in enumerate(members):
        index = getattr(member, field)
        if index is not None and not least <= index < count:
            raise _no_such(f"Trace.{name}[{number}].{field}", indexed, count, index)


def _check_shape(place: str, shape: Sequence[int] | None, least: int = -1) -> None:
    if shape and (len(shape) > MOST_DIMENSIONS or min(shape) < least):
        found = shape if len(shape) <= MOST_DIMENSIONS else f"{len(shape)} sizes"
        raise _wrong(place, f"at most {MOST_DIMENSIONS} sizes from {least}", found)
    if shape and abs(math.prod(shape)) > MOST_ELEMENTS:
        raise _wrong(place, f"at most {MOST_ELEMENTS} elements", shape)


def _check_rows(place: str, rows: Any) -> None:
    if rows is None:
        return
    if rows.count < len(rows.first):
        raise _wrong(f"{place}.count", f"at least the {len(rows.first)} that are listed", rows.count)
    if rows.first and min(rows.first) < 0:
        raise _wrong(f"{place}.first", "numbers from 0", min(rows.first))


def _check_scopes(place: str, name: str) -> None:
    if name.count("/") > MOST_SCOPES:
        raise _wrong(place, f"at most {MOST_SCOPES} scopes", name.count("/"))


def _check_least(place: str, number: int | None, least: int) -> None:
    if number is not None and number < least:
        raise _wrong(place, f"a number from {least}", number)


def _check_below(place: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise _wrong(place, f"a number from 0 to {count - 1}" if count else "none, as there is nothing to name", index)


def _no_such(place: str, indexed: str, count: int, found: int) -> MalformedRecord:
    return _wrong(place, f"the index of one of {count} {indexed}", found)


def _wrong(place: str, expected: str, found: object) -> MalformedRecord:
    return MalformedRecord(place, f"expected {expected}, got {found!r:.60}")
