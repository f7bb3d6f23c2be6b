"""Sentences from the measured forward pass about an op that broke: its input, and the rows of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tb_gradflow.analyse.graph.op_sets import OVERFLOWING, SAME_ELEMENTS, SINGULAR_INPUT
from tb_gradflow.analyse.step.birth import Values, birth_of, is_bad, is_infinite, is_nan, values_of
from tb_gradflow.analyse.words.code import is_simple
from tb_gradflow.analyse.words.names import Group, call_of
from tb_gradflow.record.schema import DataRow, OpValue, Rows

CAUSES = frozenset(
    {"acos_at_one", "degenerate_decomposition", "exp_overflow", "exploding_recurrence", "fp16_overflow", "log_zero"}
    | {
        "nonfinite_input",
        "not_finite",
        "pow_fraction_at_zero",
        "softmax_all_masked",
        "sqrt_at_zero",
        "where_inactive_branch",
    }
    | {"zero_over_zero"}
)
"""Findings with these causes report values."""

# The largest exponent whose exponential is finite in that dtype.
_EXPONENT = {"float16": 11.09, "bfloat16": 88.7, "float32": 88.7, "float64": 709.8}

_LARGEST = {"float16": "65504", "bfloat16": "3.4e38", "float32": "3.4e38", "float64": "1.8e308"}

# The user's names for a function that is not finite everywhere, if they differ from the name of the op in lower case.
_CALLED = {
    "RealDiv": ("/", "divide"), "Div": ("/", "divide"), "Pow": ("**", "pow", "power"), "Acos": ("acos", "arccos"),
    "Asin": ("asin", "arcsin"), "Atanh": ("atanh", "arctanh"), "Acosh": ("acosh", "arccosh"),
}  # fmt: skip

# The input that may be at a singular point of the function or its slope, and the user's names for such a function.
_ARGUMENT = {kind: (place, _CALLED.get(kind, (kind.lower(),))) for kind, place in SINGULAR_INPUT.items()}


# The number of rows that are listed, and of numbers in a row.
_WRITTEN, _SHOWN = 5, 8


def measured_values(group: Group) -> str:
    """The measured values, as sentences after a message; empty if there are none, or they add nothing."""
    if not is_broken(group):
        return ""
    values = values_of(group.suspect.measured)
    if values is None:
        # Only the ranges of some inputs are measured in each recorded step.
        given = _given(group, Values(group.suspect.topology, ())) if argument_of(group) is not None else ""
        return f" {given}" * bool(given)
    given, rows = _given(group, values) if group.culprit >= 0 else "", rows_of(group)
    measured = group.suspect.measured.values
    began = (
        f" Non-finite values first appear in {_written(rows, group)}.{_example(group, rows)}"
        f"{in_data_set(rows.first, measured.data_rows if measured is not None else ())}"
        if rows is not None
        else ""
    )
    return f" {given}" * bool(given) + began


def examples_of(group: Group) -> tuple[int, ...] | None:
    """The rows of the batch in which it begins, only the first if there are many; None if they are not known."""
    rows = rows_of(group) if is_broken(group) else None
    return rows.first if rows is not None else None


def in_data_set(rows: Sequence[int], known: Sequence[DataRow]) -> str:
    """Where rows of the batch are in the data set, as a sentence after another one; empty if that is not known of each
    of the first."""
    by_row = {each.row: each for each in known}
    found = [by_row[row] for row in rows[:_WRITTEN] if row in by_row]
    if not found or len(found) < len(rows[:_WRITTEN]):
        return ""
    said = [f"{each.index}{_one_of(each.equal)}" for each in found]
    if len(said) == 1:
        return f" {'That' if len(rows) == 1 else 'The first'} row is row {said[0]} of the data set."
    of = "These rows" if len(rows) == len(said) else f"The first {len(said)} of these rows"
    return f" {of} are rows {', '.join(said[:-1])} and {said[-1]} of the data set, in this order."


def _one_of(equal: int) -> str:
    return f" (the first of {equal} equal rows)" if equal > 1 else ""


def makes_nan_of_infinity(group: Group) -> bool:
    """Whether the culprit's measured input contains infinities but no NaN, and its output NaN."""
    values = values_of(group.suspect.measured)
    if values is None or group.culprit < 0 or not any(map(is_nan, values.outputs(group.culprit))):
        return False
    given = values.inputs(group.culprit)
    return any(map(is_infinite, given)) and not any(map(is_nan, given))


