"""The gradient of each term of a loss: the terms are found and named, and they add up to the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.terms import measured

layers = keras.layers

Terms = Mapping[str, Callable[[], Any]]


class Small:
    """Two weights, a batch, and losses that are sums of the same terms in many ways of writing."""

    def __init__(self) -> None:
        generator = np.random.default_rng(7)
        self.w = tf.Variable(generator.normal(size=(3, 4)).astype("f"), name="w")
        self.v = tf.Variable(generator.normal(size=(4, 3)).astype("f"), name="v")
        self.x = tf.constant(generator.normal(size=(8, 3)).astype("f"))
        self.beta = tf.Variable(0.3, trainable=False)

    @property
    def variables(self) -> list[Any]:
        return [self.w, self.v]

    def h(self) -> Any:
        return tf.tanh(self.x @ self.w)

    def errors(self) -> Any:
        """One for each row."""
        return tf.reduce_sum(tf.square(self.h() @ self.v - self.x), axis=-1)

    def sizes(self) -> Any:
        """One for each row."""
        return tf.reduce_mean(tf.square(self.h()), axis=-1) - tf.reduce_mean(self.h(), axis=-1)

    def recon(self) -> Any:
        return tf.reduce_mean(self.errors())

    def kl(self) -> Any:
        return tf.reduce_mean(self.sizes())

    def norm(self) -> Any:
        return tf.nn.l2_loss(self.w)


def plain_sum(m: Small) -> Any:
    recon = m.recon()
    kl = m.kl()
    return recon + kl


def weighted(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return 2.0 * recon + kl * 0.5


def weighted_by_a_variable(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return recon + m.beta * kl


def differences(m: Small) -> Any:
    recon, kl, norm = m.recon(), m.kl(), m.norm()
    return -(kl - recon) / 4.0 - norm


def running_total(m: Small) -> Any:
    loss = m.recon()
    loss += 0.1 * m.kl()
    loss = loss + m.norm()
    return loss  # noqa: RET504 - as people write it


def begun_with_a_name(m: Small) -> Any:
    recon = 2.0 - 2.0 * tf.reduce_mean(m.h())
    loss = recon
    loss = loss + m.kl()
    return loss  # noqa: RET504 - as people write it


def listed(m: Small) -> Any:
    recon, kl, norm = m.recon(), m.kl(), m.norm()
    return tf.add_n([recon, kl, norm])


def listed_for_python(m: Small) -> Any:
    recon, kl, norm = m.recon(), m.kl(), m.norm()
    return sum([recon, kl, norm])


def kept_in_a_dictionary(m: Small) -> Any:
    recon = tf.reduce_mean(m.errors())
    kl = 0.5 * tf.reduce_mean(m.sizes())
    losses = {"first": recon, "second": kl}
    return sum(losses.values())


def stacked(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return tf.reduce_mean(tf.stack([recon, kl]))


def stacked_and_weighted(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return tf.reduce_sum([recon, kl] * tf.constant([1.0, 0.25]))


def by_example(m: Small) -> Any:
    errors, sizes = m.errors(), m.sizes()
    return tf.reduce_mean(errors + 0.2 * sizes)


def three_by_example(m: Small) -> Any:
    errors, sizes, norm = m.errors(), m.sizes(), m.norm()
    return tf.reduce_mean(errors + 0.2 * sizes - norm)


def listed_from_a_dictionary(m: Small) -> Any:
    weights = {"first": 2.0, "second": 0.5, "third": 1.0}
    losses = {"first": tf.reduce_mean(m.errors()), "second": tf.reduce_mean(m.sizes()), "third": tf.nn.l2_loss(m.w)}
    return tf.add_n([weights[key] * loss for key, loss in losses.items()])


def one_image_with_its_variation(m: Small) -> Any:
    """The sum is a vector of a single number."""
    loss = m.recon()
    loss += 0.1 * tf.image.total_variation(m.w[tf.newaxis, :, :, tf.newaxis])
    return loss


def one_minus_a_similarity(m: Small) -> Any:
    likeness = 1.0 - tf.reduce_mean(m.h())
    kl = tf.reduce_mean(2.0 - 2.0 * tf.square(m.h()))
    return 0.5 * likeness + kl


def by_example_and_weighted(m: Small) -> Any:
    errors, sizes = m.errors(), m.sizes()
    importance = tf.linspace(0.0, 1.0, 8)
    return tf.reduce_sum(importance * (errors + sizes)) / 8.0


def a_number_for_all_examples(m: Small) -> Any:
    errors, norm = m.errors(), m.norm()
    return tf.reduce_mean(errors + norm)


def of_dictionary(m: Small) -> Any:
    losses = {"recon": m.recon(), "kl": m.kl()}
    return losses["recon"] + 0.5 * losses["kl"]


def of_calls(m: Small) -> Any:
    return tf.reduce_mean(m.errors()) + 0.5 * m.kl()


def not_reduced(m: Small) -> Any:
    errors, sizes = m.errors(), m.sizes()
    return errors + sizes


def of_keras(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return keras.ops.add(recon, keras.ops.multiply(0.5, kl))


def with_a_constant(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return recon + kl + 1e-3


def nested(m: Small) -> Any:
    penalties = m.kl() + m.norm()
    recon = m.recon()
    return recon + penalties


def nested_by_name(m: Small) -> Any:
    kl, norm = m.kl(), m.norm()
    penalties = kl + norm
    recon = m.recon()
    return recon + penalties


def doubled(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return recon + kl + recon


CASES: dict[Callable[[Small], Any], Callable[[Small], Terms]] = {
    plain_sum: lambda m: {"recon": m.recon, "kl": m.kl},
    weighted: lambda m: {"recon": lambda: 2 * m.recon(), "kl": lambda: 0.5 * m.kl()},
    weighted_by_a_variable: lambda m: {"recon": m.recon, "kl": lambda: 0.3 * m.kl()},
    differences: lambda m: {
        "kl": lambda: -m.kl() / 4,
        "recon": lambda: m.recon() / 4,
        "norm": lambda: -m.norm(),
    },
    running_total: lambda m: {"recon": m.recon, "kl": lambda: 0.1 * m.kl(), "norm": m.norm},
    begun_with_a_name: lambda m: {"recon": lambda: 2.0 - 2.0 * tf.reduce_mean(m.h()), "kl": m.kl},
    listed: lambda m: {"recon": m.recon, "kl": m.kl, "norm": m.norm},
    listed_for_python: lambda m: {"recon": m.recon, "kl": m.kl, "norm": m.norm},
    kept_in_a_dictionary: lambda m: {"recon": m.recon, "kl": lambda: 0.5 * m.kl()},
    stacked: lambda m: {"recon": lambda: m.recon() / 2, "kl": lambda: m.kl() / 2},
    stacked_and_weighted: lambda m: {"recon": m.recon, "kl": lambda: m.kl() / 4},
    by_example: lambda m: {"errors": m.recon, "sizes": lambda: 0.2 * m.kl()},
    three_by_example: lambda m: {
        "errors": m.recon,
        "sizes": lambda: 0.2 * m.kl(),
        "norm": lambda: -m.norm(),
    },
    listed_from_a_dictionary: lambda m: {
        "first": lambda: 2.0 * m.recon(),
        "second": lambda: 0.5 * m.kl(),
        "third": m.norm,
    },
    one_image_with_its_variation: lambda m: {
        "recon": m.recon,
        "total_variation": lambda: 0.1 * tf.image.total_variation(m.w[tf.newaxis, :, :, tf.newaxis]),
    },
    one_minus_a_similarity: lambda m: {
        "likeness": lambda: 0.5 - 0.5 * tf.reduce_mean(m.h()),
        "kl": lambda: tf.reduce_mean(2.0 - 2.0 * tf.square(m.h())),
    },
    by_example_and_weighted: lambda m: {
        "errors": lambda: tf.reduce_mean(tf.linspace(0.0, 1.0, 8) * m.errors()),
        "sizes": lambda: tf.reduce_mean(tf.linspace(0.0, 1.0, 8) * m.sizes()),
    },
    a_number_for_all_examples: lambda m: {"errors": m.recon, "norm": m.norm},
    of_dictionary: lambda m: {"recon": m.recon, "kl": lambda: 0.5 * m.kl()},
    of_calls: lambda m: {"errors": m.recon, "kl": lambda: 0.5 * m.kl()},
    not_reduced: lambda m: {"errors": lambda: 8 * m.recon(), "sizes": lambda: 8 * m.kl()},
    of_keras: lambda m: {"recon": m.recon, "kl": lambda: 0.5 * m.kl()},
    with_a_constant: lambda m: {"recon": m.recon, "kl": m.kl},
    nested: lambda m: {"recon": m.recon, "penalties": lambda: m.kl() + m.norm()},
    nested_by_name: lambda m: {"recon": m.recon, "kl": m.kl, "norm": m.norm},
    doubled: lambda m: {"recon": lambda: 2 * m.recon(), "kl": m.kl},
}


@pytest.mark.parametrize("eagerly", [False, True], ids=["traced", "eager"])
@pytest.mark.parametrize("loss", CASES, ids=lambda loss: loss.__name__)
def test_terms_have_the_users_names_and_the_gradients_of_a_plain_tape(
    loss: Callable[[Small], Any], eagerly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = Small()
    arrived = kept_gradients(monkeypatch)

    def step() -> Any:
        if eagerly:
            float(m.x[0, 0].numpy())  # not to be compiled
        return loss(m)

    terms = tb_gradflow.explain(step, variables=m.variables).to_dict()["terms"]

    wanted = CASES[loss](m)
    assert [term["name"] for term in terms] == list(wanted)
    check_against_plain_tape(terms, wanted, m.variables)
    if eagerly:
        check_sum(arrived, lambda: loss(m), m.variables)


def kept_gradients(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The gradients themselves, of which the report has the norms; of the terms in turn."""
    found: list[list[Any]] = []
    original = measured._gradients

    def keeping(*args: Any) -> list[Any]:
        found.append(original(*args))
        return found[-1]

    monkeypatch.setattr(measured, "_gradients", keeping)
    return found


