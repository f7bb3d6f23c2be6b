"""Unused and frozen variables, penalties alone, and ways that the tape lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.report import SourceReport
from tb_gradflow.record.schema import Layer, Source
from tests.analyse.builders import FINE, Graph, statuses


def with_loss() -> Graph:
    graph = Graph()
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("used/kernel"))))
    graph.ask("used/kernel", FINE)
    return graph


def test_a_layer_whose_output_nobody_uses_is_an_error_at_the_op_where_its_way_ends() -> None:
    graph = with_loss()
    kernel, bias = graph.variable("forgotten/kernel"), graph.variable("forgotten/bias")
    end = graph.op("Relu", graph.op("BiasAdd", graph.op("MatMul", kernel), bias), line="a = self.forgotten(x)")
    graph.ask("forgotten/kernel")
    graph.ask("forgotten/bias")

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == ("output_not_used", "error", end)
    assert finding.variables == ("forgotten/kernel", "forgotten/bias")
    assert "x = forgotten(x)" in finding.fix


def test_a_variable_that_is_idle_in_a_layer_that_learns_is_a_warning() -> None:
    graph = with_loss()
    graph.op("Mul", graph.variable("used/scale"))
    graph.ask("used/scale")

    assert graph.only_finding().severity == "warning"


def test_a_layer_that_was_never_called_has_no_op_to_blame() -> None:
    graph = with_loss()
    graph.variable("idle/kernel", read=False)
    graph.ask("idle/kernel")

    finding = graph.only_finding()

    assert (finding.cause, finding.op, finding.path) == ("output_not_used", None, ())
    assert "nothing in this step uses it" in finding.message


def test_an_idle_pooler_is_harmless() -> None:
    graph = with_loss()
    graph.op("Tanh", graph.op("MatMul", graph.variable("bert/pooler/kernel")))
    graph.ask("bert/pooler/kernel")

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("unused_by_design", "info")


def penalised(*, with_other_terms: bool = True) -> Graph:
    """A kernel whose output is lost and whose square is added to the loss; its bias has not even that."""
    graph = Graph()
    data = graph.op("Mean", graph.op("MatMul", graph.variable("used/kernel")), shape=())
    penalty = graph.op(
        "Mul", graph.op("Sum", graph.op("Square", graph.variable("forgotten/kernel")), shape=()), shape=()
    )
    graph.op("BiasAdd", graph.op("MatMul", graph.read("forgotten/kernel")), graph.variable("forgotten/bias"))
    graph.target(graph.op("AddN", *((data, penalty) if with_other_terms else (penalty,)), shape=()))
    graph.ask("used/kernel", FINE)
    graph.ask("forgotten/kernel", FINE)
    graph.ask("forgotten/bias")
    return graph


def test_a_regulariser_does_not_hide_a_layer_that_nobody_uses() -> None:
    graph = penalised()

    diagnosis = graph.diagnose()

    assert statuses(diagnosis)["forgotten/kernel"] == "connected"
    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity) == ("regularizer_only", "warning")
    assert finding.variables == ("forgotten/kernel", "forgotten/bias")


def test_a_regularised_layer_that_is_used_is_healthy() -> None:
    graph = Graph()
    data = graph.op("Mean", graph.op("MatMul", graph.variable("kernel")), shape=())
    penalty = graph.op("Sum", graph.op("Square", graph.read("kernel")), shape=())
    graph.target(graph.op("AddN", data, penalty, shape=()))
    graph.ask("kernel", FINE)

    assert graph.diagnose().findings == ()


def test_a_loss_that_is_nothing_but_a_square_is_no_penalty() -> None:
    graph = Graph()
    graph.target(graph.op("Sum", graph.op("Square", graph.variable("w")), shape=()))
    graph.ask("w", FINE)

    assert graph.diagnose().findings == ()


def test_a_loss_read_from_state_is_a_store() -> None:
    """The result of a metric: the way ends where the metric's total is updated."""
    graph = Graph()
    update = graph.op("AssignAddVariableOp", graph.op("MatMul", graph.variable("kernel")), passes="not_differentiable")
    graph.target(-1)
    graph.ask("kernel")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("variable_assign", update)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("features = self.encoder(patches)", "`features`"),
        ("features, scores = self.encoder(patches)", "`Relu`"),
        ("return self.encoder(patches)", "`Relu`"),
    ],
)
def test_what_the_line_calls_its_result_is_what_to_use(code: str, named: str) -> None:
    graph = with_loss()
    hidden = graph.op("MatMul", graph.variable("a/kernel"), line=code)
    hidden = graph.op("MatMul", hidden, graph.variable("b/kernel"), line=code)
    graph.op("Relu", graph.op("MatMul", hidden, graph.variable("c/kernel"), line=code), line=code)
    for name in ("a/kernel", "b/kernel", "c/kernel"):
        graph.ask(name)

    assert graph.only_finding().fix.startswith(f"Use {'the result of ' if named == '`Relu`' else ''}{named} ")


