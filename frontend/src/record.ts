/**
 * Written by `python -m tb_gradflow.record.typescript` from the Python records. Do not edit.
 */

export type Passes =
  | "yes"
  | "none"
  | "not_differentiable"
  | "unregistered"
  | "dtype"
  | "error"
  | "state"
  | "unknown";

export const PYTHON = 'Python';

export const SNAPSHOT = 'Snapshot';

export const COMPILED_EARLY = 'tf.function';

export const EAGER = 'Eager';

/** A line of the user's code. */
export interface Source {
  /**
   * Path, relative to the working directory or to the directory from which Python imports it. Older logs have other
   * paths.
   */
  readonly file: string;
  /** Line number, from one. */
  readonly line: number;
  /** Name of the function the line is in. */
  readonly function: string;
  /**
   * The line itself, stripped; if it is part of a statement over several lines, the whole statement. Empty if the file
   * could not be read.
   */
  readonly code: string;
}

/** The norm of a variable's gradient after an edit. */
export interface TrialNorm {
  readonly variable: string;
  readonly norm: number;
}

export type Kept =
  | "forward"
  | "shape"
  | "checkpoint";

/** Some steps on one batch with an edit, and without it, rolled back. */
export interface Trained {
  /** Their number. */
  readonly steps: number;
  /** With the edit: the first, and the one after the last step; null if it was not finite. */
  readonly loss: readonly (number | null)[];
  /** The same without the edit; null as well if the program could not be trained without it. */
  readonly without: readonly (number | null)[];
  /** The loss of each step with the edit, and the last one again; null if it was not finite. None in older logs. */
  readonly curve: readonly (number | null)[];
  /** The same without the edit. */
  readonly curve_without: readonly (number | null)[];
}

/** The result of an edit that was applied in memory on a batch of the training, and rolled back. */
export interface Trial {
  /** Of the edit, as are the next three. */
  readonly file: string;
  /** Number of the first line that it replaces, from one. */
  readonly line: number;
  /** Number of the last one. */
  readonly end_line: number;
  /** The new lines. */
  readonly after: string;
  /** As of `Tried`, as are the next three. */
  readonly works: boolean;
  /** The loss before and after the edit; null if it was not finite or the step did not complete. */
  readonly loss: readonly (number | null)[];
  /** For each variable of the finding that gets a gradient with it. */
  readonly gradient_norm: readonly TrialNorm[];
  /** Whether it works only together with the edits of other findings. */
  readonly with_others: boolean;
  /** As of `Tried`, as are the last two of these; none in older logs. */
  readonly trained: Trained | null;
  readonly not_trained: string;
  readonly keeps: readonly Kept[];
  /** The step whose batch and weights were used; in older logs the first one. */
  readonly step: number;
  /** As of `Finding`: it was not run, for this reason; then the other results say nothing. */
  readonly not_tried: string;
}

export const LEARNED = 0.5;

export type BatchChange =
  | "nothing"
  | "inputs_alike"
  | "targets_scaled";

/** The same batch for some steps, with the same random numbers in each, rolled back. */
export interface Descent {
  /** own: the optimizer of the program. adam: Adam. */
  readonly by: "own" | "adam";
  /** The learning rate of Adam; null if the program's optimizer has its own. */
  readonly rate: number | null;
  /** What was different in the batch. */
  readonly changed: BatchChange;
  /** That of each step, and the one after the last; null if it was not finite. */
  readonly losses: readonly (number | null)[];
}

/** Whether a model can learn one batch. */
export interface BatchFit {
  /** The step whose batch and weights were used. */
  readonly step: number;
  /** Number of rows of the batch; -1 if not known. */
  readonly rows: number;
  /** What was tried. */
  readonly descents: readonly Descent[];
  /** The mean of the first losses that were recorded; null if there is only this step. */
  readonly began: number | null;
  /** That of the last ones before this step; null likewise. */
  readonly ended: number | null;
}

export const CERTAIN = 0.99;

/** An accuracy of Keras's that a model was compiled with, computed for made-up predictions. */
export interface MetricTrial {
  /** Its name. */
  readonly name: string;
  /** For predictions without an error: those for which the loss is least. */
  readonly right: number;
  /** For predictions that name the right classes by a narrow margin; as `right` if there is no such margin. */
  readonly close: number;
  /** For the predictions of `right`, each for the next row. */
  readonly wrong: number;
  /**
   * A metric that is 1 for both kinds of right predictions and less for wrong ones, as it is written; empty if there is
   * none.
   */
  readonly instead: string;
}

/** What was tried in a session. */
export interface Trials {
  /** The best first. */
  readonly trials: readonly Trial[];
  /** Of a step whose loss had not fallen, or on request; none in older logs. */
  readonly fits: readonly BatchFit[];
  /** Likewise. */
  readonly metrics: readonly MetricTrial[];
}