def plain_gradients(loss: Callable[[], Any], variables: list[Any]) -> tuple[float, list[Any]]:
    with tf.GradientTape() as tape:
        value = loss()
    return float(tf.reduce_sum(value)), tape.gradient(value, variables)


def check_against_plain_tape(terms: list[dict[str, Any]], wanted: Terms, variables: list[Any]) -> None:
    plain = {name: plain_gradients(loss, variables) for name, loss in wanted.items()}
    for term in terms:
        value, gradients = plain[term["name"]]
        assert term["value"] == pytest.approx(value, rel=1e-5, abs=1e-6)
        reached = {v.name.removesuffix(":0") for v, g in zip(variables, gradients, strict=True) if g is not None}
        assert term["variables"].keys() == reached
        for place, variable in enumerate(variables):
            own = gradients[place]
            if own is None:
                continue
            said = term["variables"][variable.name.removesuffix(":0")]
            others = {n: g[place] for n, (_, g) in plain.items() if g[place] is not None}
            norms = {n: np.linalg.norm(g) for n, g in others.items()}
            assert said["norm"] == pytest.approx(norms[term["name"]], rel=1e-5)
            assert said["share"] == pytest.approx(norms[term["name"]] / sum(norms.values()), rel=1e-5)
            cosines = {n: np.vdot(own, g) / norms[term["name"]] / norms[n] for n, g in others.items()}
            del cosines[term["name"]]
            assert said["cosine"] == pytest.approx(cosines, abs=1e-5)


