"""Which cause it is: in each situation rules are applied in the order written here, and the first verdict stands.

The order goes from conclusive evidence to the fallback that only names the op. `rule` is the main rule of a cause. Its
other rules, and those that choose between causes, have descriptive names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tb_gradflow.analyse.causes.cancelling import (
    gradient_cancellation,
    normalised_then_summed,
    shift_invariant_parameter,
)
from tb_gradflow.analyse.causes.exact_zero import (
    degenerate_decomposition,
    degenerate_normalisation,
    loop_unseen,
    mask_multiplies_to_zero,
    zero_factor,
    zero_gradient,
    zero_init_by_design,
    zero_initialised,
    zero_input,
)
from tb_gradflow.analyse.causes.flat import (
    branch_not_taken,
    dead_relu,
    dead_units,
    local_saturation,
    saturation_clip,
    saturation_quant_range,
    saturation_sigmoid,
    saturation_softmax,
    softmax_single_class,
)
from tb_gradflow.analyse.causes.left_graph import (
    python_escape,
    python_snapshot,
    stop_gradient_misuse,
    variable_assign,
    variable_rebound,
)
from tb_gradflow.analyse.causes.no_derivative import (
    integer_dtype,
    no_gradient_registered,
    nondiff_comparison,
    nondiff_counting,
    nondiff_index,
    nondiff_op,
    nondiff_op_input,
    nondiff_rounding,
    nondiff_sampling,
    nondiff_sign,
    predicate_only,
    raised_on_the_way,
    second_order_missing,
)
from tb_gradflow.analyse.causes.not_finite import (
    in_front,
    nonfinite_input,
    nonfinite_update,
    nonfinite_weights,
    not_finite,
    singular,
    softmax_all_masked,
    where_inactive_branch,
    zero_over_zero,
)
from tb_gradflow.analyse.causes.strength import (
    exploding_recurrence,
    fp16_underflow,
    normalise_zero_vector,
    vanishing_depth,
)
from tb_gradflow.analyse.causes.tape import (
    not_in_gradient_sources,
    not_measured,
    tape_not_watching,
    tape_scope,
    untracked_variable,
    xla_boundary,
)
from tb_gradflow.analyse.causes.unused import (
    frozen_by_flag,
    linear_layers,
    non_trainable_state,
    output_not_used,
    recurrent_weight_single_step,
    regularizer_only,
    unused_by_design,
)
from tb_gradflow.analyse.causes.updates import (
    gradient_not_applied,
    held,
    loss_not_scaled,
)
from tb_gradflow.analyse.causes.wrong_value import (
    custom_gradient_wrong,
    fractions_as_indices,
    labels_broadcast,
    normalised_over_batch,
    not_a_distribution,
    predictions_dropped,
    probabilities_as_logits,
    targets_out_of_reach,
)
from tb_gradflow.analyse.evidence.suspects import Rule
from tb_gradflow.record.report import Status

CUT: tuple[Rule, ...] = (
    non_trainable_state.kept_up,
    integer_dtype.integer_variable,
    second_order_missing.rule,
    gradient_cancellation.density_of_own_sample,
    output_not_used.term_left_out,
    stop_gradient_misuse.rule,
    variable_rebound.rule,
    python_snapshot.rule,
    variable_assign.rule,
    python_escape.rule,
    python_escape.handed_to_predict,
    no_gradient_registered.rule,
    raised_on_the_way.raised_on_the_way,
    custom_gradient_wrong.rule,
    predicate_only.rule,
    nondiff_counting.rule,
    nondiff_sampling.rule,
    nondiff_index.rule,
    nondiff_rounding.rule,
    nondiff_comparison.rule,
    integer_dtype.integer_path,
    nondiff_op_input.rule,
    nondiff_op.rule,
)
"""Structure cuts the variable off, at this op."""

CUT_PRECEDENCE = (
    "non_trainable_state",
    "integer_dtype", "custom_gradient_wrong", "no_gradient_registered", "not_measured", "second_order_missing",
    "variable_rebound",
    "python_snapshot", "python_escape", "nondiff_rounding",
    "nondiff_index", "nondiff_sampling", "nondiff_counting", "nondiff_op_input", "nondiff_op", "variable_assign",
    "nondiff_comparison", "predicate_only", "gradient_cancellation", "output_not_used",
    "stop_gradient_misuse",
)  # fmt: skip
"""Which of several cuts around one variable to report: a custom gradient first, because it was meant to replace the ops
next to it; then values, then mere conditions, then stops on purpose."""

MISSING: tuple[Rule, ...] = (
    xla_boundary.rule,
    variable_rebound.rule,
    custom_gradient_wrong.own_gradient_raises,
    raised_on_the_way.raised_on_the_way,
    not_measured.gradient_failed,
    output_not_used.asked_for_a_copy,
    not_in_gradient_sources.others_listed,
    untracked_variable.rule,
    not_in_gradient_sources.rule,
    tape_not_watching.tensor_not_watched,
    tape_not_watching.rule,
    tape_scope.rule,
)
"""The structure lets the gradient pass, but none arrived."""

UNUSED: tuple[Rule, ...] = (
    python_escape.computed_outside,
    gradient_cancellation.density_forgets_sample,
    variable_assign.kept_as_state,
    non_trainable_state.only_written,
    second_order_missing.differentiated_away,
    branch_not_taken.branch_taken_without_it,
    regularizer_only.rule,
    unused_by_design.rule,
    recurrent_weight_single_step.rule,
    tape_scope.computed_in_a_dataset,
    tape_scope.computed_before_the_tape,
    second_order_missing.constant_slope,
    python_snapshot.kept_before,
    output_not_used.rule,
)
"""The loss does not depend on the variable. The suspect is the op where its path ends."""

PART: tuple[Rule, ...] = (output_not_used.part_not_used,)
"""The loss does not depend on a part of what is computed from the variable. The suspect is the op that takes it out."""

ZERO: tuple[Rule, ...] = (
    variable_assign.behind_custom_gradient,
    custom_gradient_wrong.own_gradient_is_zero,
    custom_gradient_wrong.own_gradient_gives_zero,
    python_escape.rule,
    nondiff_sign.rule,
    nondiff_sign.sign_unseen,
    second_order_missing.second_order_zero,
    second_order_missing.second_derivative_is_zero,
    fp16_underflow.fp16_flush,
    recurrent_weight_single_step.rule,
    softmax_single_class.rule,
    softmax_single_class.divided_by_itself,
    softmax_single_class.unrecorded,
    zero_gradient.nothing_left,
    softmax_all_masked.masked_everywhere,
    mask_multiplies_to_zero.nothing_selected,
    zero_gradient.at_a_minimum,
    normalised_then_summed.tied,
    normalised_then_summed.rule,
    zero_initialised.zero_initialised,
    zero_initialised.zero_initialised_unseen,
    degenerate_normalisation.rule,
    degenerate_normalisation.unit_of_one,
    shift_invariant_parameter.rule,
    nondiff_rounding.detour_around_rounding,
    gradient_cancellation.same_on_both_sides,
    shift_invariant_parameter.offset_on_both_sides,
    zero_init_by_design.zero_initialised_further_on,
    gradient_cancellation.rule,
    gradient_cancellation.taken_back,
    gradient_cancellation.equal_sides,
    mask_multiplies_to_zero.dropped,
    saturation_sigmoid.branch_taken_is_flat,
    nondiff_rounding.rounded_side_is_chosen,
    dead_relu.dead_relu_by_choice,
    branch_not_taken.rule,
    mask_multiplies_to_zero.loop_skipped,
    zero_input.rule,
    saturation_sigmoid.loop_saturates,
    branch_not_taken.loop_not_entered,
    loop_unseen.loop_unseen,
    targets_out_of_reach.flat_by_then,
    dead_relu.relu_unseen,
    saturation_softmax.rule,
    saturation_sigmoid.rule,
    nondiff_op_input.range_without_gradient,
    saturation_quant_range.rule,
    dead_relu.dead_relu_by_hand,
    saturation_clip.rule,
    dead_relu.rule,
    degenerate_decomposition.rule,
    zero_factor.factor_made_zero,
    saturation_clip.held_at_zero,
    fp16_underflow.rule,
    zero_gradient.part_left_out,
    mask_multiplies_to_zero.masked,
    shift_invariant_parameter.scale_without_influence,
    zero_gradient.rule,
)
"""From this op on, the gradient is zero everywhere."""

WEIGHTS: tuple[Rule, ...] = (
    nonfinite_weights.rule,
    nonfinite_weights.weights_broken_meanwhile,
    nonfinite_update.broken_by_update,
)
"""The weights themselves are not finite. Applied to every variable."""

NOT_FINITE: tuple[Rule, ...] = (
    custom_gradient_wrong.own_gradient_is_not_finite,
    zero_over_zero.mean_of_nothing,
    where_inactive_branch.rule,
    in_front.singular_first,
    in_front.given_first,
    nonfinite_input.rule,
    in_front.half_precision,
    not_finite.scale_too_large,
    exploding_recurrence.overflow_first,
    in_front.undefined_first,
    exploding_recurrence.overflowing_recurrence,
    singular.singular_here,
    in_front.broken_before,
    exploding_recurrence.diverged,
    nonfinite_input.last_resort_input,
    not_finite.rule,
)
"""From this op on, the gradient is NaN or infinite; or the loss is not finite, and this op hides that from the
variables."""

FLAT_SLOPE: tuple[Rule, ...] = (second_order_missing.rule,)
"""The derivative of an inner gradient is zero everywhere, and no variable shows it."""

VANISHING: tuple[Rule, ...] = (
    custom_gradient_wrong.own_gradient_differs,
    held.replaced,
    softmax_all_masked.masked_everywhere,
    softmax_single_class.single_class_unseen,
    vanishing_depth.at_a_minimum,
    shift_invariant_parameter.rule,
    normalised_then_summed.tied,
    normalised_then_summed.rule,
    normalised_then_summed.normalised_by_hand,
    gradient_cancellation.same_on_both_sides,
    shift_invariant_parameter.offset_on_both_sides,
    zero_init_by_design.zero_initialised_further_on,
    gradient_cancellation.rule,
    vanishing_depth.common_to_a_softmax,
    shift_invariant_parameter.shift_without_influence,
    shift_invariant_parameter.scale_without_influence,
    degenerate_normalisation.unit_of_one,
    zero_init_by_design.small_factor_by_design,
    vanishing_depth.mask_of_a_softmax,
    vanishing_depth.nothing_left,
    targets_out_of_reach.flat_by_then,
    local_saturation.local_saturation,
    vanishing_depth.small_input,
    vanishing_depth.rule,
)
"""The gradient arrives, but is close to zero."""

CONNECTED: tuple[Rule, ...] = (
    custom_gradient_wrong.own_gradient_differs,
    variable_rebound.rule,
    held.replaced,
    held.rate_of_zero,
    held.below_resolution,
    held.clipped_away,
    held.summed_up,
    held.constrained,
    held.waits,
    gradient_not_applied.rule,
    held.put_back,
    held.barely_moved,
    held.out_of_scale,
    regularizer_only.compiled_early,
    regularizer_only.rule,
    softmax_single_class.single_class_unseen,
    nondiff_rounding.range_alone,
    nondiff_op_input.partly_cut,
    python_escape.partly_in_python,
    labels_broadcast.rule,
    fractions_as_indices.rule,
    normalised_over_batch.rule,
    probabilities_as_logits.rule,
    probabilities_as_logits.exchanged,
    targets_out_of_reach.rule,
    predictions_dropped.rule,
    softmax_all_masked.masked_everywhere,
    shift_invariant_parameter.rule,
    normalised_then_summed.tied,
    normalised_then_summed.rule,
    normalised_then_summed.normalised_by_hand,
    degenerate_normalisation.noise_of_one,
    gradient_not_applied.nothing_applied,
    loss_not_scaled.rule,
    saturation_clip.no_probability,
    not_a_distribution.rule,
    linear_layers.rule,
    saturation_clip.elements_outside,
    mask_multiplies_to_zero.masked_in_part,
    mask_multiplies_to_zero.masked_by_hand,
    dead_units.rule,
)
"""The gradient arrives, but is misleading."""

EXPLODING: tuple[Rule, ...] = (
    custom_gradient_wrong.own_gradient_differs,
    normalise_zero_vector.rule,
    targets_out_of_reach.rule,
    exploding_recurrence.rule,
)
"""The gradient arrives, but is huge."""

INTEGER: tuple[Rule, ...] = (integer_dtype.integer_source,)
"""A gradient is requested for an integer tensor. The suspect is the op that uses it."""

UNMEASURED: tuple[Rule, ...] = (not_measured.rule,)
"""No step was completed, and the structure shows no problem."""

FROZEN: tuple[Rule, ...] = (
    frozen_by_flag.rule,
    frozen_by_flag.held_by_container,
    frozen_by_flag.frozen_alone,
    non_trainable_state.rule,
)
"""The variable is not meant to be trained."""

GIVEN: Mapping[tuple[Status, ...], tuple[Rule, ...]] = MappingProxyType(
    {
        ("zero",): (zero_gradient.given_zero,),
        ("nan", "inf"): (not_finite.given_nonfinite,),
        ("exploding",): (exploding_recurrence.given_huge,),
        ("vanishing",): (exploding_recurrence.diverging, vanishing_depth.given_tiny),
        ("connected",): (
            exploding_recurrence.diverging,
            gradient_not_applied.rule,
            gradient_not_applied.nothing_applied,
        ),
    }
)
"""The gradient was passed to the recorder, so no op is known: by what the variable got."""