/**
 * A top-level statement of the user's source, unchanged; edits are made from it.
 *
 * The log keeps statements that contain a line of `Trace.sources` or name a layer or variable of the trace, and the
 * file's imports.
 */
export interface Passage {
  /** As of a `Source`. */
  readonly file: string;
  /** Number of its first line, from one; if it has a decorator, the decorator's. */
  readonly line: number;
  /** Its lines, without the last line break. */
  readonly text: string;
  /** The three lines after it, fewer at the end of the file: `git apply` needs them for a patch of the last lines. */
  readonly after: readonly string[];
}

/** An output of an op. */
export interface Tensor {
  /** Sizes, -1 where unknown until run time; null if not even the rank is known. */
  readonly shape: readonly number[] | null;
  /** TensorFlow's name, such as `float32`. */
  readonly dtype: string;
}

/** An input of an op. */
export interface Edge {
  /**
   * Index in `Trace.ops` of the op that produces the tensor; -1 if that op touches no variable and was left out (a
   * constant, shape arithmetic, preprocessing).
   */
  readonly op: number;
  /** Which of its outputs. */
  readonly output: number;
  /** Which input of the consumer, from zero. */
  readonly input: number;
  /** Whether the consumer propagates a gradient to this input. */
  readonly passes: Passes;
  /** True if the value comes from the previous iteration of a loop. Without these edges the graph has no cycle. */
  readonly carried: boolean;
}

/** An input of an op that is a constant with the same value in all elements. */
export interface Constant {
  /** Which input of the op. */
  readonly input: number;
  /** That value; infinity as the largest float32. */
  readonly value: number;
}

/** A floating input of an op that was left out: data, or a value computed only from data. */
export interface Given {
  /** Which input of the op. */
  readonly input: number;
  /** As of a `Tensor`. */
  readonly shape: readonly number[] | null;
}

/**
 * One op of the forward graph, between a variable and a loss, or where the path to a loss ended.
 *
 * Functions are inlined: an op of a function's body is named `<call>/<op>`. Each output of an `If` and each loop
 * variable of a `While` is a separate op with that type, whose inputs are the predicate and the branches' results, or
 * the initial value, the condition and the body's result.
 */
export interface Op {
  /** TensorFlow's name, unique in the trace; `/` separates name scopes. */
  readonly name: string;
  /** TensorFlow's op type, such as `MatMul`. */
  readonly type: string;
  /** In the op's order. Data inputs that were left out are not listed. */
  readonly inputs: readonly Edge[];
  /** In the op's order. */
  readonly outputs: readonly Tensor[];
  /** Index in `Trace.sources` of the user's line that created it; null if none did. */
  readonly source: number | null;
  /** The function that this line called, such as `tf.sequence_mask`; null if unknown. */
  readonly api: string | null;
  /** Index of the variable that it reads; null for most ops. */
  readonly reads: number | null;
  /** Index of the variable that it assigns; null for most ops. */
  readonly writes: number | null;
  /**
   * Name of the gradient function that `tf.custom_gradient` or `gradient_override_map` used instead of the registered
   * one; null for most ops.
   */
  readonly custom_gradient: string | null;
  /** Whether it was created while an inner gradient was computed on which the loss depends. */
  readonly backward: boolean;
  /**
   * Whether its value depends on data: the batch, captured values, random draws, or a table of numbers; null if not
   * known.
   */
  readonly data: boolean | null;
  /** Its inputs that are constants. */
  readonly constants: readonly Constant[];
  /** Number of inputs, listed or not; null if not known. */
  readonly input_count: number | null;
  /** Whether it propagates a gradient to any of them; null if not known. */
  readonly differentiable: boolean | null;
  /** Whether it is inside a function that XLA compiles, while the step around it is not compiled by XLA. */
  readonly compiled: boolean;
  /** Its inputs that were left out and are not constants; none in older logs. */
  readonly given: readonly Given[];
  /** Whether the step had already updated the variable that it reads, for another loss; not known in older logs. */
  readonly updated: boolean;
}

/** A variable that the step reads, or that the model owns. */
export interface Variable {
  /** Keras's `variable.path`, or `tf.Variable.name` without `:0`. */
  readonly name: string;
  /** Sizes. */
  readonly shape: readonly number[];
  /** TensorFlow's name. */
  readonly dtype: string;
  /** Whether its owner marks it as trainable. */
  readonly trainable: boolean;
  /** Whether the model lists it among its variables. */
  readonly tracked: boolean;
  /** Whether it is not a variable but a tensor for which a gradient was requested. */
  readonly computed: boolean;
  /** The attribute, as written in code, that held the variable and now holds a tensor; empty if there is none. */
  readonly rebound: string;
  /** Whether the step itself created it. */
  readonly made: boolean;
  /**
   * The name in the user's code, such as `self.w`, of a variable that only has TensorFlow's default name; empty if it
   * has another name, or if that is not known.
   */
  readonly written: string;
  /**
   * The method of the model that uses it, such as `classify`, if the training step does not; empty if there is none.
   */
  readonly elsewhere: string;
  /** Whether it is a `tf.Variable` that a layer of Keras 3 holds, but does not track. */
  readonly plain: boolean;
  /**
   * The frozen layer or model of Keras 2 that holds its layer, which is trainable itself while others in it are not;
   * empty if there is none.
   */
  readonly held: string;
  /**
   * Number of the line where a function of a dataset reads it, if no op of the step does; None if none does, or if no
   * lines are kept.
   */
  readonly in_dataset: number | null;
}

