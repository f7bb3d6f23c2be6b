"""What a suspect is guilty of: one function a cause, asked in the order written here; the first verdict stands.

The order runs from the evidence that leaves no doubt to the fallback that only names the op.
"""

from __future__ import annotations

from collections.abc import Iterable

from tb_gradflow.analyse.causes import (
    broadcast,
    cancelling,
    frozen,
    held,
    in_front,
    left_graph,
    masked,
    no_derivative,
    normalisers,
    not_finite,
    own_gradient,
    recurrence,
    standing,
    strength,
    tape,
    unbounded,
    unseen,
    unused,
    zero,
    zero_factor,
    zero_input,
)
from tb_gradflow.analyse.evidence.concat_parts import cuts_behind
from tb_gradflow.analyse.evidence.suspects import Rule, Suspect, Verdict

CUT: tuple[Rule, ...] = (
    no_derivative.integer_variable,
    no_derivative.second_order_missing,
    left_graph.density_of_own_sample,
    left_graph.term_left_out,
    left_graph.stop_gradient_misuse,
    left_graph.variable_rebound,
    left_graph.python_snapshot,
    left_graph.variable_assign,
    left_graph.python_escape,
    no_derivative.no_gradient_registered,
    no_derivative.raised_on_the_way,
    no_derivative.custom_gradient_wrong,
    no_derivative.predicate_only,
    no_derivative.nondiff_counting,
    no_derivative.nondiff_sampling,
    no_derivative.nondiff_index,
    no_derivative.nondiff_rounding,
    no_derivative.nondiff_comparison,
    no_derivative.integer_path,
    no_derivative.nondiff_op_input,
    no_derivative.nondiff_op,
)
"""Structure cuts the variable off, at this op."""

CUT_PRECEDENCE = (
    "integer_dtype", "custom_gradient_wrong", "no_gradient_registered", "second_order_missing", "variable_rebound",
    "python_snapshot", "python_escape", "nondiff_rounding",
    "nondiff_index", "nondiff_sampling", "nondiff_counting", "nondiff_op_input", "nondiff_op", "variable_assign",
    "nondiff_comparison", "predicate_only", "gradient_cancellation", "output_not_used",
    "stop_gradient_misuse",
)  # fmt: skip
"""Of several cuts around one variable, the one to speak of: a gradient of the user's own, which was meant to replace
what lies beside it; values, then mere conditions, then what was asked for on purpose."""

MISSING: tuple[Rule, ...] = (
    tape.xla_boundary,
    left_graph.variable_rebound,
    own_gradient.own_gradient_raises,
    no_derivative.raised_on_the_way,
    tape.gradient_failed,
    tape.asked_for_a_copy,
    tape.untracked_variable,
    tape.not_in_gradient_sources,
    tape.tensor_not_watched,
    tape.tape_not_watching,
    tape.tape_scope,
)
"""Structure lets the gradient pass, and none arrived."""

UNUSED: tuple[Rule, ...] = (
    left_graph.density_forgets_sample,
    unused.kept_as_state,
    unused.only_written,
    unused.differentiated_away,
    unused.branch_not_taken,
    unused.regularizer_only,
    unused.unused_by_design,
    unused.recurrent_weight_single_step,
    unused.output_not_used,
)
"""The variable takes no part in the loss. The suspect is the op where its way ends."""

ZERO: tuple[Rule, ...] = (
    own_gradient.own_gradient_is_zero,
    own_gradient.own_gradient_gives_zero,
    left_graph.python_escape,
    no_derivative.nondiff_sign,
    unseen.sign_unseen,
    no_derivative.second_order_zero,
    no_derivative.second_derivative_is_zero,
    zero.fp16_flush,
    unused.recurrent_weight_single_step,
    zero.softmax_single_class,
    zero.nothing_left,
    masked.nothing_selected,
    cancelling.normalised_then_summed,
    zero_factor.zero_initialised,
    unseen.zero_initialised_unseen,
    normalisers.degenerate_normalisation,
    normalisers.unit_of_one,
    cancelling.shift_invariant_parameter,
    zero.detour_around_rounding,
    cancelling.same_on_both_sides,
    cancelling.offset_on_both_sides,
    zero_factor.zero_initialised_further_on,
    cancelling.gradient_cancellation,
    cancelling.equal_sides,
    zero_factor.dropped,
    unseen.branch_taken_is_flat,
    zero_factor.dead_relu_by_choice,
    zero.branch_not_taken,
    unseen.loop_skipped,
    zero_input.zero_input,
    unseen.loop_saturates,
    unseen.loop_not_entered,
    unseen.loop_unseen,
    unseen.relu_unseen,
    zero.saturation_softmax,
    zero.saturation_sigmoid,
    no_derivative.range_without_gradient,
    zero.saturation_quant_range,
    zero_factor.dead_relu_by_hand,
    zero.saturation_clip,
    zero_factor.dead_relu,
    zero.degenerate_decomposition,
    zero_factor.factor_made_zero,
    held.held_at_zero,
    zero.fp16_underflow,
    zero.part_left_out,
    masked.masked,
    strength.scale_without_influence,
    zero.zero_gradient,
)
"""The gradient arrives as nothing but zeros, from this op on."""

