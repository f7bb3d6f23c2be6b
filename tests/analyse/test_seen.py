"""What a finding says about measured values: the input of the op that broke, and the rows of the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import FORMAT, OpValue, Rows, Session, ValueRange
from tb_gradflow.record.values import Example, GradientRows, StepValues
from tests.analyse.builders import FINE, INF, NAN, Graph, Row

SHAPE = (4, 3)
FINITE = OpValue(0, 0, -1, SHAPE, 0.5, 2.0, 0, 0, 0, 0, 0)
BROKEN = replace(FINITE, nan_count=1, rows=Rows(1, (2,)))


def finding_of(
    kind: str,
    api: str,
    line: str,
    given: OpValue,
    made: OpValue = BROKEN,
    *,
    place: int = 0,
    dtype: str = "float32",
    loss: float = float("nan"),
    row: Row = NAN,
    batch: int = 4,
    gradient_rows: tuple[GradientRows, ...] = (),
    examples: tuple[Example, ...] = (),
) -> Finding:
    """A function of a product (op 1), whose mean is the loss; `given` is that product, `made` the value of the op 2."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"), shape=SHAPE)
    broken = graph.op(kind, product, first=place, api=api, line=line, shape=SHAPE, dtype=dtype)
    graph.target(graph.op("Mean", broken, shape=()), loss=loss)
    graph.gradient(product, row)
    graph.gradient(broken, FINE)
    graph.ask("kernel", row)
    values = (replace(given, op=product), replace(made, op=broken))
    session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
    step = StepValues(7, batch, values, gradient_rows, examples)
    numbers = graph.numbers(), graph.weight_numbers(), tuple(graph.losses)
    findings = diagnose(graph.trace(), session, *numbers, 7, values=step).findings
    return next(each for each in findings if each.culprit == broken)


LOG = ("Log", "tf.math.log", "y = tf.math.log(p)")
DIVIDE = ("RealDiv", "/", "y = a / b")


@pytest.mark.parametrize(
    ("op", "place", "given", "says"),
    [
        (LOG, 0, replace(FINITE, zeros=2), "`p` is exactly 0 in 2 of 12 elements."),
        (LOG, 0, replace(FINITE, negative=3, smallest=-1.5), "`p` is negative in 3 of 12 elements, down to -1.5."),
        (LOG, 0, replace(FINITE, negative=3, zeros=1, smallest=-1.5), "elements, and exactly 0 in 1, down to -1.5."),
        (LOG, 0, replace(FINITE, zeros=1, shape=()), "`p` is exactly 0."),
        (DIVIDE, 1, replace(FINITE, zeros=2), "`b` is exactly 0 in 2 of 12 elements, and so is the numerator."),
        (DIVIDE, 1, replace(FINITE, zeros=2, negative=1), "`b` is exactly 0 in 2 of 12 elements"),
        (("Acos", "tf.acos", "y = tf.acos(c)"), 0, replace(FINITE, largest=1.25), "`c` ranges from 0.5 to 1.25."),
        (("Exp", "tf.exp", "y = tf.exp(e)"), 0, replace(FINITE, largest=90.0), "`e` reaches 90; the result overflows"),
    ],
)
def test_the_input_of_the_op_is_described(op: tuple[str, str, str], place: int, given: OpValue, says: str) -> None:
    made = replace(BROKEN, inf_count=1, nan_count=0) if op[0] == "Exp" else BROKEN

    assert says in finding_of(*op, given, made, place=place).message


def test_a_numerator_is_zero_only_if_all_that_is_not_finite_is_nan() -> None:
    given = replace(FINITE, zeros=2)

    for made in (replace(BROKEN, inf_count=1), replace(BROKEN, negative_inf_count=1)):
        assert "so is the numerator" not in finding_of(*DIVIDE, given, made, place=1).message


@pytest.mark.parametrize("given", [FINITE, replace(FINITE, negative=3, smallest=-2.0)])
def test_a_divisor_that_is_not_zero_explains_nothing(given: OpValue) -> None:
    message = finding_of(*DIVIDE, given, place=1).message

    assert "exactly 0" not in message
    assert "negative" not in message


