#!/usr/bin/env python3
"""Checks the truth of each case against TensorFlow itself, eagerly and traced. Does not use tb_gradflow.

    python tests/cases/verify.py [--show] [--fit] [slug-prefix ...]

A case of kind "keras" runs the `train_step` of its model on the first batch; its gradients are those that
`tf.GradientTape.gradient` returned to that step. The loss of a "function" case is differentiated by a tape around it.
Checks

    status      of each variable, from its gradient; if that is None, the status is `unused` if changing the variable
                cannot change the loss, else `disconnected` (`no_path_check` in truth.json turns this check off)
    op          `blocking_ops`: the traced step has an op of this type whose output has a good gradient and whose
                input has none, zero or a non-finite one (`no_transition_check` turns this check off)
    numbers     `numerically_wrong`: a gradient disagrees with central differences
    fixed.py    every trainable variable gets a good gradient
    fit         with --fit: what the user sees in `model.fit`

`--show` prints every gradient.
"""

# ruff: noqa: T201
# mypy: ignore-errors

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALLEST, LARGEST = 1e-7, 1e4
NONE = {"disconnected", "unused"}


class Captured:
    """The requests to the tapes of one step, and their results.

    Attributes:
        answers: variable's identity -> every gradient that a tape gave for it (None, an array or an exception).
        targets: the losses asked for.
    """

    def __init__(self):
        self.answers = {}
        self.targets = []


@contextmanager
def capturing(captured, only=None):
    """Keeps every request to an outermost tape; with `only`, tapes watch only that variable."""
    import tensorflow as tf

    init, enter, gradient = tf.GradientTape.__init__, tf.GradientTape.__enter__, tf.GradientTape.gradient

    def init_narrow(self, persistent=False, watch_accessed_variables=True):
        init(self, persistent=persistent, watch_accessed_variables=watch_accessed_variables and only is None)
        self._narrow = watch_accessed_variables and only is not None

    def enter_narrow(self):
        tape = enter(self)
        if self._narrow:
            tape.watch(only)
        return tape

    busy = []

    def capture(self, target, sources, *args, **kwargs):
        flat = tf.nest.flatten(sources)
        variables = [_variable(s) for s in flat]
        # A gradient penalty asks for inputs; tf.recompute_grad asks for variables while another tape answers.
        if busy or not any(v is not None for v in variables):
            return gradient(self, target, sources, *args, **kwargs)
        captured.targets.append(target)
        busy.append(self)
        try:
            answers = gradient(self, target, sources, *args, **kwargs)
        except Exception as error:
            for variable in variables:
                if variable is not None:
                    _keep(captured, variable, error)
            raise Refused(error) from error
        finally:
            busy.clear()
        for variable, answer in zip(variables, tf.nest.flatten(answers), strict=False):
            if variable is not None:
                _keep(captured, variable, answer)
        return answers

    tf.GradientTape.gradient = capture
    if only is not None:
        tf.GradientTape.__init__, tf.GradientTape.__enter__ = init_narrow, enter_narrow
    try:
        yield
    finally:
        tf.GradientTape.__init__, tf.GradientTape.__enter__, tf.GradientTape.gradient = init, enter, gradient


class Refused(Exception):
    """The tape raised."""


def _keep(captured, variable, answer):
    import tensorflow as tf

    if isinstance(answer, tf.IndexedSlices):
        answer = tf.convert_to_tensor(answer)
    captured.answers.setdefault(id(variable), []).append(answer)


def _ask(question):
    try:
        return question()
    except Exception as error:
        return error


def _variable(source):
    """The tf.Variable behind a source of a tape, or None."""
    import tensorflow as tf

    value = getattr(source, "value", None)
    if isinstance(value, tf.Variable):
        return value
    value = getattr(source, "_value", None)
    if isinstance(value, tf.Variable):
        return value
    return source if isinstance(source, tf.Variable) else None