/** A name scope that is a layer. */
export interface Layer {
  /** The scope's full name, such as `functional_1/dense_1`. */
  readonly scope: string;
  /** The layer's own name, such as `dense`. */
  readonly name: string;
  /** Class of the layer, such as `Dense`. */
  readonly type: string;
  /** Index in `Trace.sources` of the user's line that called it first; null if none did, and in older logs. */
  readonly source: number | null;
}

export type Response =
  | "linear"
  | "constant"
  | "other"
  | "unknown";

export type Outcome =
  | "value"
  | "none"
  | "not_asked"
  | "error";

/** A loss: what one call of `tape.gradient` differentiated. */
export interface Target {
  /** A readable name. */
  readonly name: string;
  /** Index in `Trace.ops` of the op that produced it; -1 if it depends on no variable. */
  readonly op: number;
  /** Which of its outputs. */
  readonly output: number;
  /** Index in `Trace.sources` of the line that requested the gradient. */
  readonly source: number | null;
  /** What the caller requested instead of a missing gradient. */
  readonly unconnected: "none" | "zero";
  /** Whether the optimizer had scaled it against underflow; statistics are unscaled in any case. */
  readonly scaled: boolean;
  /** Whether its value is among the losses; if not, NaN stands for it. */
  readonly measured: boolean;
  /** Whether its tape watched all trainable variables that were read; null if not known. */
  readonly automatic: boolean | null;
  /** How many sources the call listed, variables and tensors; null in older logs. */
  readonly sources: number | null;
  /** Whether what was differentiated is a variable; not known in older logs. */
  readonly variable: boolean;
  /**
   * Whether its gradients were passed to `summary.gradients` rather than taken from a tape; not known in older logs.
   */
  readonly by_hand: boolean;
  /** Whether the answers were passed to `summary.gradients`, so that no tape was observed; not known in older logs. */
  readonly passed: boolean;
}

/** What the tape returned for one variable and one target. */
export interface VariableGradient {
  /** Index in `Trace.targets`. */
  readonly target: number;
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /** The answer. */
  readonly outcome: Outcome;
  /** Row of `Chunk.gradients` with its statistics; null unless the outcome is `value`. */
  readonly row: number | null;
  /** Whether the tape watched the variable. */
  readonly watched: boolean;
}

/** An optimizer that applied gradients, and its settings that move weights or keep them fixed. */
export interface Optimizer {
  /** Name of its class, such as `AdamW`. */
  readonly type: string;
  /** Whether its state from earlier gradients moves weights: momentum, sums of gradients. */
  readonly memory: boolean;
  /** Whether its learning rate follows a schedule. */
  readonly scheduled: boolean;
  /** How it clips gradients, such as `clipnorm=1.0`; empty if it does not. */
  readonly clips: string;
  /** Whether it may replace the weights by moving averages. */
  readonly averages: boolean;
  /** Number of steps over which it sums gradients before it applies them. */
  readonly accumulates: number;
  /** Whether it divides by a loss scale, and skips steps whose gradients are not finite. */
  readonly scaled: boolean;
  /** The user's own call of it, such as `opt.apply_gradients(zip(grads, [w]))`; empty if none is known. */
  readonly call: string;
  /** Whether its state is only accessible with `get_slot`, as before Keras 3. */
  readonly has_slots: boolean;
  /** Its other settings that are numbers, such as `epsilon=1e-07`; none in older logs. */
  readonly options: readonly string[];
}

/**
 * The update of a variable for which an optimizer got a gradient: what else may have moved it, and the row of its
 * measurement.
 */
export interface Movement {
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /** Index in `Trace.optimizers`. */
  readonly optimizer: number;
  /** Row of `Chunk.gradients` whose columns are `MOVEMENT_STATISTICS`. */
  readonly row: number;
  /** The weight decay that the optimizer applies to it apart from the gradient; 0 if none. */
  readonly decay: number;
  /** Name of the class of its constraint; empty without one. */
  readonly constraint: string;
}

/** A clip of gradients on their path from the tape to the weights, by the step itself or by an optimizer. */
export interface Clip {
  /**
   * How the user wrote it: an argument of the optimizer, such as `global_clipnorm`, or the function that the step
   * calls, such as `tf.clip_by_global_norm`.
   */
  readonly by: string;
  /** The limit; null if it is not a constant. */
  readonly limit: number | null;
  /** Indices in `Trace.variables` of those whose gradient it clips. */
  readonly variables: readonly number[];
  /** Row of `Chunk.gradients` with its `CLIP_STATISTICS`. */
  readonly row: number;
  /** Index in `Trace.optimizers` of the optimizer that clips, or that gets what the step has clipped. */
  readonly optimizer: number;
  /**
   * Index in `Trace.sources` of the line that calls the function; null if it is not kept, or if the optimizer clips.
   */
  readonly at: number | null;
}