@pytest.mark.parametrize("line", ["y = tf.math.log(x=p)", "y = other(p)", f"y = tf.math.log({'p + ' * 15}p)"])
def test_an_input_that_the_line_does_not_show_in_short_has_no_name(line: str) -> None:
    assert "The input is exactly 0 in 2 of" in finding_of("Log", "tf.math.log", line, replace(FINITE, zeros=2)).message


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (Rows(1, (2,)), "row 2 of the batch of 4"),
        (Rows(2, (0, 2)), "rows 0 and 2 of the batch of 4"),
        (Rows(3, (0, 1, 2)), "rows 0, 1 and 2 of the batch of 4"),
    ],
)
def test_the_rows_are_listed(rows: Rows, says: str) -> None:
    finding = finding_of(*LOG, replace(FINITE, zeros=2), replace(BROKEN, rows=rows))

    assert f"Non-finite values first appear in {says}." in finding.message
    assert finding.examples == rows.first


@pytest.mark.parametrize(
    ("count", "says"), [(5, "rows 0, 1, 2, 3 and 4 of"), (6, "rows 0, 1, 2, 3 and 2 more of"), (9, "3 and 5 more of")]
)
def test_of_many_rows_the_first_are_listed(count: int, says: str) -> None:
    made = replace(BROKEN, rows=Rows(count, tuple(range(min(count, 8)))))

    assert says in finding_of(*LOG, replace(FINITE, zeros=2), made, batch=32).message


def test_rows_are_not_listed_if_all_of_them_broke() -> None:
    finding = finding_of(*LOG, replace(FINITE, zeros=2), replace(BROKEN, rows=Rows(4, (0, 1, 2, 3))))

    assert "first appear" not in finding.message
    assert finding.examples is None


@pytest.mark.parametrize(
    ("dtype", "largest", "says"),
    [
        ("float32", 2e20, "Its inputs reach 3e+20 in magnitude; the largest float32 value is 3.4e38."),
        ("float64", 2e20, "Its inputs reach 3e+20 in magnitude; the largest float64 value is 1.8e308."),
        ("float8", 2e20, ""),
    ],
)
def test_of_a_product_that_overflows_the_size_of_its_inputs_is_told(dtype: str, largest: float, says: str) -> None:
    given, made = replace(FINITE, largest=largest, smallest=-3e20), replace(BROKEN, inf_count=1, nan_count=0)

    message = finding_of("Square", "tf.square", "y = tf.square(p)", given, made, dtype=dtype, row=INF).message

    assert says in message
    assert bool(says) == ("Its inputs reach" in message)


@pytest.mark.parametrize(
    ("given", "made"),
    [(FINITE, FINITE), (replace(FINITE, nan_count=1), BROKEN), (replace(FINITE, largest=0.0, smallest=0.0), BROKEN)],
)
def test_no_size_explains_what_did_not_overflow(given: OpValue, made: OpValue) -> None:
    message = finding_of("Square", "tf.square", "y = tf.square(p)", given, made, row=INF, loss=0.5).message

    assert "Its inputs reach" not in message


def test_of_many_columns_the_only_one_that_broke_is_named() -> None:
    one, two = replace(BROKEN, columns=Rows(1, (1,))), replace(BROKEN, columns=Rows(2, (0, 1)))
    given = replace(FINITE, zeros=2)
    nameless = ("Log", "tf.math.log", "y = tf.math.log(f(p))")

    assert "batch of 4, in `p[:, 1]`." in finding_of(*LOG, given, one).message
    assert "batch of 4, in column 1." in finding_of(*nameless, given, one).message
    assert "batch of 4, in column 1." in finding_of(*LOG, replace(given, shape=(4, 1)), one).message
    assert "batch of 4." in finding_of(*LOG, given, two).message
    assert "batch of 4." in finding_of(*LOG, given, replace(one, shape=(4, 1))).message