class Case:
    """A case, ready to be run as often as needed: each run starts from the same weights and random state."""

    def __init__(self, module):
        import keras

        keras.utils.clear_session()
        self.case = module.build()
        self.is_keras = self.case["kind"] == "keras"
        if self.is_keras:
            self.model = self.case["model"]
            self.run_eagerly = self.model.run_eagerly
            seeds = {id(v) for v in _seed_states(self.model)}
            named = [(v.path, _variable(v)) for v in self.model.weights if id(v) not in seeds]
            self.trainable = {v.path for v in self.model.trainable_weights}
            if self.model.optimizer is not None and self.model.trainable_variables:
                self.model.optimizer.build(self.model.trainable_variables)
            state = [*self.model.variables, *(self.model.optimizer.variables if self.model.optimizer else ())]
            self.state = [v for v in (_variable(s) for s in state) if v is not None]
        else:
            named = [(_name(v), _variable(v)) for v in self.case["variables"]]
            self.trainable = {_name(v) for v in self.case["variables"] if v.trainable}
            self.state = [_variable(v) for v in self.case["variables"]]
        self.variables = dict(named)
        if len(self.variables) != len(named):
            raise SystemExit("two variables share a name")
        self.start = [v.numpy() for v in self.state]

    def reset(self):
        import keras

        for variable, value in zip(self.state, self.start, strict=True):
            variable.assign(value)
        keras.utils.set_random_seed(0)

    def batch(self):
        import keras
        import tensorflow as tf

        rows = self.case.get("fit_kwargs", {}).get("batch_size")
        cut = lambda a: tf.convert_to_tensor(a[:rows])  # noqa: E731
        x = tf.nest.map_structure(cut, self.case["x"])
        y = None if self.case["y"] is None else tf.nest.map_structure(cut, self.case["y"])
        return keras.utils.pack_x_y_sample_weight(x, y)

    def step(self, captured):
        """Run one step; `captured` then holds its gradients, variable by variable where one of them raised."""
        import tensorflow as tf

        try:
            self._step(captured)
        except Refused:
            self._ask_apart(captured)
            raise
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.UnimplementedError,
        ) as error:  # compiling for the tape fails, before it is asked
            self._ask_apart(captured)
            raise Refused(error) from error

    def _ask_apart(self, captured):
        """Ask for the variables whose gradient raised one by one, by tapes that watch nothing else."""
        apart = {}
        for variable in self.variables.values():
            answers = captured.answers.get(id(variable))
            if answers is None or isinstance(answers[-1], Exception):
                alone, error = Captured(), None
                try:  # the optimizer minds that the others are None
                    self._step(alone, only=variable)
                except Exception as e:
                    error = e
                apart[id(variable)] = alone.answers.get(id(variable), [error])
        captured.answers.update(apart)

    def _step(self, captured, only=None):
        import tensorflow as tf

        with capturing(captured, only):
            if self.is_keras:
                self.model.train_step(self.batch())
                return
            with tf.GradientTape() as tape:
                loss = self.case["loss_fn"](*self.case["args"])
            tape.gradient(loss, list(self.variables.values()))

    def unscale(self):
        scale = getattr(getattr(self, "model", None), "optimizer", None)
        scale = getattr(scale, "dynamic_scale", None)
        return 1.0 if scale is None else float(_variable(scale).numpy())


def _seed_states(model):
    seeds = []
    for layer in model._flatten_layers():
        seeds += [g.state for g in getattr(layer, "_seed_generators", ())]
    return [s for s in seeds if s is not None]


def _name(variable):
    path = getattr(variable, "path", None)
    return path if path else variable.name.split(":")[0]


def _all(captured, variable):
    return captured.answers.get(id(variable), [])


def run_eager(case):
    """{name: [gradients]}, the losses' values and what was raised."""
    import tensorflow as tf

    case.reset()
    captured, error = Captured(), None
    tf.config.run_functions_eagerly(False)
    if case.is_keras:
        case.model.run_eagerly = True
    try:
        case.step(captured)
    except Exception as e:
        error = e
    losses = [_number(t) for t in captured.targets]
    return {n: [_value(a) for a in _all(captured, v)] for n, v in case.variables.items()}, losses, error


