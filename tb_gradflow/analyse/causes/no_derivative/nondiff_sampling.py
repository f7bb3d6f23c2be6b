"""A value is only the parameter of a discrete random draw."""

from __future__ import annotations

import ast
import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.positions import soft_position
from tb_gradflow.analyse.edits.score_function import weighted_with_probability
from tb_gradflow.analyse.edits.soft import soft_comparison
from tb_gradflow.analyse.edits.written_out import continuous_draw
from tb_gradflow.analyse.evidence.discrete import COMPARISON, SAMPLING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.user_code.code import Code, program_of
from tb_gradflow.analyse.words.code import bracketed, call_on
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, api_of, call_of
from tb_gradflow.record.python import name_of, values_of
from tb_gradflow.record.schema import Source

# Whole names: `categorical_accuracy` draws nothing, nor does the loss of that name.
_DISCRETE_DRAW = re.compile(
    r"(?<!\w)(?<!losses\.)(?:stateless_)?(?:categorical|multinomial|binomial|bernoulli|poisson)(?!\w)"
)

# By comparisons and in loops, if TensorFlow Probability has no op for it.
_OF_DISTRIBUTION = re.compile(r"tfd\.\w+\.sample")

_UNIFORM_DRAW = re.compile(r"random[._](?:stateless_)?uniform(?!\w)|\.uniform\(|np\.random\.rand(?:om)?\(")


def rule(suspect: Suspect) -> Verdict | None:
    """A discrete random draw: from a distribution whose samples have no derivative, such as a categorical one, or by
    comparing with uniform noise."""
    called = suspect.op.api or ""
    if suspect.op.type in SAMPLING or _DISCRETE_DRAW.search(called) or _OF_DISTRIBUTION.fullmatch(called):
        return Verdict("nondiff_sampling", "error")
    if suspect.op.type not in COMPARISON or suspect.op.source is None:
        return None
    source = suspect.topology.trace.sources[suspect.op.source]
    # Hundreds of ops may come from one line.
    noise = suspect.measured.once(("noise", source), lambda: _noise(suspect, source))
    drawn = _DISCRETE_DRAW.search(source.code) or _UNIFORM_DRAW.search(source.code) or noise
    return Verdict("nondiff_sampling", "error") if drawn else None


def _noise(suspect: Suspect, source: Source) -> set[str]:
    """The names in a comparison to which the same function assigns uniform noise."""
    code = program_of(suspect.topology.trace).at(source.file, source.line)
    if code is None:
        return set()
    return {
        name.id
        for name in _sides(code, source)
        if isinstance(name, ast.Name)
        for value in values_of(code.function(name) or code.tree, name.id)
        if _UNIFORM_DRAW.search(ast.unparse(value)) is not None
    }


def _sides(code: Code | None, source: Source) -> list[ast.expr]:
    found: list[ast.expr] = []
    for part in code.parts_at(source.line) if code is not None else ():
        found += [part.left, *part.comparators] if isinstance(part, ast.Compare) else []
        found += part.args if isinstance(part, ast.Call) and name_of(part.func) in _COMPARING else []
    return found


def _chance(group: Group) -> str:
    """What is compared with uniform noise."""
    number = group.op.source if group.op is not None else None
    if number is None:
        return "p"
    source = group.trace.sources[number]
    noise = _noise(group.suspect, source)
    code = program_of(group.trace).at(source.file, source.line)
    written = [code.written(each) for each in _sides(code, source)] if code is not None else []
    return next((each for each in written if each not in noise and not _UNIFORM_DRAW.search(each)), "p")


_COMPARING = ("less", "less_equal", "greater", "greater_equal")