def test_a_line_of_which_another_result_is_used_is_not_the_one_to_use() -> None:
    code = "out = model(x)"
    graph = Graph()
    shared = graph.op("MatMul", graph.variable("used/kernel"), line=code)
    graph.target(graph.op("Mean", shared))
    graph.ask("used/kernel", FINE)
    end = shared
    for name in ("a/kernel", "b/kernel", "c/kernel"):
        end = graph.op("MatMul", end, graph.variable(name), line=code)
        graph.ask(name)

    assert "Use the result of " in graph.only_finding().fix


def test_a_network_whose_copy_is_called_in_its_place_is_told_of_the_copy() -> None:
    """A clone has the names of what it was made of; it takes part, and nobody trains it."""
    graph = Graph()
    for name in ("net/kernel", "net/bias"):
        graph.variable(name, read=False)
        graph.ask(name)
    kernel, bias = graph.variable("net/kernel (2)"), graph.variable("net/bias (2)")
    graph.target(graph.op("Mean", graph.op("BiasAdd", graph.op("MatMul", kernel), bias)))
    for name in ("net/kernel (2)", "net/bias (2)"):
        graph.ask(name, outcome="not_asked")

    finding = next(each for each in graph.diagnose().findings if each.cause == "output_not_used")

    assert (finding.severity, finding.variables) == ("error", ("net/kernel", "net/bias"))
    assert "uses another network with the same names, `net/kernel (2)`" in finding.message
    assert finding.fix.startswith("Call the network that you want to train")


def plain_variable(product: str) -> Graph:
    """A `tf.Variable` that nobody asks a gradient for, and the product that it goes into."""
    graph = Graph()
    graph.layers.append(Layer("graph_conv", "graph_conv", "GraphConv"))
    plain = graph.variable("weight", tracked=False)
    graph.ops[plain] = replace(graph.ops[plain], name=product.replace("MatMul", "Read"))
    hidden = graph.op("MatMul", plain, name=product)
    graph.target(graph.op("Mean", graph.op("MatMul", hidden, graph.variable("dense/kernel"))))
    graph.ask("weight", outcome="not_asked")
    graph.ask("dense/kernel", FINE)
    graph.weights[graph.place("weight")] = (1.0, 0.0)
    return graph