def run_graph(case, ops=()):
    """{name: [gradients]} of the traced step, and which of `ops` turn a good gradient into a bad one."""
    import tensorflow as tf

    case.reset()
    captured, names, answers, error = Captured(), [], [], []
    probes = []
    if case.is_keras:
        case.model.run_eagerly = False

    @tf.function(autograph=False)
    def step():
        names.clear(), answers.clear(), probes.clear()
        captured.answers.clear(), captured.targets.clear()
        error.clear()
        try:
            case.step(captured)
        except Refused as e:
            error.append(e)
        except ValueError as e:
            if "No gradients provided" not in str(e):
                raise
        out = []
        for name, variable in case.variables.items():
            for answer in _all(captured, variable):
                names.append(name)
                if answer is None or isinstance(answer, Exception):
                    answers.append(answer)
                else:
                    answers.append(len(out))
                    out.append(answer)
        found = []
        if ops:
            for target in captured.targets:
                found += _transitions(target, ops, probes)
        return out, found

    try:
        values, found = step()
    except tf.errors.OpError as e:  # the step was traced; compiling it fails
        return {n: [_compiled_alone(case, v)] for n, v in case.variables.items()}, Refused(e), set()
    except Exception as e:
        return None, e, None
    result = {n: [] for n in case.variables}
    for name, answer in zip(names, answers, strict=True):
        result[name].append(values[answer].numpy() if isinstance(answer, int) else answer)
    blocked = set()
    for op_type, out_index, in_indices in probes:
        before = "dtype" if out_index is None else _word(found[out_index].numpy())
        after = [None if i is None else _word(found[i].numpy()) for i in in_indices]
        lost = before in ("connected", "exploding", "dtype") and any(a in (None, "zero") for a in after)
        born = before not in ("nan", "inf") and any(a in ("nan", "inf") for a in after)
        if lost or born:
            blocked.add(op_type)
    return result, (error[0] if error else None), blocked


def _compiled_alone(case, variable):
    """The gradient of one variable, from a traced step whose tapes watch nothing else."""
    import tensorflow as tf

    captured, answers = Captured(), []

    @tf.function(autograph=False)
    def step():
        with suppress(ValueError):  # the optimizer minds that the others are None
            case._step(captured, only=variable)
        answers[:] = [a for a in captured.answers.get(id(variable), [])[-1:] if a is not None]
        return list(answers)

    case.reset()
    try:
        values = step()
    except Exception as e:
        return e
    return values[0].numpy() if values else None


def _transitions(target, types, probes):
    """Gradients of the target at the inputs and outputs of ops of these types, as tensors; `probes` says which."""
    import tensorflow as tf

    found = []
    target = tf.nest.flatten(target)[0]
    if not hasattr(target, "graph"):
        return found
    behind, todo = set(), [target.op]
    while todo:
        op = todo.pop()
        if op not in behind:
            behind.add(op)
            todo += [t.op for t in op.inputs]
    for op in target.graph.get_operations():
        if op.type not in types or not op.outputs:
            continue
        floating = [t for t in op.outputs if t.dtype.is_floating or t.dtype.is_complex]
        places = []
        for tensor in [*floating, *op.inputs]:
            if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
                places.append(None)
                continue
            answer = _ask(lambda t=tensor: tf.gradients(target, t)[0])
            if answer is None or isinstance(answer, Exception):
                places.append(None)
            else:
                places.append(len(found))
                found.append(tf.convert_to_tensor(answer))
        outputs, inputs = places[: len(floating)], places[len(floating) :]
        outputs = [p for p in outputs if p is not None]
        if not outputs and len(floating) < len(op.outputs) and op in behind and _floats_enter(op):
            probes.append((op.type, None, [None]))
        elif outputs:
            probes.append((op.type, outputs[0], inputs))
    return found


def _floats_enter(op):
    return any(t.dtype.is_floating or t.dtype.is_complex for t in op.inputs)


def _number(tensor):
    import tensorflow as tf

    return sum(float(tf.reduce_sum(tf.cast(t, tf.float64))) for t in tf.nest.flatten(tensor))


def _value(answer):
    return answer.numpy() if hasattr(answer, "numpy") else answer


def _word(gradient, tol=0.0):
    """The status of one gradient; None stands for `disconnected` and `unused` both."""
    import numpy as np

    if gradient is None:
        return None
    if isinstance(gradient, Exception):
        return "error"
    flat = np.asarray(gradient)
    flat = flat.astype("complex128" if np.iscomplexobj(flat) else "float64").ravel()
    if np.isnan(flat).any():
        return "nan"
    if np.isinf(flat).any():
        return "inf"
    top = float(np.abs(flat).max()) if flat.size else 0.0
    if top <= tol:
        return "zero"
    if top < SMALLEST:
        return "vanishing"
    return "exploding" if top > LARGEST else "connected"