def check_sum(arrived: list[list[Any]], loss: Callable[[], Any], variables: list[Any]) -> None:
    _, whole = plain_gradients(loss, variables)
    for place, gradient in enumerate(whole):
        parts = [np.asarray(term[place]) for term in arrived if term[place] is not None]
        if gradient is None:
            assert not parts
            continue
        # Added up in another order than the tape does: equal to rounding.
        np.testing.assert_allclose(sum(parts), gradient, rtol=1e-5, atol=1e-6)


def names(report: Any) -> list[str]:
    return [term.name for term in report.terms]


def test_terms_that_lead_through_one_loop_are_measured() -> None:
    """TensorFlow rewrites a loop that it differentiates; the gradient of the second term differentiates it again."""
    w, scale = tf.Variable([0.5, 1.5], name="w"), tf.Variable(2.0, name="scale")

    def loss() -> Any:
        _, grown = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * scale), [tf.constant(0), w * 1.0])
        return tf.reduce_sum(tf.square(grown)) + 0.1 * tf.reduce_sum(grown * w)

    report = tb_gradflow.explain(loss, variables=[w, scale])

    # grown = scale^3 w: the terms are scale^6 w^2 and 0.1 scale^3 w^2.
    norms = [{each.variable: each.norm for each in term.variables} for term in report.terms]
    assert norms[0] == pytest.approx({"w": 128 * np.sqrt(2.5), "scale": 480.0}, rel=1e-5)
    assert norms[1] == pytest.approx({"w": 1.6 * np.sqrt(2.5), "scale": 3.0}, rel=1e-5)


