"""Each small demonstration holds what its first line promises, and its repaired version is healthy and learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tb_gradflow.demo.gallery import DEMOS, chosen
from tests.demo.training import Trained, line_of, train


@dataclass(frozen=True, slots=True)
class Promise:
    """What is to be found in a demonstration.

    Attributes:
        name: The demonstration.
        line: The line of the program that is to blame.
        op: Type of the op that is to blame.
        variables: The variables that suffer.
        status: What happens to them.
        severity: Of the finding.
    """

    name: str
    line: str
    op: str
    variables: tuple[str, ...]
    status: str
    severity: str = "error"


@dataclass(frozen=True, slots=True)
class Truth:
    """A variable, and what the repaired program learns about it from its data."""

    name: str
    variable: str
    guess: Any
    truth: Any
    learnt: Callable[[Any], Any] = field(default=np.asarray)


PROMISES = (
    Promise(
        "floor_detour",
        "return x - (x - tf.floor(x))",
        "Floor",
        ("floor_detour/counter/gain",),
        "zero",
    ),
    Promise(
        "quantised_by_cast",
        "return tf.cast(tf.cast(light * 255.0, tf.int32), tf.float32) / 255.0",
        "Cast",
        ("quantised_by_cast/display/brightening",),
        "disconnected",
    ),
    Promise(
        "custom_floor",
        "def gradient(upstream: tf.Tensor) -> tf.Tensor:",
        "IdentityN",
        ("custom_floor/counter/gain",),
        "zero",
    ),
    Promise(
        "round_by_clipping",
        "above = tf.maximum(probability - 0.499, 0.0)",
        "Maximum",
        ("round_by_clipping/probability/kernel", "round_by_clipping/probability/bias"),
        "zero",
    ),
    Promise(
        "steep_sigmoid",
        "return 1.0 / (1.0 + tf.exp(-1000.0 * (x - self.threshold)))",
        "Exp",
        ("steep_sigmoid/step/threshold",),
        "nan",
    ),
    Promise(
        "learnt_position",
        "return tf.gather(signal, tf.cast(self.position, tf.int32), axis=1)[:, tf.newaxis]",
        "Cast",
        ("learnt_position/probe/position",),
        "disconnected",
    ),
    Promise(
        "bump_in_cond",
        "inside = tf.abs(x[0]) < self.width",
        "Less",
        ("bump_in_cond/bump/width",),
        "disconnected",
    ),
    Promise(
        "bump_with_where",
        "return tf.exp(-squared / (squared - tf.square(x)))",
        "Exp",
        ("bump_with_where/bump/width",),
        "nan",
    ),
    Promise(
        "untaken_branch",
        "return tf.cond(freezing, lambda: self.frost * temperature, lambda: self.warmth * temperature)",
        "If",
        ("untaken_branch/heating/frost",),
        "zero",
        severity="info",
    ),
    Promise(
        "result_variable",
        "self.result[i, j].assign((size - tf.reduce_prod(product[i])) / size)",
        "ResourceStridedSliceAssign",
        ("result_variable/free_space/box",),
        "disconnected",
    ),
    Promise(
        "perturbed_weight",
        "nudged = self.slope + NUDGE",
        "AddV2",
        ("nudged",),
        "unused",
    ),
    Promise(
        "silent_none",
        "return self.sum(hidden), self.difference(hidden)",
        "AddV2",
        ("two_heads/difference/kernel", "two_heads/difference/bias"),
        "unused",
    ),
    Promise(
        "own_sample",
        "log_likelihood = -0.5 * tf.square((throw - y_pred) / SPREAD)",
        "Sub",
        ("thrower/aim/kernel", "thrower/aim/bias"),
        "zero",
        severity="warning",
    ),
    Promise(
        "masked_lstm",
        "return self.lstm(recording) * mask",
        "Mul",
        (
            "listener/lstm/lstm_cell/kernel",
            "listener/lstm/lstm_cell/recurrent_kernel",
            "listener/lstm/lstm_cell/bias",
            "listener/answer/kernel",
        ),
        "zero",
        severity="warning",
    ),
    Promise(
        "adam_moves",
        "return tf.reduce_mean(tf.square(is_labelled * (told - true)))",
        "Mul",
        ("two_tasks/second/kernel", "two_tasks/second/bias"),
        "zero",
        severity="info",
    ),
    Promise(
        "masked_elements",
        "masked_w = mask * w + tf.stop_gradient(tf.abs(1 - mask) * w)",
        "Mul",
        ("w",),
        "connected",
        severity="info",
    ),
)

TRUTHS = (
    Truth("floor_detour", "floor_detour/counter/gain", 3.0, 6.0),
    Truth("quantised_by_cast", "quantised_by_cast/display/brightening", 1.0, 1.8),
    Truth("custom_floor", "custom_floor/counter/gain", 3.0, 6.0),
    Truth("steep_sigmoid", "steep_sigmoid/step/threshold", 0.4, 0.7),
    Truth("learnt_position", "learnt_position/probe/position", 16.0, 24.0),
    Truth("bump_in_cond", "bump_in_cond/bump/width", 0.5, 0.8),
    Truth("bump_with_where", "bump_with_where/bump/width", 0.5, 0.8),
    Truth("untaken_branch", "untaken_branch/heating/frost", -2.0, -3.0),
    # Other boxes of the same size leave as much empty.
    Truth("result_variable", "result_variable/free_space/box", 1.5**3, (6.0, 7.5), lambda box: box.prod(axis=0)),
    Truth("perturbed_weight", "line/slope", 0.0, 2.0),
    Truth("own_sample", "thrower/aim/bias", 0.0, 2.0),
)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """Trains a demonstration when it is first asked for."""
    known: dict[str, Trained] = {}

    def trained(name: str) -> Trained:
        if name not in known:
            [demo] = chosen([name])
            known[name] = train(demo, tmp_path_factory.mktemp(name))
        return known[name]

    return trained


Gallery = Callable[[str], Trained]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_the_broken_program_is_told_what_its_first_line_promises(gallery: Gallery, promise: Promise) -> None:
    trained = gallery(promise.name)

    report = trained.report("broken")

    finding = report.findings[0]
    assert (finding.cause, finding.severity) == (trained.demo.cause, promise.severity)
    assert set(finding.variables) >= set(promise.variables)
    assert line_of(finding.source, trained.demo) == promise.line
    assert finding.op is not None
    assert finding.op.type == promise.op
    assert {report.variables[name].status for name in promise.variables} == {promise.status}
    others = {each.status for name, each in report.variables.items() if name not in finding.variables}
    assert others <= {"connected", "frozen"}


@pytest.mark.parametrize("name", [demo.name for demo in DEMOS if demo.name not in ("step_filter", "resnet50")])
def test_the_repaired_program_is_healthy(gallery: Gallery, name: str) -> None:
    report = gallery(name).report("fixed")

    report.assert_healthy()


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_what_the_broken_program_cannot_learn_the_repaired_one_does(gallery: Gallery, truth: Truth) -> None:
    trained = gallery(truth.name)

    broken = truth.learnt(trained.value("broken", truth.variable))
    fixed = truth.learnt(trained.value("fixed", truth.variable))

    assert np.isnan(broken).all() or np.allclose(broken, truth.guess), broken
    still_off = np.abs(fixed - truth.truth)
    assert (still_off < 0.5 * np.abs(np.subtract(truth.guess, truth.truth))).all(), fixed


def test_the_clipped_probability_stays_as_it_was_made_and_the_repaired_one_decides_better(gallery: Gallery) -> None:
    trained = gallery("round_by_clipping")
    from tb_gradflow.demo.round_by_clipping import DIRECTION

    kernels = {each: trained.value(each, "round_by_clipping/probability/kernel") for each in ("broken", "fixed")}

    assert trained.log("broken").history("round_by_clipping/probability/kernel")["update_norm"].max() == 0.0
    towards = {name: float((kernel * DIRECTION).sum() / np.linalg.norm(kernel)) for name, kernel in kernels.items()}
    assert towards["fixed"] > 0.9 * np.linalg.norm(DIRECTION), towards
    assert towards["fixed"] > towards["broken"]


@pytest.mark.parametrize(
    ("name", "variable"),
    [("silent_none", "two_heads/difference/kernel"), ("masked_lstm", "listener/lstm/lstm_cell/kernel")],
)
def test_a_layer_that_gets_nothing_stays_and_the_repaired_one_moves(gallery: Gallery, name: str, variable: str) -> None:
    trained = gallery(name)

    updates = {each: trained.log(each).history(variable)["update_norm"] for each in ("broken", "fixed")}

    assert updates["broken"].max() == 0.0
    assert updates["fixed"].min() > 0.0


def test_adam_moves_a_head_whose_gradient_is_zero_and_an_optimizer_without_memory_does_not(gallery: Gallery) -> None:
    from tb_gradflow.demo.adam_moves import LABELLED_STEPS

    trained = gallery("adam_moves")

    histories = {each: trained.log(each).history("two_tasks/second/kernel") for each in ("broken", "fixed")}

    for history in histories.values():
        assert (history["norm"][:LABELLED_STEPS] > 0.0).all()
        assert (history["norm"][LABELLED_STEPS:] == 0.0).all()
    assert (histories["broken"]["update_norm"][LABELLED_STEPS:] > 0.0).all()
    assert (histories["fixed"]["update_norm"][LABELLED_STEPS:] == 0.0).all()
    messages = {each: trained.report(each).findings[0].message for each in ("broken", "fixed")}
    assert "Adam remembers gradients of earlier steps" in messages["broken"]
    assert "all the same" not in messages["fixed"]


def test_adam_moves_elements_that_a_mask_holds_still_until_they_are_put_back(gallery: Gallery) -> None:
    trained = gallery("masked_elements")

    [finding] = trained.report("broken").findings

    assert "2 of these 2 elements move, because Adam remembers" in finding.message
    assert "w.assign(tf.where(mask != 0, w, before))" in finding.fix
    assert not trained.report("fixed").findings