/** The factor by which an optimizer multiplies the loss against underflow, and which it adapts. */
export interface LossScale {
  /** Index in `Trace.optimizers`. */
  readonly optimizer: number;
  /** Row of `Chunk.gradients` with its `LOSS_SCALE_STATISTICS`. */
  readonly row: number;
}

/**
 * A variable whose gradient the step adds to another variable, or that the step updates only under a condition:
 * gradient accumulation that the user wrote by hand.
 */
export interface Deferred {
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /** Whether the step adds the gradient to another variable. */
  readonly summed: boolean;
  /** Index in `Trace.sources` of the line that does; null if it is not kept. */
  readonly summed_at: number | null;
  /** Whether the step updates the variable inside a branch, and nowhere else. */
  readonly conditional: boolean;
  /**
   * Index in `Trace.sources` of the line with the condition; null if it is not kept. If the step is not `conditional`,
   * Python decided it while the step was compiled, and left out the update.
   */
  readonly condition_at: number | null;
}

/** A variable to which the step assigns mostly the value of another one, after an optimizer has updated it. */
export interface Replaced {
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /** Index of the other one. */
  readonly by: number;
  /** The factor of the other one's value in the one that is assigned. */
  readonly share: number;
  /** Index in `Trace.sources` of the line that assigns it; null if it is not kept. */
  readonly at: number | null;
}

/**
 * What the tape returned for one tensor on the path and one target. A tensor that is not listed was not recorded
 * (it is inside a function's body, or was not requested).
 */
export interface TensorGradient {
  /** Index in `Trace.targets`. */
  readonly target: number;
  /** Index in `Trace.ops` of the op that produced the tensor. */
  readonly op: number;
  /** Which of its outputs. */
  readonly output: number;
  /** The answer. */
  readonly outcome: Outcome;
  /** Row of `Chunk.gradients`; null unless the outcome is `value`. */
  readonly row: number | null;
}

/** One element of a gradient, found in three ways. */
export interface GradientSample {
  /** Position of the element. */
  readonly index: readonly number[];
  /** What the custom gradient returned; null if that is not finite. */
  readonly returned: number | null;
  /** The derivative, by central differences of which two step sizes agree. */
  readonly derivative: number;
  /**
   * TensorFlow's gradient of the forward computation without the custom gradient; null if it has none, or if that is
   * not finite.
   */
  readonly automatic: number | null;
}

/** A custom gradient with respect to one input, compared with the derivative. */
export interface InputCheck {
  /** Which input of the op. */
  readonly input: number;
  /** Of the input, -1 where unknown; null if not even the rank is known. */
  readonly shape: readonly number[] | null;
  /** Of what was returned; null if nothing was, or the rank is unknown. */
  readonly returned_shape: readonly number[] | null;
  /**
   * Norm of the error of the returned gradient, divided by the norm of the derivative, where that is not zero; null if
   * TensorFlow cannot differentiate the forward computation.
   */
  readonly error_share: number | null;
  /** The returned gradient divided by the derivative, if that is the same number for all elements. */
  readonly ratio: number | null;
  /** The elements that differ most. */
  readonly samples: readonly GradientSample[];
}

export type HowLost =
  | "dropped"
  | "mixed"
  | "unused";

/**
 * A layer that gets an input with a mask and does not propagate the mask; or a tensor with a mask that goes into no
 * layer.
 */
export interface DroppedMask {
  /** Its name; for a tensor that goes into no layer, that of the layer that returned it. */
  readonly layer: string;
  /** Its class. */
  readonly type: string;
  /** Index in `Trace.targets`. */
  readonly target: number;
  /** Row of `Chunk.gradients` with the statistics of the gradient at the masked steps, with zeros elsewhere. */
  readonly row: number;
  /**
   * Whether the layer drops the mask; or propagates it, but computes unmasked steps from padding too; or the tensor
   * goes into no layer.
   */
  readonly how: HowLost;
  /** Index in `Trace.ops` of the op that computes that tensor; -1 if it is not known. */
  readonly op: number;
}

/** An entry of a `gradient_override_map` whose block created ops of the step. */
export interface Override {
  /** Op type whose gradient it replaces. */
  readonly type: string;
  /** The name under which the replacement is registered. */
  readonly gradient: string;
  /** Index in `Trace.sources` of the line where the block begins; null if it is not kept. */
  readonly source: number | null;
  /** Whether an op of that type was created inside the block. */
  readonly used: boolean;
}