def argument_of(group: Group) -> OpValue | None:
    """The culprit's input, if it is a function that is not finite everywhere; None if it is not known."""
    measured = group.suspect.measured
    if group.op is None or group.op.type not in _ARGUMENT:
        return None
    values, place = values_of(measured), _ARGUMENT[group.op.type][0]
    if values is not None:
        return values.given_to(group.culprit, place)
    ends = measured.range_of(group.culprit, place)
    # The number of such elements is not known: the text uses the singular.
    return (
        None
        if ends is None
        else OpValue(group.culprit, -1, place, (), *ends, int(ends[0] == 0), int(ends[0] < 0), 0, 0, 0)
    )


def name_of_argument(group: Group) -> str:
    """That input as written in the user's line, in code quotes; empty if the line does not show it."""
    call = call_of(group)
    if call is None or group.op is None or group.op.type not in _ARGUMENT:
        return ""
    place, names = _ARGUMENT[group.op.type]
    if call.head.rpartition(".")[2] not in names or place >= len(call.arguments):
        return ""
    argument = call.arguments[place]
    return f"`{argument}`" if len(argument) <= 40 and "=" not in argument.partition("(")[0] else ""


def rows_of(group: Group) -> Rows | None:
    """The rows of the batch in which the culprit breaks; None if they are not known, or if it is all of them."""
    measured = group.suspect.measured
    values, known = values_of(measured), measured.values
    if values is None or known is None:
        return None
    if group.culprit < 0:
        return _rows_of_data(group, values)
    found = _rows_of_gradient(group) if measured.loss_is_finite(group.suspect.target) else None
    found = found if found is not None else _rows_of_value(group, values)
    return found if found is not None and found.count < known.batch else None


def is_broken(group: Group) -> bool:
    """Whether something is not finite, and the texts of the finding's cause mention values."""
    broken = group.suspect.state.status in ("nan", "inf") or not group.suspect.measured.loss_is_finite(
        group.suspect.target
    )
    is_known = group.culprit >= 0 or group.verdict.cause == "nonfinite_input"
    return broken and is_known and group.verdict.cause in CAUSES


def _rows_of_data(group: Group, values: Values) -> Rows | None:
    birth = birth_of(group.suspect.measured, group.suspect.target)
    given = values.given(birth.op) if birth is not None and birth.given else []
    return next((value.rows for value in given if is_bad(value) and value.rows is not None), None)


def _rows_of_gradient(group: Group) -> Rows | None:
    known, op = group.suspect.measured.values, group.op
    if known is None or op is None:
        return None
    inputs = {(edge.op, edge.output) for edge in op.inputs}
    listed = [each for each in known.gradient_rows if each.target == group.suspect.target]
    found = [each for each in listed if (each.op, each.output) in inputs]
    if not found and group.culprit == group.suspect.culprit:
        found = [each for each in listed if each.op == group.suspect.producer]
    return max((each.rows for each in found), key=lambda rows: rows.count, default=None)


def _rows_of_value(group: Group, values: Values) -> Rows | None:
    queue = [group.culprit]
    for op in queue:  # grows while it is walked
        bad = [value for value in values.outputs(op) if is_bad(value)]
        rows = next((value.rows for value in bad if value.rows is not None), None)
        if rows is not None or len(queue) > _WRITTEN:
            return rows
        queue.extend(user for user in group.suspect.topology.onward(op) if group.trace.ops[user].type in SAME_ELEMENTS)
    return None


def _written(rows: Rows, group: Group) -> str:
    known = group.suspect.measured.values
    assert known is not None
    shown = [str(each) for each in rows.first]
    if rows.count <= _WRITTEN:
        listed = " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
    else:
        listed = ", ".join(shown[: _WRITTEN - 1]) + f" and {rows.count - _WRITTEN + 1} more"
    return f"row{'s' * (rows.count > 1)} {listed} of the batch of {known.batch}{_column(group)}"


def _example(group: Group, rows: Rows) -> str:
    """The first of the rows, if the log may contain it; otherwise empty."""
    known = group.suspect.measured.values
    kept = [each for each in known.examples if each.row in rows.first] if known is not None else []
    if not kept:
        return ""
    numbers = ["not finite" if each is None else f"{each:.4g}" for each in kept[0].numbers[:_SHOWN]]
    more = ", …" * (kept[0].count > _SHOWN)
    return f" Row {kept[0].row} of `{kept[0].input}` is [{', '.join(numbers)}{more}]."


def _column(group: Group) -> str:
    """The position along the last axis, if it is the only one; otherwise empty."""
    values = values_of(group.suspect.measured)
    made = values.of(group.culprit) if values is not None and group.culprit >= 0 else None
    if made is None or made.columns is None or made.columns.count != 1 or made.shape[-1] < 2:
        return ""
    argument, name = argument_of(group), name_of_argument(group).strip("`")
    [column] = made.columns.first
    if argument is not None and argument.shape == made.shape and name and is_simple(name):
        return f", in `{name}[:, {column}]`"
    return f", in column {column}"