class TestTheTape:
    """A way passes gradient all along, and None came."""

    def lost(self, *, watched: bool) -> Graph:
        graph = with_loss()
        graph.targets.clear()
        trunk = graph.op("MatMul", graph.variable("trunk/kernel"))
        graph.target(graph.op("Mean", graph.op("AddV2", trunk, 1)))
        graph.ask("trunk/kernel", watched=watched)
        return graph

    def test_other_variables_watched_and_this_one_not(self) -> None:
        finding = self.lost(watched=False).only_finding()

        assert (finding.cause, finding.severity) == ("tape_not_watching", "error")
        assert "watch_accessed_variables" in finding.fix

    def test_nothing_watched_at_all(self) -> None:
        graph = Graph()
        graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("kernel"))))
        graph.ask("kernel", watched=False)

        finding = graph.only_finding()

        assert finding.cause == "tape_scope"
        assert finding.path == (0, 1, 2)

    @pytest.mark.parametrize(("update_norm", "severity"), [(0.0, "warning"), (0.1, "info")])
    def test_a_variable_that_nobody_asked_for(self, update_norm: float, severity: str) -> None:
        """One that moves all the same is trained by another way."""
        graph = self.lost(watched=True)
        graph.asked.pop()
        graph.ask("trunk/kernel", outcome="not_asked")
        [place] = [each for each, variable in enumerate(graph.variables) if variable.name == "trunk/kernel"]
        graph.weights[place] = (1.0, update_norm)

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("not_in_gradient_sources", severity)

    @pytest.mark.parametrize(("failure", "severity"), [("", "info"), ("ResourceExhaustedError: OOM", "warning")])
    def test_nobody_knows_what_a_step_would_have_asked_that_raised_while_it_was_traced(
        self, failure: str, severity: str
    ) -> None:
        """A GAN whose first `apply_gradients` raises has not come to its second `tape.gradient`."""
        graph = self.lost(watched=True)
        graph.asked.pop()
        graph.ask("trunk/kernel", outcome="not_asked")
        graph.failure = failure

        diagnosis = graph.diagnose(measured=False)

        finding = {finding.cause: finding for finding in diagnosis.findings}["not_in_gradient_sources"]
        assert finding.severity == severity
        assert ("failed with an error" in finding.message) == (severity == "info")
        assert diagnosis.summary.startswith("Not verified: ") == (severity == "info")

    @pytest.mark.parametrize(
        ("watched", "cause", "told"),
        [
            (True, "tape_scope", "the tape in model.py:17 did not record the path to the loss."),
            (False, "tape_not_watching", "the tape in model.py:17 does not watch it."),
        ],
    )
    def test_the_line_that_asks_is_shown_and_the_summary_names_what_is_to_blame(
        self, watched: bool, cause: str, told: str
    ) -> None:
        graph = self.lost(watched=watched)
        graph.sources.append(Source("/home/me/model.py", 17, "step", "grads = tape.gradient(loss, weights)"))
        graph.targets[0] = replace(graph.targets[0], source=0)

        diagnosis = graph.diagnose()

        [finding] = diagnosis.findings
        assert (finding.cause, finding.op) == (cause, None)
        assert finding.source == SourceReport("/home/me/model.py", 17, "grads = tape.gradient(loss, weights)")
        assert diagnosis.summary == f"1 of 2 trainable variables gets no gradient: {told}"

    def test_a_variable_that_the_model_does_not_know(self) -> None:
        graph = Graph()
        hidden = graph.op("MatMul", graph.variable("hidden", tracked=False))
        graph.target(graph.op("Mean", graph.op("MatMul", hidden, graph.variable("kernel"))))
        graph.ask("hidden", outcome="not_asked")
        graph.ask("kernel", FINE)

        finding = graph.only_finding()

        assert (finding.cause, finding.variables) == ("untracked_variable", ("hidden",))

    def test_a_variable_that_the_step_creates_is_an_error_and_the_headline_says_so(self) -> None:
        graph = Graph()
        hidden = graph.op("MatMul", graph.variable("dense/kernel", tracked=False))
        graph.variables[0] = replace(graph.variables[0], made=True)
        graph.target(graph.op("Mean", graph.op("MatMul", hidden, graph.variable("kernel"))))
        graph.ask("dense/kernel", outcome="not_asked")
        graph.ask("kernel", FINE)

        diagnosis = graph.diagnose()

        [finding] = diagnosis.findings
        assert (finding.cause, finding.severity) == ("untracked_variable", "error")
        assert diagnosis.summary.endswith("gets no gradient: the step creates it anew each time.")

    def test_a_network_that_nobody_asks_about_may_be_a_target_network(self) -> None:
        """The target network of DDPG is read under the tape, the VGG of a style loss too: nothing is to be made."""
        graph = Graph()
        told = graph.op("MatMul", graph.variable("target/dense/kernel", tracked=False))
        graph.target(graph.op("Mean", graph.op("MatMul", told, graph.variable("kernel"))))
        graph.ask("target/dense/kernel", outcome="not_asked")
        graph.ask("kernel", FINE)

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("untracked_variable", "info")
        assert "a target network" in finding.message
        assert "add_weight" not in finding.fix

    def test_a_layer_that_a_lambda_calls_is_to_be_called_itself(self) -> None:
        graph = Graph()
        graph.layers.append(Layer("model/lambda", "lambda", "Lambda"))
        read = graph.variable("hidden/kernel", tracked=False)
        graph.ops[read] = replace(graph.ops[read], name="model/lambda/hidden/ReadVariableOp")
        graph.target(graph.op("Mean", graph.op("MatMul", read, graph.variable("head/kernel"))))
        graph.ask("hidden/kernel", outcome="not_asked")
        graph.ask("head/kernel", FINE)

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("untracked_variable", "info")
        assert "in a `Lambda` layer, such as `lambda`" in finding.message
        assert "`x = hidden(x)`" in finding.fix

    def test_what_ran_outside_of_the_tape_is_named(self) -> None:
        graph = Graph()
        outside = graph.variable("encoder/kernel")
        hidden = graph.op("MatMul", outside)
        loss = graph.op("Mean", graph.op("MatMul", hidden, graph.variable("head/kernel")))
        graph.target(loss, automatic=True)
        graph.ask("encoder/kernel", outcome="none", watched=False)
        graph.ask("head/kernel", FINE)
        graph.sources.append(Source("/home/me/model.py", 31, "train_step", "features = self.encoder(x)"))
        graph.ops[outside] = replace(graph.ops[outside], source=len(graph.sources) - 1)

        finding = graph.only_finding()

        assert finding.cause == "tape_scope"
        assert "ran outside the `with` block (model.py:31)." in finding.message

    def test_a_plain_variable_of_a_layer_is_to_be_looked_at(self) -> None:
        """Keras 3 lists no `tf.Variable` that an attribute holds; its own have their layer's name in front."""
        finding = plain_variable("graph_conv/MatMul").only_finding()

        assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
        assert "(in layer `graph_conv`)" in finding.message
        assert '`self.weight = self.add_weight(name="weight", shape=...)`' in finding.fix

    def test_a_plain_variable_outside_of_layers_may_be_meant_so(self) -> None:
        diagnosis = plain_variable("MatMul").diagnose()

        [finding] = diagnosis.findings
        assert (finding.cause, finding.severity) == ("untracked_variable", "info")
        assert "add_weight" not in finding.fix
        assert diagnosis.summary.startswith("Healthy")

    def test_the_headline_says_that_a_model_does_not_list_it(self) -> None:
        summary = plain_variable("graph_conv/MatMul").diagnose().summary

        assert summary == "1 of 2 trainable variables gets no gradient: the model does not track it."

    def test_without_a_model_nobody_knows_variables(self) -> None:
        graph = Graph()
        hidden = graph.op("MatMul", graph.variable("hidden", tracked=False))
        graph.target(graph.op("Mean", graph.op("MatMul", hidden, graph.variable("kernel", tracked=False))))
        graph.ask("hidden", outcome="not_asked")
        graph.ask("kernel", FINE)

        assert graph.only_finding().cause == "not_in_gradient_sources"