/** A custom gradient, evaluated in one step with the gradient that arrived there. */
export interface GradientCheck {
  /** Index in `Trace.ops`. */
  readonly op: number;
  /** The user's name of the function that has it; empty if unknown. */
  readonly function: string;
  /** Index in `Trace.sources` of the line where the gradient function begins; null if unknown. */
  readonly source: number | null;
  /** Types of the ops inside, each once. */
  readonly forward: readonly string[];
  /** Whether its result is its input, element by element. */
  readonly identity: boolean;
  /** How its output depends on the gradient that it receives. */
  readonly response: Response;
  /** The inputs that were compared. */
  readonly inputs: readonly InputCheck[];
  /** Why nothing was compared, or what the gradient function raised; empty if neither happened. */
  readonly problem: string;
}

export type TermKind =
  | "term"
  | "regularizers"
  | "others";

export const COSINES_IN_ROW = 6;

/** A summand of a target, with its weight. */
export interface Term {
  /** Index in `Trace.targets`. */
  readonly target: number;
  /** Its name in the user's line; otherwise the output, the layer or the loss function that it comes from. */
  readonly name: string;
  /** What it is. */
  readonly kind: TermKind;
  /** Index in `Trace.ops` of the op that computes it; -1 if it depends on no variable, or if several ops compute it. */
  readonly op: number;
  /** Index in `Trace.sources` of the user's line; null if unknown. */
  readonly source: number | null;
  /**
   * Row of `Chunk.gradients`, whose first two columns are its contribution to the loss, and its weight: its
   * contribution if it were one, or minus one, throughout.
   */
  readonly row: number;
  /** Whether it depends on the sources of the gradient. */
  readonly trains: boolean;
}

/** A gradient from a single term: the gradients of all terms of a target add up to the target's. */
export interface TermGradient {
  /** Index in `Trace.terms`. */
  readonly term: number;
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /** Row of `Chunk.gradients` with its statistics. */
  readonly row: number;
}

/** The gradient that arrives at a layer's output from a single term. It is measured at no other tensor. */
export interface TermTensor {
  /** Index in `Trace.terms`. */
  readonly term: number;
  /** Index in `Trace.ops` of the op that produces the tensor. */
  readonly op: number;
  /** Which of its outputs. */
  readonly output: number;
  /** Row of `Chunk.gradients` with its statistics; null if none arrives from this term. */
  readonly row: number | null;
}

/** The cosines between the gradients of terms, for a variable that several of them reach. */
export interface TermCosines {
  /** Index in `Trace.targets`. */
  readonly target: number;
  /** Index in `Trace.variables`. */
  readonly variable: number;
  /**
   * The first row of `Chunk.gradients` with the cosine of each pair of terms that have a `TermGradient` there, in
   * order: the first with each later one, the second with each later one, and so on; `COSINES_IN_ROW` in a row. NaN if
   * one of the two is zero or not finite.
   */
  readonly row: number;
}

export const FORMAT = 1;

export const GRADIENT_STATISTICS = ["norm", "max_abs", "mean_abs", "zero_fraction", "nan_count", "inf_count"] as const;

export const MOVEMENT_STATISTICS = ["zeros", "moved", "remembered", "unmoved", "rounded", "rate"] as const;

export const RANGE_STATISTICS = ["none", "none", "smallest", "largest", "none", "none"] as const;

export const OUTPUT_LIMITS = ["(0.0, 1.0)", "(-1.0, 1.0)"] as const;

export const BEYOND_STATISTICS = ["none", "none", "below", "above", "none", "none"] as const;

export const PASSED_STATISTICS = ["none", "none", "norm", "sum", "none", "none"] as const;

export const CLIP_STATISTICS = ["none", "none", "before", "after", "none", "none"] as const;

export const LOSS_SCALE_STATISTICS = ["none", "none", "scale", "updates", "none", "none"] as const;

export const VARIABLE_STATISTICS = ["weight_norm", "update_norm", "nonfinite_before", "nonfinite_after"] as const;

/** A floating tensor that was passed to the step. */
export interface Input {
  /** Its name for the caller: `x`, `y` and `sample_weight` for Keras, else the parameter's name. */
  readonly name: string;
  /** Row of `Chunk.gradients` with the statistics of its values. */
  readonly row: number;
}

/**
 * The input range of a function that is not finite everywhere, such as a logarithm, or of a masked softmax; or the
 * range of labels, or another part of the batch, that a result of the model is compared with; or of the floating part
 * of the batch that the indices of a lookup are made of.
 */
export interface ValueRange {
  /** Index in `Trace.ops`. */
  readonly op: number;
  /** Which of its inputs; for a divisor, the range is that of the magnitudes. */
  readonly input: number;
  /** Row of `Chunk.gradients` with its `RANGE_STATISTICS`. */
  readonly row: number;
  /** For labels, one more row for each of `OUTPUT_LIMITS`, with `BEYOND_STATISTICS`; none if not known. */
  readonly beyond: readonly number[];
}

