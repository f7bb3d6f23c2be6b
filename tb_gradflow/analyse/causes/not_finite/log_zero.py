"""A logarithm of zero."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import bounded_logarithm
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.words.broken import BROKEN, is_undefined, logsumexp
from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.cut_at_zero import of_relu
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.forward_pass import is_mostly_negative, words_of_argument
from tb_gradflow.analyse.words.names import TERMS, Group, Text, layer_of, made_by, namespace
from tb_gradflow.analyse.words.phrases import braces

_NEAR = 6


def message_and_fix(group: Group) -> Text:
    """The logarithm of probabilities, of sums of exponentials, or of other values."""
    probabilities = made_by(group, ("Softmax", "Sigmoid"))
    if probabilities:
        keras = namespace(group) == "keras.ops"
        stable = {"Softmax": "log_softmax", "Sigmoid": "log_sigmoid"}[probabilities]
        stable = f"{'keras.ops' if keras else 'tf.nn' if probabilities == 'Softmax' else 'tf.math'}.{stable}"
        fix = f"Compute it from the logits: `{stable}(logits)`, or compute the loss from them, `from_logits=True`."
    elif made_by(group, ("Exp",), TERMS):
        total = logsumexp(group)
        fix = f"Sum in log space, `{total}(log_terms, axis=-1)`, where `log_terms` are the logarithms of the summands."
    elif made_by(group, ("Cumsum",)) and made_by(group, ("Exp",), TERMS | {"Cumsum"}):
        fix = (
            "Sum in log space: `tf.math.cumulative_logsumexp(log_terms)`, where `log_terms` are the logarithms of the "
            "summands."
        )
    elif made_by(group, ("MatrixDeterminant",), _OF_ONE_NUMBER):
        fix = (
            "Compute the log-determinant directly, as the determinant underflows: "
            f"`tf.linalg.slogdet({_matrix(group)})[1]` is the logarithm of its absolute value."
        )
    elif any(group.suspect.type_of(user) in _DIAGONALS for user in group.suspect.topology.onward(group.culprit)):
        fix = "Take the diagonal first, as the other elements are zero: `{head}(tf.linalg.diag_part({x}))`."
    elif _is_product_gone(group):
        fix = (
            "Sum the logarithms of its factors instead of multiplying them; in a recurrence, use `{total}` for its "
            "sums of products. A lower bound, `{lib}.maximum({x}, 1e-7)`, would leave no gradient."
        ).replace("{total}", logsumexp(group))
    elif _is_of_a_loss_of_keras(group):
        fix = (
            "This loss takes the logarithm of the output of the model: keep the output positive with "
            '`activation="softplus"` in the last layer.'
        )
    elif is_mostly_negative(group):
        fix = (
            "Find out why most of `{x}` is negative; a lower bound would leave no gradient there. If it is a logarithm "
            "already, such as a log-likelihood, use it without {fn}."
        )
    else:
        fix = "Keep its input above zero: `{head}({lib}.maximum({x}, 1e-7))`."
    either = "a value of zero or less, which has no finite"
    why = words_of_argument(group, "a negative value, which has no", "exactly 0, which has no finite", either)
    return Template(BROKEN + "{op} is given " + why + " logarithm.", fix)(group)


_OF_ONE_NUMBER = TERMS | {"Abs", "Maximum", "Minimum", "ClipByValue"}
_DIAGONALS = ("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")


def _matrix(group: Group) -> str:
    """The argument of the determinant in the user's line, for a template."""
    call = call_on(group.source.code, "det") if group.source is not None else None
    return braces(call.subject) if call is not None else "matrix"


def _is_of_a_loss_of_keras(group: Group) -> bool:
    named = group.op is not None and "loss" in group.op.name.partition("/")[0]
    return named and group.source is None and not layer_of(group.trace, group.culprit)


def _is_product_gone(group: Group) -> bool:
    """Whether the logarithm is of zero for every element, and of a long product, which underflows."""
    suspect = group.suspect
    report = suspect.measured.of_op(suspect.target, suspect.producer) if suspect.producer >= 0 else None
    somewhere = report is None or report.max_abs or report.zero_fraction
    if somewhere or suspect.culprit != group.culprit or is_undefined(group):
        return False
    made = suspect.topology.ancestors(group.culprit)[:_NEAR]
    return any(suspect.type_of(op) in (*LOOPS, "Prod", "Cumprod", "TensorListStack") for op in made)


CAUSE = Cause(
    name="log_zero",
    meaning="the gradient becomes NaN or infinite at a logarithm",
    severity="error",
    fix="an epsilon, or the logits",
    text=of_relu(message_and_fix),
    edits=(bounded_logarithm,),
    quotes=(
        "Keep its input above zero: ",
        "Compute it from the logits: ",
        "Sum in log space: ",
    ),
)