def test_the_first_row_is_shown_if_the_log_may_contain_it() -> None:
    given, numbers = replace(FINITE, zeros=2), (0.25, None, 3.0)
    other, kept = Example("x", 1, numbers, 3), Example("x", 2, numbers, 3)
    long = Example("x", 2, tuple(float(each) for each in range(9)), 20)

    assert "Row 2 of `x` is [0.25, not finite, 3]." in finding_of(*LOG, given, examples=(other, kept)).message
    assert "Row 2 of `x` is [0, 1, 2, 3, 4, 5, 6, 7, …]." in finding_of(*LOG, given, examples=(long,)).message
    assert "Row" not in finding_of(*LOG, given, examples=(other,)).message


def test_of_a_finite_loss_the_rows_are_those_of_the_gradient() -> None:
    """The square root of zero is finite, and its slope is not."""
    root = ("Sqrt", "tf.sqrt", "y = tf.sqrt(s)")
    rows = tuple(GradientRows(target, 1, 0, Rows(1, (row,))) for target, row in ((0, 3), (1, 0)))

    finding = finding_of(*root, replace(FINITE, zeros=1), FINITE, loss=0.5, row=INF, gradient_rows=rows)

    assert finding.cause == "sqrt_at_zero"
    assert "`s` is exactly 0 in 1 of 12 elements." in finding.message
    assert finding.examples == (3,)


@pytest.mark.parametrize(
    ("given", "why", "fix"),
    [
        (replace(FINITE, zeros=2), "exactly 0, which has no finite logarithm", "tf.math.log(tf.maximum(p, 1e-7))"),
        (replace(FINITE, negative=6), "a negative value, which has no logarithm", "tf.math.log(tf.maximum(p, 1e-7))"),
        (
            replace(FINITE, negative=7),
            "a negative value, which has no logarithm",
            "Find out why most of `p` is negative",
        ),
    ],
)
def test_the_fix_of_a_logarithm_depends_on_how_much_of_its_input_is_negative(
    given: OpValue, why: str, fix: str
) -> None:
    finding = finding_of(*LOG, given, row=INF)

    assert why in finding.message
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("given", "made", "is_told"),
    [
        (replace(FINITE, negative_inf_count=1), BROKEN, True),
        (replace(FINITE, inf_count=1), replace(BROKEN, nan_count=0, inf_count=1), False),
        (replace(FINITE, inf_count=1, nan_count=1), BROKEN, False),
        (FINITE, BROKEN, False),
    ],
)
def test_nan_of_infinities_is_told_apart_from_nan_and_infinities_that_are_passed_on(
    given: OpValue, made: OpValue, is_told: bool
) -> None:
    finding = finding_of("Sin", "tf.sin", "y = tf.sin(p)", given, made, loss=0.5)

    assert finding.cause == "not_finite"
    assert ("is given infinities, and its result is NaN" in finding.message) == is_told


@pytest.mark.parametrize(
    ("op", "place", "ends", "says"),
    [
        (LOG, 0, (0.0, 3.0), "`p` is exactly 0."),
        (LOG, 0, (-2.5, 3.0), "`p` is negative, down to -2.5."),
        (DIVIDE, 1, (0.0, 3.0), "`b` is exactly 0."),
        (LOG, 0, (0.5, 3.0), None),
        (LOG, 0, None, None),
    ],
)
def test_of_a_step_whose_values_were_not_measured_only_the_ends_of_the_input_are_described(
    op: tuple[str, str, str], place: int, ends: tuple[float, float] | None, says: str | None
) -> None:
    kind, api, line = op
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    broken = graph.op(kind, product, first=place, api=api, line=line)
    graph.target(graph.op("Mean", broken), loss=float("nan"))
    graph.gradient(product, NAN)
    graph.gradient(broken, FINE)
    graph.ask("kernel", NAN)
    ranges = () if ends is None else (ValueRange(broken, place, graph.row((0.0, 0.0, *ends, 0.0, 0.0))),)
    session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
    numbers = graph.numbers(), graph.weight_numbers(), tuple(graph.losses)

    findings = diagnose(replace(graph.trace(), ranges=ranges), session, *numbers, 7).findings

    message = next(each for each in findings if each.culprit == broken).message
    assert (message.partition(". ")[2] or None) == says
