"""Made-up runs for developing the page: one for each thing it has to show."""

from __future__ import annotations

import array
import math
from collections.abc import Callable
from dataclasses import dataclass

from builder import Builder, Input, rows_of, smooth_norms

from tb_gradflow.record.report import (
    Diagnosis,
    Finding,
    GradientReport,
    OpReport,
    SourceReport,
    Status,
    VariableReport,
)
from tb_gradflow.record.schema import Trace

CHUNK = 16


@dataclass
class Run:
    """A run as the routes hand it out; `spoil` changes the norm of a row at a step."""

    name: str
    trace: Trace
    steps: list[int]
    decades: float
    statuses: dict[str, Status]
    findings: tuple[Finding, ...]
    summary: str
    spoil: Callable[[str, int, float], float] = lambda name, step, norm: norm

    def norms(self, step: int) -> list[float]:
        rows = rows_of(self.trace)
        return [
            self.spoil(name, step, norm)
            for name, norm in zip(rows, smooth_norms(self.trace, step, self.decades), strict=True)
        ]

    def gradients(self, step: int) -> array.array[float]:
        values = array.array("f")
        for norm in self.norms(step):
            nan, inf = float(math.isnan(norm)), float(math.isinf(norm))
            finite = 0.0 if nan or inf else norm
            values.extend([finite, finite / 3, finite / 9, float(finite == 0), nan, inf])
        return values

    def weights(self, step: int) -> array.array[float]:
        values = array.array("f")
        for index, variable in enumerate(self.trace.variables):
            moved = self.statuses.get(variable.name, "connected") == "connected" and variable.trainable
            values.extend([2.0 + index % 7 + step / 900, 0.004 / (1 + step / 300) if moved else 0.0, 0.0, 0.0])
        return values

    def report(self, step: int) -> Diagnosis:
        rows = dict(zip(rows_of(self.trace), self.norms(max(step, 0)), strict=True))
        variables = tuple(
            self._variable(each.name, each.trainable, rows.get(each.name)) for each in self.trace.variables
        )
        return Diagnosis(1, step, 0, self.summary, variables, self.findings, ())

    def _variable(self, name: str, trainable: bool, norm: float | None) -> VariableReport:
        status: Status = self.statuses.get(name, "connected" if trainable else "frozen")
        gradient = (
            None if norm is None or not math.isfinite(norm) else GradientReport(norm, norm / 3, norm / 9, 0.0, 0, 0)
        )
        return VariableReport(name, status, (8,), "float32", gradient)


def dense(b: Builder, model: str, scope: str, name: str, x: Input, activation: str | None) -> int:
    at = b.layer(f"{model}/{scope}", name, "Dense")
    kernel, bias = b.variable(f"{name}/kernel", 16, 8), b.variable(f"{name}/bias", 8)
    product = b.op(f"{at}/MatMul", "MatMul", x, b.read(kernel, f"{at}/Cast/ReadVariableOp"))
    out = b.op(f"{at}/Add", "AddV2", product, b.read(bias, f"{at}/Add/ReadVariableOp"))
    return out if activation is None else b.op(f"{at}/{activation}", activation, out)


def loss_of(b: Builder, prediction: int) -> int:
    at = "compile_loss/mse"
    difference = b.op(f"{at}/sub", "Sub", prediction)
    square = b.op(f"{at}/Square", "Square", difference)
    mean = b.op(f"{at}/Mean", "Mean", square)
    total = b.op(f"{at}/Sum", "Sum", mean)
    return b.op(f"{at}/div_no_nan", "DivNoNan", total)