class TestFrozen:
    def test_a_model_in_which_nothing_is_trainable(self) -> None:
        graph = Graph()
        graph.variable("dense/kernel", trainable=False, shape=(4, 2))
        graph.variable("dense/bias", trainable=False, shape=(2,))

        diagnosis = graph.diagnose(measured=False)

        assert [(finding.cause, finding.severity) for finding in diagnosis.findings] == [("frozen_by_flag", "error")]
        assert diagnosis.summary.startswith("Nothing is trained")

    def test_counters_and_seeds_alone_are_no_model(self) -> None:
        graph = Graph()
        graph.variable("seed", trainable=False, dtype="int32", shape=(2,))

        [finding] = graph.diagnose(measured=False).findings
        assert (finding.cause, finding.severity, finding.variables) == ("not_measured", "warning", ())

    def test_a_frozen_layer_among_others_is_quiet(self) -> None:
        graph = with_loss()
        graph.op("MatMul", graph.variable("base/kernel", trainable=False, shape=(4, 2)))

        assert graph.diagnose().findings == ()

    def test_moving_statistics_that_were_asked_for(self) -> None:
        graph = with_loss()
        graph.op("Mul", graph.variable("bn/moving_mean", trainable=False))
        graph.ask("bn/moving_mean")

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("non_trainable_state", "info")


@pytest.mark.parametrize("pattern", ["forgotten/*", "forgotten/kernel"])
def test_what_is_expected_is_told_and_is_no_error(pattern: str) -> None:
    graph = with_loss()
    graph.layers.append(Layer("model", "model", "Functional"))
    graph.op("MatMul", graph.variable("forgotten/kernel"))
    graph.ask("forgotten/kernel")

    [finding] = graph.diagnose(expected=(pattern,)).findings

    assert (finding.cause, finding.severity) == ("expected", "info")
    assert statuses(graph.diagnose(expected=(pattern,)))["forgotten/kernel"] == "unused"


