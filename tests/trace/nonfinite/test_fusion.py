"""What measuring would keep apart is found where the step branches into what nobody needs."""

from __future__ import annotations

import tensorflow as tf

from tb_gradflow.trace.numerics.fusion import Needed, may_be_merged, seen_apart


def test_a_constant_that_is_pushed_past_a_branch_nobody_needs_is_seen() -> None:
    """A division by a constant has a gradient of the constant too, which disappears: GELU with Keras 3.3."""
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        scaled = given * tf.exp(given)
        product = scaled * tf.exp(-given)
        wanted, _ = product / 1.5, product * tf.tanh(given)
        needed = Needed([wanted], [scaled, product])

        assert may_be_merged(scaled, needed)
        assert may_be_merged(product, needed)


def test_a_constant_is_not_pushed_past_a_branch_that_is_needed() -> None:
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        scaled = given * tf.exp(given)
        product = scaled * tf.exp(-given)
        wanted = [product / 1.5, product * tf.tanh(given)]

        assert not may_be_merged(scaled, Needed(wanted, [scaled, product]))


def test_a_product_whose_factors_have_several_shapes_is_multiplied_in_another_order() -> None:
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        rate = tf.compat.v1.placeholder(tf.float32, [])
        scaled = given * tf.exp(given)
        wanted = [scaled * rate]

        assert may_be_merged(scaled, Needed(wanted, [scaled]))


def test_a_product_of_unknown_size_is_found_behind_the_sum_over_what_was_broadcast() -> None:
    """The optimizer removes that sum where nothing was: batches whose size is not known while a step is traced."""
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [None, 4])
        gate = tf.nn.relu6(given) / 6.0
        wanted, on_the_way = tf.gradients(tf.exp(given * gate), [given, gate])
        needed = Needed([wanted], [on_the_way])

        assert on_the_way.op.type == "Reshape"
        assert may_be_merged(on_the_way, needed)
        assert seen_apart(on_the_way, needed) is None


def test_factors_without_a_constant_are_looked_at() -> None:
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        scaled = given * tf.exp(given)
        product = scaled * tf.tanh(given)
        wanted = [product * tf.exp(given)]

        assert not may_be_merged(scaled, Needed(wanted, [scaled, product]))


def test_a_constant_is_looked_at_through_another_one() -> None:
    """The optimizer makes one of two that are equal, and pushes it into what takes it."""
    with tf.Graph().as_default() as graph:
        given = tf.compat.v1.placeholder(tf.float32, [])
        seed = tf.constant(1.0)
        wanted = [tf.math.divide_no_nan(seed, given)]

        assert may_be_merged(seed, Needed(wanted, [seed]))
        seen = seen_apart(seed)

        assert len(seed.consumers()) == 1
        with tf.compat.v1.Session(graph=graph) as session:
            assert session.run(seen) == 1.0


def test_what_is_made_of_constants_alone_is_not_made_again_of_the_same_ones() -> None:
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        scaled = tf.fill([4], 1.0) / 4.0
        wanted = [-scaled * given]

        seen = seen_apart(wanted[0].op.inputs[0], Needed(wanted, [scaled]))

        assert seen.op.type == "Neg"
        assert seen.op.inputs[0].op.type == "PlaceholderWithDefault"


def test_a_product_that_goes_on_behind_a_branch_nobody_needs_is_one_product() -> None:
    """The gradient of a square, `gradient * (2 * x)`, and then of a product: the constant has another shape."""
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        incoming, other = tf.tanh(given), tf.exp(given)
        doubled = given * tf.constant(2.0)
        scaled = incoming * doubled
        wanted, _ = scaled * other, -scaled
        needed = Needed([wanted], [doubled, scaled])

        assert may_be_merged(doubled, needed)