def test_a_loss_of_one_term_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Small()
    arrived = kept_gradients(monkeypatch)

    def formula() -> Any:
        # Four things are added up for each number; a person would call it one loss.
        return tf.reduce_mean(1.0 + m.h() - tf.square(m.h()) - tf.exp(m.h()))

    report = tb_gradflow.explain(formula, variables=[m.w])

    assert report.to_dict()["terms"] is None
    assert not arrived


def test_nothing_more_is_measured_without_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Small()
    arrived = kept_gradients(monkeypatch)

    report = tb_gradflow.explain(lambda: plain_sum(m), variables=m.variables, terms=False)

    assert report.to_dict()["terms"] is None
    assert not arrived


def test_a_term_that_is_detached_has_no_gradient_and_is_listed() -> None:
    m = Small()

    def step() -> Any:
        recon = m.recon()
        kl = tf.stop_gradient(m.kl())
        return recon + kl

    [recon, kl] = tb_gradflow.explain(step, variables=m.variables).to_dict()["terms"]

    assert recon["variables"].keys() == {"w", "v"}
    assert kl["variables"] == {}
    assert kl["value"] == pytest.approx(float(m.kl()), rel=1e-5)


def test_a_term_with_nan_says_so_and_leaves_the_others_alone() -> None:
    m = Small()

    def step() -> Any:
        recon = m.recon()
        entropy = tf.reduce_mean(tf.math.log(0.0 * m.h()))
        return recon + entropy

    report = tb_gradflow.explain(step, variables=m.variables)

    [recon, entropy] = report.to_dict()["terms"]
    assert entropy["value"] is None
    assert recon["value"] == pytest.approx(float(m.recon()), rel=1e-5)
    assert recon["variables"]["w"]["cosine"] == {"entropy": None}
    assert recon["variables"]["w"]["norm"] == pytest.approx(
        np.linalg.norm(plain_gradients(m.recon, m.variables)[1][0]), rel=1e-5
    )


def test_many_terms_are_measured_as_sixteen() -> None:
    m = Small()

    def step() -> Any:
        return tf.add_n([tf.reduce_mean(tf.square(m.h()[:, place % 4])) for place in range(40)])

    report = tb_gradflow.explain(step, variables=[m.w])

    assert len(report.terms) == 16
    assert report.terms[-1].name == "25 others"
    check_norm_of_sum(report)


def check_norm_of_sum(report: Any) -> None:
    """The norm of a sum of vectors follows from their norms and the angles between them."""
    assert report.terms
    for name, variable in report.variables.items():
        parts = {term.name: each for term in report.terms for each in term.variables if each.variable == name}
        if variable.gradient is None or not parts:
            assert not parts
            continue
        total = 0.0
        for own, one in parts.items():
            cosines = {each.term: each.cosine for each in one.cosine} | {own: 1.0}
            total += sum(one.norm * other.norm * (cosines[n] or 0.0) for n, other in parts.items())
        scale = sum(each.norm for each in parts.values())
        assert np.sqrt(max(total, 0.0)) == pytest.approx(variable.gradient.norm, rel=1e-4, abs=2e-4 * scale)