def message_and_fix(group: Group) -> Text:
    """A comparison with uniform noise is a coin toss; counts, of events or of successes, have a continuous replacement;
    other draws are among several classes."""
    call, kind = call_of(group), (group.op.type if group.op else "").lower() + api_of(group).lower()
    message = filled(SIZE + "{op} draws a discrete sample, which has no derivative.", fields(group))
    if group.op is not None and group.op.type in COMPARISON and not _OF_DISTRIBUTION.fullmatch(api_of(group)):
        chance = _chance(group)
        logit = f"tf.math.log({chance}) - tf.math.log(1 - {bracketed(chance)})"
        return Text(
            message,
            f"Draw a relaxed sample: `u = tf.random.uniform(tf.shape({chance}), 1e-6, 1 - 1e-6)`, then "
            f"`tf.sigmoid(({logit} + tf.math.log(u) - tf.math.log(1 - u)) / 0.5)`.",
        )
    if (relaxed := _relaxed_distribution(group)) is not None:
        return Text(message, relaxed)
    if "mixture" in kind:
        return Text(
            message,
            "Create the distribution with `reparameterize=True`, so that the gradient passes through its samples; or "
            "use the log-likelihood of the data as the loss.",
        )
    if "poisson" in kind:
        rate = (call.argument(9, "lam") or call.argument(9, "rate") if call else None) or "rate"
        return Text(
            message,
            "Draw from a normal distribution with the same mean and variance, `{0} + tf.sqrt({0}) * "
            "tf.random.normal(tf.shape({0}))`, or weight the loss by the log-probability.".format(bracketed(rate)),
        )
    if "binomial" in kind:
        count = (call.argument(9, "counts") if call else None) or "n"
        chance = (call.argument(9, "probs") or call.argument(9, "probabilities") if call else None) or "p"
        n, p = bracketed(count), bracketed(chance)
        return Text(
            message,
            f"Draw from a normal distribution with the same mean and variance, `{n} * {p} + tf.sqrt({n} * {p} * (1 - "
            f"{p})) * tf.random.normal(tf.shape({n} * {p}))`, or use the log-likelihood of the counts as the loss.",
        )
    names = fields(group)
    if "(" not in names["x"]:
        return Text(message, filled(_GUMBEL, names))
    # A call of a model, written twice, would run twice.
    fix = filled(_GUMBEL, {**names, "x": "scores", "bx": "scores"})
    return Text(message, fix.replace("sample: `u =", f"sample of `scores = {names['x']}`: `u ="))


_RELAXED = {
    "Bernoulli": "RelaxedBernoulli",
    "Categorical": "RelaxedOneHotCategorical",
    "OneHotCategorical": "RelaxedOneHotCategorical",
}


def _relaxed_distribution(group: Group) -> str | None:
    """The fix for a distribution of TensorFlow Probability that has a relaxed counterpart; None for any other draw."""
    found = _OF_DISTRIBUTION.fullmatch(api_of(group))
    name = api_of(group).split(".")[1] if found is not None else ""
    if name not in _RELAXED:
        return None
    made = call_on(group.source.code, name) if group.source is not None else None
    head = (made.head.rpartition(".")[0] or "tfd") if made is not None else "tfd"
    given = "logits=logits"
    if made is not None:
        logits, chances = made.argument(0, "logits"), made.argument(1, "probs")
        given = f"logits={logits}" if logits else f"probs={chances}" if chances else given
    where = " The sample is a vector of weights instead of an index: multiply by it." if name == "Categorical" else ""
    return (
        f"Draw a relaxed sample: `{head}.{_RELAXED[name]}(temperature=0.5, {given}).sample()`.{where} Or weight the "
        "loss by the log-probability."
    )


_GUMBEL = (
    "Draw a relaxed sample: `u = tf.random.uniform(tf.shape({x}), 1e-6, 1 - 1e-6)`, then "
    "`tf.nn.softmax(({bx} - tf.math.log(-tf.math.log(u))) / 0.5)`, or weight the loss by the log-probability."
)


CAUSE = Cause(
    name="nondiff_sampling",
    meaning="a discrete sample: categorical, Poisson, binomial; or a comparison with uniform noise",
    severity="error",
    fix="a Gumbel-softmax sample",
    text=message_and_fix,
    verb="blocks it",
    edits=(
        soft_position,
        soft_comparison,
        continuous_draw,
        weighted_with_probability,
    ),
)