def _given(group: Group, values: Values) -> str:
    """The op's input, in one sentence; empty if it is not known, or explains nothing."""
    assert group.op is not None
    kind, dtype = group.op.type, group.op.outputs[0].dtype if group.op.outputs else ""
    value, name = argument_of(group), name_of_argument(group) or "the input"
    subject = f"{name[0].upper()}{name[1:]}"
    if kind in OVERFLOWING and value is not None:
        reached = value.largest if kind in ("Exp", "Expm1") else max(abs(value.largest), abs(value.smallest))
        limit = _EXPONENT.get(dtype, 0.0)
        return (
            f"{subject} reaches {reached:.4g}; the result overflows in {dtype} above {limit}."
            if reached > limit > 0
            else ""
        )
    if kind in ("Acos", "Asin", "Atanh", "Acosh") and value is not None:
        return f"{subject} ranges from {value.smallest:.9g} to {value.largest:.9g}."
    if kind == "Log1p" and value is not None:
        return f"{subject} goes down to {value.smallest:.9g}."
    if value is not None:
        return _at_zero(group, values, value, subject)
    if group.verdict.cause in ("exploding_recurrence", "fp16_overflow", "not_finite"):
        return _sizes(group, values, dtype)
    return ""


def _at_zero(group: Group, values: Values, value: OpValue, subject: str) -> str:
    count = prod(value.shape)
    divides = _ARGUMENT[group.op.type][0] == 1 and group.op.type != "Xlogy" if group.op is not None else False
    if value.zeros and (divides or not value.negative):
        of = f" in {value.zeros} of {count} elements" if count > 1 else ""
        made = values.of(group.culprit)
        above = ", and so is the numerator" if divides and made is not None and _all_nan(made) else ""
        subject = "The divisor" if divides and subject == "The input" else subject
        return f"{subject} is exactly 0{of}{above}."
    if value.negative and not divides:
        of = f" in {value.negative} of {count} elements" if count > 1 else ""
        zeros = f", and exactly 0 in {value.zeros}" if value.zeros else ""
        return f"{subject} is negative{of}{zeros}, down to {value.smallest:.3g}."
    return ""


def _all_nan(made: OpValue) -> bool:
    """Whether every value that is not finite comes from zero divided by zero."""
    return made.nan_count > 0 and not made.inf_count and not made.negative_inf_count


def _sizes(group: Group, values: Values, dtype: str) -> str:
    """How large the input is."""
    assert group.op is not None
    given = [value for place in range(2) if (value := values.given_to(group.culprit, place)) is not None]
    sizes, made = [_size(value) for value in given], values.outputs(group.culprit)
    if not sizes or any(map(is_bad, given)) or not any(map(is_bad, made)) or dtype not in _LARGEST or max(sizes) == 0.0:
        return ""
    reached = " and ".join(f"{float(f'{size:.2g}'):g}" for size in sizes)
    limit = "" if group.verdict.cause == "fp16_overflow" else f"; the largest {dtype} value is {_LARGEST[dtype]}"
    return f"Its inputs reach {reached} in magnitude{limit}."


def _size(value: OpValue) -> float:
    return max(abs(value.smallest), abs(value.largest))


def is_mostly_negative(group: Group) -> bool:
    """Whether more than half of the measured input of a function of positive numbers is below zero: a lower bound would
    leave no gradient for most of it."""
    value = argument_of(group)
    if group.op is not None and group.op.type == "Log1p":
        return False
    return value is not None and 2 * value.negative > prod(value.shape)


def share_of_zeros(group: Group) -> float:
    """Which part of the measured input of a function of positive numbers is zero: with a lower bound, it would get no
    gradient. None of it if that is not known, or if the input is a single number."""
    value = argument_of(group)
    count = prod(value.shape) if value is not None else 1
    return value.zeros / count if value is not None and count > 1 else 0.0


def is_beyond(limit: float, group: Group) -> bool:
    """Whether all of the measured input of an exponential is above a limit, or all of it below its negative: with the
    limit as a bound, none of it would get a gradient."""
    value = argument_of(group)
    return value is not None and (value.smallest > limit or value.largest < -limit)


def words_of_argument(group: Group, undefined: str, at_zero: str, either: str) -> str:
    """Whether the measured input of a function of positive numbers was below zero, zero, or is not known."""
    value = argument_of(group)
    if value is None:
        known = group.suspect.measured.range_of(group.culprit, 0)
        smallest = None if known is None or known[0] > 0 else known[0]
    else:
        smallest = -1.0 if value.negative else 0.0 if value.zeros else None
    if smallest is None:
        return either
    return undefined if smallest < 0 else at_zero