def influences(case, name, base):
    """Whether another value of the variable gives another loss."""
    import numpy as np

    variable = case.variables[name]
    at = _index(case.state, variable)
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 10.0, 100.0):
        for sign in (1, -1):
            case.reset()
            value = case.start[at]
            if np.issubdtype(np.asarray(value).dtype, np.integer):
                variable.assign(value + sign * max(1, int(scale)))
            elif np.iscomplexobj(value):
                variable.assign(value * (1 + sign * scale))
            else:
                variable.assign((value + sign * scale * rng.normal(size=np.shape(value))).astype(value.dtype))
            captured = Captured()
            try:
                case.step(captured)
            except Exception:
                if not captured.targets:
                    return True  # a value that the program cannot take is a value that matters
            losses = [_number(t) for t in captured.targets]
            if any(not _same(a, b) for a, b in zip(losses, base, strict=False)):
                return True
    return False


def _same(a, b):
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-7 * max(abs(a), abs(b))


def _index(items, item):
    return next(i for i, v in enumerate(items) if v is item)


def wrong_numbers(case, gradients):
    """Variables whose gradient disagrees by a fifth or more with central differences along itself."""
    import numpy as np

    names = []
    for name, answers in gradients.items():
        if not answers or _word(answers[-1]) != "connected":
            continue
        g = np.asarray(answers[-1], "float64")
        unit = g / np.linalg.norm(g)
        slopes = []
        for h in (1e-2, 3e-3):
            ends = []
            for sign in (1, -1):
                case.reset()
                v = case.variables[name]
                v.assign((v.numpy() + sign * h * unit).astype(v.dtype.as_numpy_dtype))
                captured = Captured()
                case.step(captured)
                ends.append(_number(captured.targets[-1]))
            slopes.append((ends[0] - ends[1]) / (2 * h))
        size = np.linalg.norm(g)
        if all(abs(s - size) > 0.2 * max(abs(s), size) for s in slopes):
            names.append(name)
    return names


def wanted(truth, name, mode):
    """Statuses that are right for a variable in `mode` ("eager" or "graph")."""
    entry = truth["variables"].get(name)
    if entry is None:
        return {truth["all_others"]} if "all_others" in truth else None, 0.0
    right = {entry.get(f"status_{mode}", entry["status"]), *entry.get("accept", ())}
    return right, entry.get("tol", 0.0)


def compare(truth, case, seen, mode, scale, path_check, base):
    """Complaints about the statuses of one run."""
    import numpy as np

    wrong = []
    for name in truth["variables"]:
        if name not in case.variables:
            wrong.append(f"{name}: no such variable")
    for name in case.variables:
        right, tol = wanted(truth, name, mode)
        if name not in case.trainable:
            if right is not None and "frozen" not in right:
                wrong.append(f"{mode} {name}: not trainable")
            continue
        if right is None:
            wrong.append(f"{name}: truth says nothing")
            continue
        answers = [a if a is None or isinstance(a, Exception) else np.asarray(a) / scale for a in seen[name]]
        words = {_word(a, tol) for a in answers} or {None}
        if len(words) > 1:
            words.discard(None)
        if len(words) > 1:
            wrong.append(f"{mode} {name}: {words} in one step")
        word = words.pop()
        if word is not None:
            if word not in right:
                top = None if word == "error" else float(np.nanmax(np.abs(answers[-1]))) if answers[-1].size else 0
                wrong.append(f"{mode} {name}: {word} ({top}), truth {sorted(right)}")
        elif not right & NONE:
            wrong.append(f"{mode} {name}: None, truth {sorted(right)}")
        elif path_check and not right >= NONE and mode == "eager":
            moved = "disconnected" if influences(case, name, base) else "unused"
            if moved not in right:
                wrong.append(f"{name}: None and {moved}, truth {sorted(right)}")
    return wrong


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def what_fit_shows(case):
    """ "silent", "warns: …" or "error: …", in a fresh fit of one batch."""
    case.reset()
    case.model.run_eagerly = case.run_eagerly
    rows = case.case.get("fit_kwargs", {}).get("batch_size")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            case.model.fit(case.case["x"], case.case["y"], batch_size=rows, epochs=1, verbose=0, shuffle=False)
        except Exception as error:
            return f"error: {type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"
    texts = [str(w.message) for w in caught]
    for text in texts:
        if "Gradients do not exist" in text:
            return "warns: Gradients do not exist"
        if "does not have any trainable weights" in text:
            return "warns: no trainable weights"
    return "silent"