def step_filter() -> Run:
    b = Builder()
    conv = b.layer("sequential_1/conv1d_1", "conv1d", "Conv1D")
    kernel, bias = b.variable("conv1d/kernel", 3, 4, 8), b.variable("conv1d/bias", 8)
    threshold = b.variable("step_filter/threshold")
    line = b.line("/home/ann/project/model.py", 17, "call", "mask = tf.sequence_mask(steps, width, dtype=tf.float32)")
    clip = b.line("/home/ann/project/model.py", 16, "call", "steps = tf.clip_by_value(self.threshold, 0.0, width)")
    out = b.op(f"{conv}/convolution", "Conv2D", b.read(kernel, f"{conv}/convolution/ReadVariableOp"))
    out = b.op(f"{conv}/Add", "AddV2", out, b.read(bias, f"{conv}/Add/ReadVariableOp"))
    out = b.op(f"{conv}/Relu", "Relu", out)
    at = b.layer("sequential_1/step_filter_1", "step_filter", "StepFilter")
    read = b.read(threshold, f"{at}/clip_by_value/ReadVariableOp")
    api = "tf.clip_by_value"
    low = b.op(f"{at}/clip_by_value/Minimum", "Minimum", read, source=clip, api=api)
    high = b.op(f"{at}/clip_by_value", "Maximum", low, source=clip, api=api)
    expand = b.op(f"{at}/SequenceMask/ExpandDims", "ExpandDims", high, source=line, api="tf.sequence_mask")
    cast = b.op(f"{at}/SequenceMask/Cast", "Cast", expand, source=line, api="tf.sequence_mask")
    blocked: Input = (cast, "not_differentiable")
    less = b.op(f"{at}/SequenceMask/Less", "Less", blocked, dtype="bool", source=line, api="tf.sequence_mask")
    mask = b.op(f"{at}/SequenceMask/Cast_1", "Cast", (less, "dtype"), source=line, api="tf.sequence_mask")
    out = b.op(f"{at}/mul", "Mul", out, mask)
    out = b.op("sequential_1/global_average_pooling1d_1/Mean", "Mean", out)
    out = dense(b, "sequential_1", "dense_1", "dense", out, "Relu")
    out = dense(b, "sequential_1", "dense_2", "dense_1", out, None)
    loss = loss_of(b, out)
    trace = b.trace(loss)
    path = (read, low, high, expand, cast, less, mask, *range(mask + 1, loss + 1))
    way = tuple(op for op in path if trace.ops[op].reads is None or op == read)
    finding = Finding(
        "nondiff_comparison",
        "error",
        ("step_filter/threshold",),
        OpReport(trace.ops[less].name, "Less"),
        SourceReport("/home/ann/project/model.py", 17, trace.sources[0].code),
        "`step_filter/threshold` never learns: `tf.sequence_mask` compares it with positions, and a comparison has "
        "no gradient. The mask that comes out is a number again, but nothing of it leads back.",
        "mask = tf.sigmoid((steps - positions) / temperature)",
        0,
        less,
        way,
    )
    summary = "1 of 7 variables gets no gradient: `tf.sequence_mask` in step_filter blocks it."
    return Run(
        "demo/broken",
        trace,
        list(range(0, 400, 5)),
        2.5,
        {"step_filter/threshold": "disconnected"},
        (finding,),
        summary,
    )


def healthy() -> Run:
    b = Builder()
    out: Input = (-1, "yes")
    seed = b.variable("dropout/seed_generator_state", 2, trainable=False, dtype="uint32")
    for index in range(4):
        out = dense(b, "functional_1", f"dense_{index + 1}", f"dense_{index}" if index else "dense", out, "Relu")
        if index == 1:
            at = b.layer("functional_1/dropout_1", "dropout", "Dropout")
            state = b.read(seed, f"{at}/ReadVariableOp")
            draw = b.op(f"{at}/random_uniform", "StatelessRandomUniformV2", (state, "dtype"))
            keep = b.op(f"{at}/GreaterEqual", "GreaterEqual", (draw, "not_differentiable"), dtype="bool")
            out = b.op(f"{at}/SelectV2", "SelectV2", (keep, "none"), out)
    trace = b.trace(loss_of(b, dense(b, "functional_1", "dense_5", "logits", out, None)))
    summary = "All 10 trainable variables get a gradient."
    return Run("demo/fixed", trace, list(range(0, 200, 10)), 3, {}, (), summary)