WEIGHTS: tuple[Rule, ...] = (
    not_finite.nonfinite_weights,
    not_finite.weights_broken_meanwhile,
    not_finite.broken_by_update,
)
"""The weights themselves are not finite. Asked of every variable."""

NOT_FINITE: tuple[Rule, ...] = (
    own_gradient.own_gradient_is_not_finite,
    in_front.mean_of_nothing,
    not_finite.where_inactive_branch,
    not_finite.nonfinite_input,
    in_front.half_precision,
    recurrence.overflowing_recurrence,
    not_finite.singular_here,
    in_front.broken_before,
    recurrence.diverged,
    not_finite.last_resort_input,
    not_finite.not_finite,
)
"""The gradient arrives as NaN or infinity, from this op on; or the loss is not finite, and this op hides it from the
variables."""

VANISHING: tuple[Rule, ...] = (
    own_gradient.own_gradient_differs,
    zero.single_class_unseen,
    cancelling.shift_invariant_parameter,
    cancelling.normalised_then_summed,
    cancelling.normalised_by_hand,
    cancelling.same_on_both_sides,
    cancelling.offset_on_both_sides,
    zero_factor.zero_initialised_further_on,
    cancelling.gradient_cancellation,
    strength.common_to_a_softmax,
    strength.shift_without_influence,
    strength.scale_without_influence,
    normalisers.unit_of_one,
    strength.small_factor_by_design,
    strength.local_saturation,
    strength.small_input,
    strength.vanishing_depth,
)
"""The gradient arrives, and is next to nothing."""

CONNECTED: tuple[Rule, ...] = (
    own_gradient.own_gradient_differs,
    left_graph.variable_rebound,
    standing.rate_of_zero,
    standing.below_resolution,
    standing.clipped_away,
    standing.gradient_not_applied,
    unused.regularizer_only,
    zero.single_class_unseen,
    no_derivative.partly_cut,
    left_graph.partly_in_python,
    broadcast.labels_broadcast,
    cancelling.shift_invariant_parameter,
    cancelling.normalised_then_summed,
    cancelling.normalised_by_hand,
    standing.nothing_applied,
    standing.loss_not_scaled,
    unbounded.no_probability,
    masked.masked_in_part,
    masked.masked_by_hand,
)
"""The gradient arrives, and is not what it seems."""

EXPLODING: tuple[Rule, ...] = (
    own_gradient.own_gradient_differs,
    strength.normalise_zero_vector,
    strength.exploding_recurrence,
)
"""The gradient arrives, and is huge."""

INTEGER: tuple[Rule, ...] = (no_derivative.integer_source,)
"""A gradient is requested for a tensor of integers. The suspect is the op that takes it."""

UNMEASURED: tuple[Rule, ...] = (tape.not_measured,)
"""No step was completed, and structure finds no fault."""

FROZEN: tuple[Rule, ...] = (frozen.frozen_by_flag, frozen.frozen_alone, frozen.non_trainable_state)
"""The variable is not to be trained."""


def judge(suspects: Iterable[Suspect], rules: tuple[Rule, ...]) -> tuple[Suspect, Verdict] | None:
    """The first verdict, by rule and then by suspect; null if there is none."""
    listed = tuple(suspects)
    for rule in rules:
        for suspect in listed:
            verdict = rule(suspect)
            if verdict is not None:
                return suspect, verdict
    return None


def judge_zeros(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """The first verdict, except that a branch which was not chosen explains its own way alone, and so does a second
    derivative of zero: what makes zeros of the other ways is told."""
    listed = tuple(suspects)
    found = judge(listed, ZERO)
    if found is not None and found[1].cause == "zero_gradient":
        return judge_cuts(cut for each in listed for cut in cuts_behind(each)) or found
    if found is None or found[1].cause not in _ITS_OWN_WAY:
        return found
    if found[1].cause == "branch_not_taken":
        rest = [each for each in listed if each.op.type not in zero.BRANCHES]
    else:
        rest = [each for each in listed if (own := judge((each,), ZERO)) and own[1].cause != found[1].cause]
    other = judge(rest, ZERO)
    return other if other is not None and other[1].cause != "zero_gradient" else found


_ITS_OWN_WAY = ("branch_not_taken", "second_order_missing")


def judge_cuts(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """Of the verdicts on all cuts around one variable, the first by `CUT_PRECEDENCE`, then the nearest to the loss.

    A cut with a `stop_gradient` behind it on every way comes last: mending it alone would not help.
    """
    judged = [found for suspect in suspects if (found := judge((suspect,), CUT)) is not None]
    return min(judged, key=_precedence, default=None)


def _precedence(judged: tuple[Suspect, Verdict]) -> tuple[bool, int, int, int]:
    suspect, verdict = judged
    hops = suspect.topology.influence(suspect.target).hops[suspect.culprit]
    return left_graph.is_stopped_behind(suspect), CUT_PRECEDENCE.index(verdict.cause), hops, suspect.culprit