def check(folder, show, fit):
    """Complaints about one case."""
    truth = json.loads((folder / "truth.json").read_text())
    case = Case(load(folder / "case.py"))
    wrong = []
    eager, losses, error = run_eager(case)
    scale = case.unscale()
    if show:
        _print("eager", eager, scale)
        print("  losses", losses, "raised", repr(error)[:300] if error else None)
    if error is not None and not isinstance(error, Refused) and "No gradients provided" not in str(error):
        wrong.append(f"eager: {error!r}"[:300])
    refused = isinstance(error, Refused)
    path_check = not truth.get("no_path_check")
    if "eager_expected" not in truth or truth["eager_expected"]:
        wrong += compare(truth, case, eager, "eager", scale, path_check, losses)
    ops = set(truth.get("blocking_ops", ()))
    for entry in truth["variables"].values():
        ops |= set(entry.get("blocking_ops", ()))
    if truth.get("no_transition_check"):
        ops = set()
    graph, error, blocked = run_graph(case, tuple(sorted(ops)))
    if show and graph is not None:
        _print("graph", graph, scale)
        print("  blocked", blocked, "raised", repr(error)[:300] if error else None)
    if graph is None:
        if not truth.get("eager_only"):
            wrong.append(f"graph: {error!r}"[:300])
    else:
        if truth.get("eager_only"):
            wrong.append("graph: can be traced, though eager_only")
        refused = refused or isinstance(error, Refused)
        wrong += compare(truth, case, graph, "graph", scale, False, losses)
        missing = ops - blocked
        if missing:
            wrong.append(f"ops {sorted(missing)} block nothing, {sorted(blocked)} do")
    if refused != bool(truth.get("expected_error")):
        wrong.append(f"tape raised: {refused}, truth expected_error: {truth.get('expected_error')}")
    if truth.get("numerically_wrong") and not wrong_numbers(case, eager):
        wrong.append("gradients agree with finite differences")
    if case.is_keras and fit:
        shown = what_fit_shows(case)
        print("  fit", shown)
        if "fit" in truth and shown.split(":")[0] != truth["fit"].split(":")[0]:
            wrong.append(f"fit {shown}, truth {truth['fit']}")
    fixed = folder / "fixed.py"
    if fixed.exists():
        repaired = Case(load(fixed))
        gradients, _, error = run_eager(repaired)
        scale = repaired.unscale()
        bad = [
            n
            for n in repaired.trainable
            if {_word(a / scale if hasattr(a, "shape") else a) for a in gradients[n]} != {"connected"}
        ]
        if error is not None or bad:
            wrong.append(f"fixed.py: {bad} {error!r}"[:300])
    return wrong


def _print(mode, gradients, scale):
    import numpy as np

    for name, answers in gradients.items():
        texts = [
            "None"
            if a is None
            else repr(a)[:90]
            if isinstance(a, Exception)
            else f"{np.abs(np.asarray(a) / scale).max():.3g}"
            for a in answers
        ]
        print(f"  {mode} {name}: {', '.join(texts) or 'never asked'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print every gradient")
    parser.add_argument("--fit", action="store_true", help="also run model.fit and compare what it showed")
    parser.add_argument("--cases", default=str(HERE), help="folder of the cases")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("prefix", nargs="*")
    args = parser.parse_args()
    if args.child:
        wrong = check(Path(args.child), args.show, args.fit)
        print("\n".join(["WRONG " + w for w in wrong] or ["RIGHT"]))
        return 0
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    failures = 0
    for folder in sorted(p.parent for p in Path(args.cases).glob("*/truth.json")):
        if args.prefix and not folder.name.startswith(tuple(args.prefix)):
            continue
        command = [sys.executable, __file__, "--child", str(folder)]
        command += ["--show"] * args.show + ["--fit"] * args.fit
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        lines = done.stdout.strip().splitlines()
        good = bool(lines) and lines[-1] == "RIGHT"
        failures += not good
        print("right" if good else "WRONG", folder.name)
        told = lines if args.show else [ln for ln in lines if ln.startswith(("WRONG", "  fit"))]
        print("\n".join("   " + ln for ln in told), end="\n" if told else "")
        if not lines or not lines[-1].startswith(("RIGHT", "WRONG")):
            print("   ", "\n    ".join(done.stderr.strip().splitlines()[-6:]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