def not_finite() -> Run:
    b = Builder()
    out: Input = (-1, "yes")
    for index in range(3):
        out = dense(b, "model", f"dense_{index + 1}", f"dense_{index}" if index else "dense", out, "Relu")
    at = "model/lambda_1"
    log = b.op(f"{at}/Log", "Log", out)
    unused = b.variable("projector/kernel", 8, 8)
    trace = b.trace(loss_of(b, dense(b, "model", "dense_9", "<img src=x onerror=alert(1)>", log, None)))
    finding = Finding(
        "first_nan",
        "error",
        ("dense/kernel", "dense_1/kernel", "dense_2/kernel"),
        OpReport(trace.ops[log].name, "Log"),
        SourceReport("train.py", 40, "y = tf.math.log(x)"),
        "The first NaN appears at step 120 in the gradient of `tf.math.log`: its input is zero there.",
        "y = tf.math.log(x + 1e-6)",
        0,
        log,
        tuple(range(log - 3, len(trace.ops))),
    )
    idle = Finding(
        "unused_variable",
        "warning",
        ("projector/kernel",),
        None,
        None,
        "`projector/kernel` is not used by any op of the training step.",
        "Call the layer, or remove it.",
        0,
        -1,
        (),
    )
    info = Finding(
        "frozen",
        "info",
        ("dense/bias",),
        None,
        None,
        "`dense/bias` is frozen, so it gets no gradient.",
        "",
        0,
        -1,
        (),
    )

    def spoil(name: str, step: int, norm: float) -> float:
        if name.startswith(("model/dense_1", "dense/")):
            return 0.0
        if step >= 120 and name.startswith(("model/dense_3", "dense_2/")):
            return math.nan
        if step >= 120 and name.startswith(("model/lambda", "model/dense_2")):
            return math.inf
        return norm

    assert unused >= 0
    statuses: dict[str, Status] = {
        "projector/kernel": "unused",
        "dense/kernel": "zero",
        "dense/bias": "zero",
        "dense_2/kernel": "nan",
    }
    summary = "Gradients are NaN from step 120 on, first at tf.math.log; one variable is unused."
    return Run("numbers", trace, list(range(0, 200, 10)), 5, statuses, (finding, idle, info), summary, spoil)


def block(b: Builder, model: str, name: str, x: int) -> int:
    shortcut = x
    for part in range(1, 4):
        at = b.layer(f"{model}/{name}_{part}_conv_1", f"{name}_{part}_conv", "Conv2D")
        kernel = b.variable(f"{name}_{part}_conv/kernel", 3, 3, 64, 64)
        x = b.op(f"{at}/convolution", "Conv2D", x, b.read(kernel, f"{at}/convolution/ReadVariableOp"))
        bias = b.variable(f"{name}_{part}_conv/bias", 64)
        x = b.op(f"{at}/Add", "AddV2", x, b.read(bias, f"{at}/Add/ReadVariableOp"))
        at = b.layer(f"{model}/{name}_{part}_bn_1", f"{name}_{part}_bn", "BatchNormalization")
        for moving in ("moving_mean", "moving_variance"):
            b.variable(f"{name}_{part}_bn/{moving}", 64, trainable=False)
        gamma, beta = b.variable(f"{name}_{part}_bn/gamma", 64), b.variable(f"{name}_{part}_bn/beta", 64)
        mean = b.op(f"{at}/moments/mean", "Mean", x)
        variance = b.op(
            f"{at}/moments/variance", "Mean", b.op(f"{at}/moments/SquaredDifference", "SquaredDifference", x, mean)
        )
        root = b.op(f"{at}/batchnorm/Rsqrt", "Rsqrt", b.op(f"{at}/batchnorm/add", "AddV2", variance))
        scale = b.op(f"{at}/batchnorm/mul", "Mul", root, b.read(gamma, f"{at}/batchnorm/mul/ReadVariableOp"))
        left = b.op(f"{at}/batchnorm/mul_1", "Mul", x, scale)
        right = b.op(
            f"{at}/batchnorm/sub",
            "Sub",
            b.read(beta, f"{at}/batchnorm/ReadVariableOp"),
            b.op(f"{at}/batchnorm/mul_2", "Mul", mean, scale),
        )
        x = b.op(f"{at}/batchnorm/add_1", "AddV2", left, right)
        if part < 3:
            at = b.layer(f"{model}/{name}_{part}_relu_1", f"{name}_{part}_relu", "Activation")
            x = b.op(f"{at}/Relu", "Relu", x)
    x = b.op(f"{b.layer(f'{model}/{name}_add_1', f'{name}_add', 'Add')}/Add", "AddV2", shortcut, x)
    return b.op(f"{b.layer(f'{model}/{name}_out_1', f'{name}_out', 'Activation')}/Relu", "Relu", x)