def test_a_term_that_is_given_a_gradient_by_hand_is_weighted_with_it() -> None:
    m = Small()

    class Stepping(keras.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                errors, sizes = m.errors(), m.sizes()
                loss = errors + sizes
            tape.gradient(loss, m.variables, output_gradients=tf.linspace(0.0, 1.0, 8))
            return {"loss": 0.0}

    model = Stepping()
    model.compile("sgd")
    model.built = True

    report = tb_gradflow.explain(model, np.zeros((8, 1), "f"), np.zeros((8, 1), "f"))

    errors = report.terms[0]
    weights = tf.linspace(0.0, 1.0, 8)
    _, [wanted, _] = plain_gradients(lambda: tf.reduce_sum(weights * m.errors()), m.variables)
    assert next(each.norm for each in errors.variables if each.variable == "w") == pytest.approx(
        np.linalg.norm(wanted), rel=1e-5
    )
    check_norm_of_sum(report)


def heads(**options: Any) -> Any:
    x = keras.Input((6,))
    h = layers.Dense(8, activation="tanh", name="trunk", kernel_regularizer="l2")(x)
    outputs = [
        layers.Dense(1, name="price", kernel_regularizer=keras.regularizers.L1(0.01))(h),
        layers.Dense(3, name="kind")(h),
    ]
    model = keras.Model(x, outputs)
    losses = ["mse", keras.losses.SparseCategoricalCrossentropy(from_logits=True)]
    model.compile("adam", losses, loss_weights=[1.0, 0.25], **options)
    return model


def batch_of_heads() -> tuple[Any, Any]:
    x = np.random.default_rng(3).normal(size=(16, 6)).astype("f")
    return x, [x[:, :1], np.arange(16) % 3]


@pytest.mark.parametrize(
    "options",
    [{}, {"run_eagerly": True}, {"jit_compile": True}, {"jit_compile": False}],
    ids=["auto", "eager", "xla", "plain"],
)
def test_the_outputs_of_a_keras_model_are_terms_and_its_regularizers_one(options: dict[str, Any]) -> None:
    keras.utils.set_random_seed(2)
    model, (x, y) = heads(**options), batch_of_heads()

    report = tb_gradflow.explain(model, x, y)

    def outputs() -> Any:
        return model(x, training=True)

    crossentropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    wanted = {
        "price": lambda: tf.reduce_mean(tf.square(outputs()[0] - y[0])),
        "kind": lambda: 0.25 * crossentropy(y[1], outputs()[1]),
        "regularizers": lambda: tf.add_n(model.losses),
    }
    assert names(report) == list(wanted)
    check_norm_of_sum(report)
    for term in report.terms:
        variables = model.trainable_variables
        value, gradients = plain_gradients(wanted[term.name], [each.value for each in variables])
        assert term.value == pytest.approx(value, rel=1e-4)
        norms = {v.path: np.linalg.norm(g) for v, g in zip(variables, gradients, strict=True) if g is not None}
        assert {each.variable: each.norm for each in term.variables} == pytest.approx(norms, rel=1e-4)


def test_a_scaled_loss_has_the_terms_of_the_loss() -> None:
    keras.utils.set_random_seed(2)
    model, (x, y) = heads(), batch_of_heads()
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1024.0)
    plain = tb_gradflow.explain(model, x, y)

    model.compile(optimizer, model.loss, loss_weights=[1.0, 0.25])
    scaled = tb_gradflow.explain(model, x, y)

    assert names(scaled) == names(plain)
    for one, other in zip(plain.terms, scaled.terms, strict=True):
        assert other.value == pytest.approx(one.value, rel=1e-5)
        for each, same in zip(one.variables, other.variables, strict=True):
            assert same.norm == pytest.approx(each.norm, rel=1e-5)
    check_norm_of_sum(scaled)


class Sampling(keras.layers.Layer):
    """Adds the divergence of its input from a normal distribution to the loss."""

    def __init__(self) -> None:
        super().__init__(name="sampling")
        self.seed_generator = keras.random.SeedGenerator(5)

    def call(self, inputs: Any) -> Any:
        mean, log_var = inputs
        kl = -0.5 * keras.ops.mean(1 + log_var - keras.ops.square(mean) - keras.ops.exp(log_var))
        self.add_loss(0.01 * kl)
        noise = keras.random.normal(keras.ops.shape(mean), seed=self.seed_generator)
        return mean + keras.ops.exp(0.5 * log_var) * noise