/** A floating input of a matrix product, a convolution, a pooling or a cross-entropy in the forward pass. */
export interface PassedValue {
  /** Index in `Trace.ops`. */
  readonly op: number;
  /** Which of its inputs. */
  readonly input: number;
  /** Row of `Chunk.gradients` with its `PASSED_STATISTICS`. */
  readonly row: number;
}

/** The error that an op raised while a step ran. */
export interface Raised {
  /**
   * Index in `Trace.ops`; -1 if it is not known, such as that of an op that raised when a step first ran it eagerly. If
   * an op of a gradient raised, the op that is differentiated.
   */
  readonly op: number;
  /** The type of the op; empty if it is not known. */
  readonly type: string;
  /** Index in `Trace.sources` of the line that runs it; `None` if it is not known. */
  readonly source: number | null;
  /** See `Op`. */
  readonly api: string | null;
  /** The type of the error, and its first line. */
  readonly error: string;
  /**
   * If the op was given an index that is outside of what it indexes: how many elements that has, counted from zero;
   * `None` if it is another error.
   */
  readonly size: number | null;
  /** The smallest index that TensorFlow names then. */
  readonly low: number;
  /** The largest one. */
  readonly high: number;
}

/** The structure of one compilation of a training step. */
export interface Trace {
  /** Number of the trace in its session, from zero. */
  readonly index: number;
  /** Ordered so that every edge that is not carried points to an earlier op. */
  readonly ops: readonly Op[];
  /** Every variable of the model, then others that the step read. */
  readonly variables: readonly Variable[];
  /** In the order of the calls. */
  readonly targets: readonly Target[];
  /** For each target, every variable that was requested or watched. */
  readonly variable_gradients: readonly VariableGradient[];
  /** For each target, every tensor on the path that was requested. */
  readonly tensor_gradients: readonly TensorGradient[];
  /** The name scopes that are layers. */
  readonly layers: readonly Layer[];
  /** Lines of code that ops and targets refer to. */
  readonly sources: readonly Source[];
  /** Facts about how this trace was recorded that limit what can be concluded from it. */
  readonly notes: readonly string[];
  /** The tensors of the batch. */
  readonly inputs: readonly Input[];
  /** Whether `variables` are all variables of the model; false if the caller listed the relevant ones. */
  readonly whole: boolean;
  /** The error that the step raised after it was traced; empty if none. */
  readonly failure: string;
  /** The custom gradients; only `explain` compares them with the derivative. */
  readonly gradient_checks: readonly GradientCheck[];
  /**
   * Whether an optimizer divided gradients by a loss scale by which no loss had been multiplied; not known in older
   * logs.
   */
  readonly unscaled: boolean;
  /** The optimizers that applied gradients; none in older logs. */
  readonly optimizers: readonly Optimizer[];
  /** What moved the variables whose gradient was applied; none in older logs. */
  readonly movements: readonly Movement[];
  /** The blocks of `gradient_override_map` that were in force; none in older logs. */
  readonly overrides: readonly Override[];
  /** The layers that do not propagate a mask, and the masked tensors that go into no layer; none in older logs. */
  readonly dropped_masks: readonly DroppedMask[];
  /** The parts of the user's files that edits are made from; none in older logs. */
  readonly passages: readonly Passage[];
  /** The edits that were tried: `StoredRun` adds those of `Trials`; some older logs hold them here. */
  readonly trials: readonly Trial[];
  /** Whether a batch can be learned: `StoredRun` adds those of `Trials`. */
  readonly fits: readonly BatchFit[];
  /** What accuracies say: likewise. */
  readonly metrics: readonly MetricTrial[];
  /** The terms of losses that are sums, if their gradients were measured; none in older logs. */
  readonly terms: readonly Term[];
  /** The gradients of each of these terms. */
  readonly term_gradients: readonly TermGradient[];
  /** The angles between these gradients. */
  readonly term_cosines: readonly TermCosines[];
  /** The variables whose gradient the step adds up, or which it updates only under a condition; none in older logs. */
  readonly deferred: readonly Deferred[];
  /** The variables whose update the step replaces by another variable's value; none in older logs. */
  readonly replaced: readonly Replaced[];
  /** The gradient of each term at the outputs of layers; none in older logs. */
  readonly term_tensors: readonly TermTensor[];
  /** Of inputs of functions that are not finite everywhere and of masked softmaxes, and of labels. */
  readonly ranges: readonly ValueRange[];
  /** Values of the forward pass; none in older logs. */
  readonly passed: readonly PassedValue[];
  /** What clips gradients before they are applied; none in older logs. */
  readonly clips: readonly Clip[];
  /** The loss scales that optimizers adapt; none in older logs. */
  readonly loss_scales: readonly LossScale[];
  /** What an op of it raised while it ran; none in older logs. */
  readonly raised: readonly Raised[];
}