@pytest.mark.parametrize(("dtype", "cause"), [("bool", "output_not_used"), ("float32", "branch_not_taken")])
def test_a_branch_that_hands_out_no_number_chose_nothing(dtype: str, cause: str) -> None:
    """`tf.debugging.assert_less` is made of a `tf.cond`, and so is a summary that is written now and then."""
    graph = Graph()
    drift = graph.op("Sum", graph.op("Mul", graph.variable("rate")))
    graph.op("If", graph.op("Less", drift, passes="not_differentiable", dtype="bool"), passes="dtype", dtype=dtype)
    graph.target(graph.op("Mean", graph.variable("kernel")))
    graph.ask("rate", None)
    graph.ask("kernel", FINE)

    assert graph.only_finding().cause == cause


def test_what_is_given_to_add_loss_has_to_be_added_by_a_step_of_ones_own() -> None:
    graph = Graph()
    graph.op("Mul", graph.variable("pull/centres"), api="*", line="self.add_loss(0.05 * tf.reduce_mean(distance))")
    graph.target(graph.op("Mean", graph.variable("kernel")))
    graph.ask("pull/centres", None)
    graph.ask("kernel", FINE)

    finding = graph.only_finding()

    assert finding.cause == "output_not_used"
    assert "is passed to `add_loss` (model.py:17), but this step ignores the losses of the layers" in finding.message
    assert "`loss += sum(model.losses)`" in finding.fix


@pytest.mark.parametrize(
    ("kind", "api", "why", "fix"),
    [
        (
            "EagerPyFunc",
            "tf.py_function",
            "passes a gradient only to its arguments",
            "Pass `gain` to that function",
        ),
        ("PyFunc", "tf.numpy_function", "passes no gradient at all", "Compute that with TensorFlow functions"),
    ],
)
def test_what_a_python_function_may_read_is_said_of_both_kinds(kind: str, api: str, why: str, fix: str) -> None:
    graph = Graph()
    made = graph.op("MatMul", graph.variable("used/kernel"))
    graph.variable("gain", read=False)
    outside = graph.op(kind, made, passes="not_differentiable", api=api, line=f"y = {api}(scaled, [x], tf.float32)")
    graph.target(graph.op("Mean", graph.op("AddV2", made, outside)))
    graph.ask("used/kernel", FINE)
    graph.ask("gain")

    finding = next(each for each in graph.diagnose().findings if each.variables == ("gain",))

    assert why in finding.message
    assert f"`{api}` (model.py:17)" in finding.message
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize("other", ["teacher/dense/kernel", "student/head/kernel"])
def test_of_a_network_that_nothing_uses_or_that_is_stopped_the_network_is_spoken_of(other: str) -> None:
    """Which of two networks was to be held still nobody can tell; of a part of one that question does not arise."""
    fixes = []
    for stops in (True, False):
        graph = Graph()
        trained = graph.op("MatMul", graph.variable(other))
        hidden = graph.op("MatMul", graph.variable("student/dense/kernel"))
        made = graph.op("MatMul", hidden, graph.variable("student/dense_1/kernel"))
        if stops:
            line = "s = tf.stop_gradient(student(x))"
            held = graph.op("StopGradient", made, passes="not_differentiable", api="tf.stop_gradient", line=line)
            trained = graph.op("Sub", trained, held)
        graph.target(graph.op("Mean", trained))
        graph.ask(other, FINE)
        graph.ask("student/dense/kernel")
        graph.ask("student/dense_1/kernel")
        fixes.append(graph.only_finding().fix)

    whole = other.startswith("teacher")
    assert ("stop the gradient of that one instead" in fixes[0]) is whole
    assert ("Use the output of `student` on the path" in fixes[1]) is whole


@pytest.mark.parametrize(("kind", "severity"), [("ResourceApplyMomentum", "info"), ("Square", "error")])
def test_a_learning_rate_that_is_a_trainable_variable_is_information(kind: str, severity: str) -> None:
    """`tf.Variable(0.1)` in TensorFlow 1: `minimize` requests a gradient for it too."""
    graph = Graph()
    graph.op(kind, graph.variable("rate"))
    product = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(product, FINE)
    graph.target(graph.op("Mean", product))
    graph.ask("kernel", FINE)
    graph.ask("rate", outcome="none")

    [finding] = graph.diagnose().findings
    assert (finding.cause, finding.severity) == ("output_not_used", severity)