def resnet(name: str, stages: tuple[int, ...]) -> Run:
    b = Builder()
    model = "resnet50_1"
    stem = b.variable("conv1_conv/kernel", 7, 7, 3, 64)
    b.layer(f"{model}/conv1_conv_1", "conv1_conv", "Conv2D")
    x = b.op(
        f"{model}/conv1_conv_1/convolution", "Conv2D", b.read(stem, f"{model}/conv1_conv_1/convolution/ReadVariableOp")
    )
    for stage, count in enumerate(stages):
        for index in range(count):
            x = block(b, model, f"conv{stage + 2}_block{index + 1}", x)
    x = b.op(f"{b.layer(f'{model}/avg_pool_1', 'avg_pool', 'GlobalAveragePooling2D')}/Mean", "Mean", x)
    line = b.line("train.py", 31, "build", "age = keras.ops.round(dense(features))")
    good = dense(b, "functional_1", "label_1", "label", x, "Softmax")
    raw = dense(b, "functional_1", "age_1", "age", x, None)
    scope = b.layer("functional_1/round_1", "round", "Round")
    rounded = b.op(f"{scope}/Round", "Round", (raw, "none"), source=line, api="keras.ops.round")
    both = b.op("compile_loss/add", "AddV2", loss_of(b, good), b.op("compile_loss/age/Mean", "Mean", rounded))
    trace = b.trace(both)
    reads = [
        at for at, op in enumerate(trace.ops) if op.reads is not None and trace.variables[op.reads].name == "age/kernel"
    ]
    finding = Finding(
        "nondiff_rounding",
        "error",
        ("age/kernel", "age/bias"),
        OpReport(f"{scope}/Round", "Round"),
        SourceReport("train.py", 31, trace.sources[0].code),
        "`keras.ops.round` has a gradient of zero everywhere, so TensorFlow gives none: the head `age` never learns.",
        "age = dense(features)  # round only for display",
        0,
        rounded,
        (reads[0], reads[0] + 1, raw, rounded, both - 1, both),
    )
    statuses: dict[str, Status] = {"age/kernel": "disconnected", "age/bias": "disconnected"}
    summary = "2 of the trainable variables get no gradient: `keras.ops.round` in round cuts off the head age."
    return Run(name, trace, list(range(0, 100, 10)), 6, statuses, (finding,), summary)


def chain() -> Run:
    b = Builder()
    x = b.op("op_0", "Mul", b.read(b.variable("w", 4), "ReadVariableOp"))
    for index in range(1, 3000):
        x = b.op(f"op_{index}", "Sin", x)
    return Run("chain", b.trace(x), [0, 1], 8, {}, (), "All variables get a gradient.")


def runs() -> list[Run]:
    return [
        step_filter(),
        healthy(),
        not_finite(),
        resnet("resnet", (3, 4, 6, 3)),
        chain(),
        resnet("large", (80, 80, 90, 80, 80, 80, 60)),
    ]