/** One recording: from the construction of a recorder to its end. */
export interface Session {
  /** Version of the schema it was written in. */
  readonly format: number;
  /** Milliseconds since the epoch when it began, as thirteen digits: sessions sort by it. */
  readonly id: string;
  /** Version of tb_gradflow. */
  readonly tool: string;
  /** Version of TensorFlow. */
  readonly tensorflow: string;
  /** Version of Keras; empty without it. */
  readonly keras: string;
  /** Name of the model; empty if there is none. */
  readonly model: string;
  /** Patterns (fnmatch) of variables that are meant to get no gradient. */
  readonly expected: readonly string[];
  /** TensorFlow's global seed when the recording began; null if there is none, and in older logs. */
  readonly seed: number | null;
}

export const REPORT_FORMAT = 1;

export type Status =
  | "connected"
  | "disconnected"
  | "unused"
  | "zero"
  | "vanishing"
  | "exploding"
  | "nan"
  | "inf"
  | "frozen"
  | "error"
  | "integer"
  | "not_measured";

export type Severity =
  | "error"
  | "warning"
  | "info";

export const SEVERITIES = ["error", "warning", "info"] as const;

/** Statistics of a variable's gradient at one step, unscaled, over the finite elements. */
export interface GradientReport {
  readonly norm: number;
  readonly max_abs: number;
  readonly mean_abs: number;
  readonly zero_fraction: number;
  readonly nan_count: number;
  readonly inf_count: number;
}

/** A variable and its result in the training step. */
export interface VariableReport {
  readonly name: string;
  readonly status: Status;
  readonly shape: readonly number[];
  readonly dtype: string;
  /** Null if no gradient arrived, or none was measured. */
  readonly gradient: GradientReport | null;
  /**
   * Whether a report lists it: the model's variables, those for which a gradient was requested, and others with a
   * finding. The step may read more.
   */
  readonly listed: boolean;
  /** Its name in the user's code, if it only has TensorFlow's default name. */
  readonly written: string;
}

/** The op that a finding names as the cause. */
export interface OpReport {
  readonly name: string;
  readonly type: string;
}