def test_a_loss_that_a_layer_adds_is_a_term_with_its_name() -> None:
    keras.utils.set_random_seed(2)
    x = keras.Input((6,))
    h = layers.Dense(8, activation="tanh", name="encoder")(x)
    z = Sampling()([layers.Dense(2, name="mean")(h), layers.Dense(2, name="log_var")(h)])
    model = keras.Model(x, layers.Dense(6, name="decoder")(z))
    model.compile("adam", "mse")
    data = batch_of_heads()[0]

    report = tb_gradflow.explain(model, data, data)

    assert names(report) == ["mean_squared_error", "kl"]
    reached = {term.name: {each.variable for each in term.variables} for term in report.terms}
    assert "decoder/kernel" in reached["mean_squared_error"]
    assert reached["kl"] == {f"{name}/{part}" for name in ("encoder", "mean", "log_var") for part in ("kernel", "bias")}
    assert report.terms[1].source is not None
    assert "kl = -0.5" in report.terms[1].source.code
    check_norm_of_sum(report)


class Sparse(keras.layers.Layer):
    """Adds formulas of its input, which have no name."""

    def call(self, x: Any) -> Any:
        self.add_loss(1e-3 * keras.ops.mean(keras.ops.abs(x)))
        self.add_loss(self.size_of(x))
        self.add_loss(1e-3 * keras.ops.mean(keras.ops.square(x - 1.0)))
        spread = keras.ops.var(x)
        self.add_loss(1e-3 * spread)
        return x

    def size_of(self, x: Any) -> Any:
        return 1e-3 * keras.ops.mean(keras.ops.square(x))


def test_a_formula_of_a_layers_input_is_named_after_the_layer() -> None:
    x = keras.Input((6,))
    model = keras.Model(x, layers.Dense(6, name="out")(Sparse(name="sparse")(layers.Dense(4)(x))))
    model.compile("adam", "mse")
    data = batch_of_heads()[0]

    report = tb_gradflow.explain(model, data, data)

    assert names(report) == ["mean_squared_error", "sparse", "sparse (2)", "sparse (3)", "spread"]


def test_a_loss_function_given_to_compile_may_have_terms() -> None:
    def blurred(y: Any, p: Any) -> Any:
        pixels = keras.ops.mean(keras.ops.square(y - p), axis=-1)
        edges = keras.ops.mean(keras.ops.abs(p), axis=-1)
        return pixels + 0.1 * edges

    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(6, name="out")])
    model.compile("adam", blurred)
    x = batch_of_heads()[0]

    report = tb_gradflow.explain(model, x, x)

    assert names(report) == ["pixels", "edges"]
    check_norm_of_sum(report)


def test_each_loss_of_a_step_has_its_terms() -> None:
    class Gan(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.generator = keras.Sequential([keras.Input((2,)), layers.Dense(3)], name="generator")
            self.critic = keras.Sequential([keras.Input((3,)), layers.Dense(1)], name="critic")

        def train_step(self, data: Any) -> dict[str, Any]:
            noise = tf.ones([8, 2])
            with tf.GradientTape() as tape:
                fake = self.generator(noise)
                real_loss = tf.reduce_mean(tf.nn.softplus(-self.critic(data)))
                fake_loss = tf.reduce_mean(tf.nn.softplus(self.critic(fake)))
                d_loss = real_loss + fake_loss
            tape.gradient(d_loss, self.critic.trainable_variables)
            with tf.GradientTape() as tape:
                fake = self.generator(noise)
                fooling = -tf.reduce_mean(self.critic(fake))
                size = tf.reduce_mean(tf.square(fake))
                g_loss = fooling + 0.1 * size
            tape.gradient(g_loss, self.generator.trainable_variables)
            return {"d": d_loss, "g": g_loss}

    model = Gan()
    model.compile("sgd")
    model.built = True

    report = tb_gradflow.explain(model, batch_of_heads()[0][:8, :3])

    assert names(report) == ["real_loss", "fake_loss", "fooling", "size"]
    assert [term.target for term in report.terms] == [0, 0, 1, 1]
    check_norm_of_sum(report)


def test_weights_are_left_as_they_were() -> None:
    keras.utils.set_random_seed(2)
    model, (x, y) = heads(), batch_of_heads()
    model.fit(x, y, verbose=0)
    before = [np.array(each) for each in (*model.variables, *model.optimizer.variables)]

    tb_gradflow.explain(model, x, y)

    after = [np.array(each) for each in (*model.variables, *model.optimizer.variables)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