/** The line of the user's code in a finding. */
export interface SourceReport {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

/** A fix as whole lines of the user's source. */
export interface Edit {
  /** As of a `SourceReport`. */
  readonly file: string;
  /** Number of the first line that it replaces, from one. */
  readonly line: number;
  /** Number of the last one. */
  readonly end_line: number;
  /** Those lines as they were recorded, with their indentation, without the last line break. */
  readonly before: string;
  /** The new lines; may be more or fewer. */
  readonly after: string;
}

/** The norm of a variable's gradient. */
export interface VariableNorm {
  /** Its name. */
  readonly variable: string;
  /** The norm. */
  readonly norm: number;
  /** As of a `VariableReport`. */
  readonly written: string;
}

/** The result of an edit in the step that was explained, which was run again with the edit applied in memory. */
export interface Tried {
  /**
   * The program ran, the loss is finite, and each variable of the finding gets a gradient that is finite and not zero
   * throughout. If it was trained: it trains these variables.
   */
  readonly works: boolean;
  /** The loss before and after the edit; null if it was not finite or the step did not complete. */
  readonly loss: readonly (number | null)[];
  /** For each variable of the finding that now gets a gradient. */
  readonly gradient_norm: readonly VariableNorm[];
  /** Whether it works only together with the edits of other findings. */
  readonly with_others: boolean;
  /** The step of the training whose batch and weights were used; null for the step that was explained. */
  readonly step: number | null;
  /** What some steps of training did; null if there were none. */
  readonly trained: Trained | null;
  /** The reason, as a sentence; empty if it was trained. */
  readonly not_trained: string;
  /** What the edit leaves as it was. */
  readonly keeps: readonly Kept[];
}

/** Another edit that may fix the same finding. */
export interface Alternative {
  /** The lines. */
  readonly edit: Edit;
  /** What the user gives up with it, as a sentence. */
  readonly cost: string;
  /** Its result; null if it was not run. */
  readonly tried: Tried | null;
}

/** What was measured for a finding by running the step once more with one thing changed. */
export interface Evidence {
  /**
   * influence: a variable was moved, and the loss computed again. reaction: the input of an op was moved, and its
   * output computed again. intervention: what goes into an op was changed, or rows of the batch, and the gradients
   * computed again. slope: a variable was moved along its gradient, and the loss computed again.
   */
  readonly kind: "influence" | "reaction" | "intervention" | "slope";
  /** The name of what was changed. */
  readonly of: string;
  /** The name of what was looked at. */
  readonly on: string;
  /** By how much that changed; null if it could not be measured. */
  readonly change: number | null;
  /** The largest element of the gradient that TensorFlow returned for what was changed; null for None. */
  readonly gradient: number | null;
  /** A sentence. */
  readonly text: string;
}

/** Something that a person should know about the gradient. */
export interface Finding {
  /** The name of the cause (docs/causes.md). */
  readonly cause: string;
  /** error: will not train; warning: check it; info: explained; it may be meant. */
  readonly severity: Severity;
  /** Names of the variables it is about. */
  readonly variables: readonly string[];
  /** The op that causes it; null if there is none. */
  readonly op: OpReport | null;
  /**
   * The user's line: that of the op; where Keras calls a layer or a loss, the one that creates the layer or compiles
   * the model; null if unknown.
   */
  readonly source: SourceReport | null;
  /** What happens, in the user's words. */
  readonly message: string;
  /** What to write instead. */
  readonly fix: string;
  /** Index of the target in the trace. */
  readonly target: number;
  /** Index in the trace of this op; -1 if there is none. */
  readonly culprit: number;
  /**
   * Ops from the first variable to the loss, as indices in the trace, including the culprit; only as far as the path
   * goes if it never reaches the loss.
   */
  readonly path: readonly number[];
  /** The fix as an edit; null if it is a decision, or if the source is not recorded. */
  readonly edit: Edit | null;
  /** What the user gives up with the edit, as a sentence; empty if there is no edit. */
  readonly cost: string;
  /** The result of the edit; null if it was not run. */
  readonly tried: Tried | null;
  /** If edits were to be tried but this one was not: the reason, as a sentence. */
  readonly not_tried: string;
  /** Other edits that may fix it, the better ones first. */
  readonly alternatives: readonly Alternative[];
  /** The rows of the batch in which it begins, or the first of them if there are many; null if not known. */
  readonly examples: readonly number[] | null;
  /** What experiments with the step say; none if there were none. */
  readonly evidence: readonly Evidence[];
  /** The recorded step in which it was found, if that is an earlier one than the report's; otherwise null. */
  readonly began: number | null;
}

/** The gradient of each row of the batch, over all variables. */
export interface ExampleGradients {
  /** The norm for each row, as if that row were the whole batch; empty if not known. */
  readonly norms: readonly number[];
  /**
   * The contribution of each row to the gradient of the batch, in its direction: they add up to one, and are negative
   * for rows with an opposing gradient. Null if the gradient is zero or not finite.
   */
  readonly shares: readonly number[] | null;
  /** Why the norms are not known; empty if they are. */
  readonly reason: string;
}

/** The angle between the gradients that a variable gets from two terms. */
export interface Cosine {
  /** The name of the other term. */
  readonly term: string;
  /** 1 if both have the same direction, -1 if they are opposite; null if one of them is zero or not finite. */
  readonly cosine: number | null;
}

/** The gradient of one term for one variable. */
export interface TermVariable {
  /** Its name. */
  readonly variable: string;
  /** Norm of the gradient from this term alone, including the term's weight, over the finite elements. */
  readonly norm: number;
  /** This norm divided by the sum of the norms of all terms; null if they are all zero. */
  readonly share: number | null;
  /** The angle to each other term that reaches the variable. */
  readonly cosine: readonly Cosine[];
  /** Number of elements that are not finite. */
  readonly broken: number;
}

/** A summand of a loss. */
export interface TermReport {
  /** Its name in the user's line, or the output or layer that it comes from. */
  readonly name: string;
  /** That line; null if unknown. */
  readonly source: SourceReport | null;
  /** Its contribution to the loss; null if that was not finite. */
  readonly value: number | null;
  /** Index of the target in the trace. */
  readonly target: number;
  /** Its contribution if it were one, or minus one, throughout; null if that was not finite. */
  readonly weight: number | null;
  /** The variables that its gradient reaches. */
  readonly variables: readonly TermVariable[];
  /** As in the record. */
  readonly kind: TermKind;
}

export type VerdictKind =
  | "gradient"
  | "rate"
  | "inputs"
  | "labels"
  | "updates"
  | "terms"
  | "batch"
  | "learned"
  | "nothing_found";

/** One answer for the whole step. */
export interface OverallVerdict {
  /** See `VerdictKind`. */
  readonly kind: VerdictKind;
  /** A sentence. */
  readonly text: string;
  /** What was measured and is not the reason, one sentence each; none if there is a finding. */
  readonly ruled_out: readonly string[];
}

/** The result of one step. */
export interface Diagnosis {
  readonly format: number;
  /** The optimizer step; -1 if no step was completed. */
  readonly step: number;
  /** Index of the trace of that step. */
  readonly trace: number;
  /** The state of the run in one sentence. */
  readonly summary: string;
  /** In the order of the trace. */
  readonly variables: readonly VariableReport[];
  /** Most severe first. */
  readonly findings: readonly Finding[];
  /** Facts that could not be determined, one sentence each. */
  readonly unverified: readonly string[];
  /**
   * The summands of the losses whose gradients were measured separately; none if that was not requested, or no loss is
   * a sum.
   */
  readonly terms: readonly TermReport[];
  /** What the run suffers from, if anything. */
  readonly verdict: OverallVerdict;
  /** What experiments with one batch have found; null if there were none, or only later in the run. */
  readonly fit: BatchFit | null;
}
