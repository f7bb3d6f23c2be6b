"""The private attributes of TensorFlow and Keras that the package uses.

A library may rename one in any release. The code that needs it then fails, which is reported as a fault of the recorder
while training continues; optional attributes are read with a default.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """A private attribute.

    Attributes:
        of: What has it.
        name: Its name there.
        purpose: What it is used for.
        optional: Whether some versions or kinds of its owner do not have it, and nothing fails without it.
    """

    of: str
    name: str
    purpose: str
    optional: bool = False


ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("Operation", "_control_outputs", "what a session runs after an op that changes something"),
    Attribute("Operation", "_get_control_flow_context", "loops and branches of TensorFlow 1"),
    Attribute("Operation", "_gradient_function", "custom gradients in a copied graph"),
    Attribute("Operation", "_id", "which ops were made by taking a gradient"),
    Attribute("EagerTensor", "_id", "which tensor of an eager step is which"),
    Attribute("EagerTensor", "_numpy_internal", "where a value leaves TensorFlow for NumPy"),
    Attribute("Dataset", "_functions", "fixes that are tried in a step that has raised"),
    Attribute("Dataset", "_inputs", "fixes that are tried in a step that has raised"),
    Attribute("Batches", "_batch_size", "where a row of the batch is in the data set"),
    Attribute("Skipped", "_count", "where a row of the batch is in the data set"),
    Attribute("Dataset", "_deterministic", "where a row of the batch is in the data set", optional=True),
    Attribute("Shard", "_index", "where a row of the batch is in the data set"),
    Attribute("Shard", "_num_shards", "where a row of the batch is in the data set"),
    Attribute("Slices", "_tensors", "where a row of the batch is in the data set"),
    Attribute("Iterator", "_dataset", "fixes that are tried in a step that has raised", optional=True),
    Attribute("FuncGraph", "_add_function_recursive", "kernels that compute the statistics of many tensors"),
    Attribute("FuncGraph", "_create_op_internal", "the graph of an eager step"),
    Attribute("FuncGraph", "_function_captures", "a step that was compiled before the recorder came"),
    Attribute("FuncGraph", "_reduced_shape_cache", "a step that was compiled before the recorder came"),
    Attribute("FuncGraph", "_get_function", "what a function computes inside"),
    Attribute("Function", "_clone", "a step that is compiled as the user's own"),
    Attribute("Function", "_function_cache", "traces of functions that are temporarily set aside"),
    Attribute("Function", "_list_all_concrete_functions", "whether a training function was compiled before"),
    Attribute("Function", "_omit_frequent_tracing_warning", "a warning that the recorder would cause"),
    Attribute("FunctionCache", "_dispatch_dict", "traces of functions that are temporarily set aside"),
    Attribute("FunctionCache", "_primary", "traces of functions that are temporarily set aside"),
    Attribute("Function", "_created_variables", "traces of functions that are temporarily set aside"),
    Attribute("ConcreteFunction", "_inference_function", "what TensorFlow runs of a traced function"),
    Attribute("AtomicFunction", "_cached_graph", "the graph that a function was made from"),
    Attribute("AtomicFunction", "_bound_context", "functions that an eager step calls"),
    Attribute("Context", "_collective_ops_server_def", "whether other workers train in step with this one"),
    Attribute("Context", "_context_handle", "random numbers of a step that is rolled back"),
    Attribute("Context", "_rng", "random numbers of a step that is rolled back", optional=True),
    Attribute("Context", "_seed", "random numbers of a step that is rolled back"),
    Attribute("GradientTape", "_persistent", "whether a tape can compute another gradient", optional=True),
    Attribute(
        "GradientTape",
        "_recording",
        "whether a gradient is requested inside its tape's `with` block",
        optional=True,
    ),
    Attribute("GradientTape", "_tape", "whether a tape can compute a gradient"),
    Attribute("GradientTape", "_watch_accessed_variables", "what a tape watches by itself", optional=True),
    Attribute("Tape", "_tape", "tapes that are temporarily closed"),
    Attribute("OpError", "_message", "errors that name functions as the user's program does"),
    Attribute("BaseSession", "_do_run", "what a session is asked for"),
    Attribute("BaseSession", "_config", "whether a session compiles its graph with XLA", optional=True),
    Attribute("DType", "_is_ref_dtype", "reference variables of TensorFlow 1"),
    Attribute("RefVariable", "_ref", "reference variables of TensorFlow 1"),
    Attribute("PartitionedVariable", "_get_variable_list", "partitioned variables of TensorFlow 1", optional=True),
    Attribute("Variable", "_unique_id", "slots of the optimizers of Keras 2", optional=True),
    Attribute("SummaryWriter", "_closed", "whether a summary writer is still open", optional=True),
    Attribute("TensorFlow's functions", "_tf_api_names", "names of functions that the user calls", optional=True),
    Attribute("TensorFlow's functions", "_tf_api_names_v1", "names of functions that the user calls", optional=True),
    Attribute("Keras's tensors", "_keras_mask", "the masks that layers receive", optional=True),
    Attribute("Keras's variables", "_value", "the `tf.Variable` of a Keras variable", optional=True),
    Attribute("MultiOptimizer", "_inner_optimizers", "which of its optimizers updates a variable", optional=True),
    Attribute("MultiOptimizer", "_optimizer_map", "which of its optimizers updates a variable", optional=True),
    Attribute("MultiOptimizer", "_var_to_optimizer_idx", "which of its optimizers updates a variable", optional=True),
    Attribute("IteratorSpec", "_element_spec", "the batch of a step whose fixes are tried"),
    Attribute("Model", "_flatten_layers", "the layers of a model"),
    Attribute("Model", "_symbolic_build", "models that build their variables in their first step"),
    Attribute("Model", "_make_function", "how Keras compiles a training step", optional=True),
    Attribute("Model of Keras 2", "_assert_weights_created", "models that have no variables yet", optional=True),
    Attribute("Model of Keras 2", "_steps_per_execution", "steps in one execution"),
    Attribute("Model of Keras 2", "_train_counter", "which step it is"),
    Attribute("Optimizer", "_trainable_variables", "which variables are updated"),
    Attribute("Optimizer", "_trainable_variables_indices", "the state of an optimizer for a variable", optional=True),
    Attribute("Optimizer", "_var_key", "the state of an optimizer for a variable"),
    Attribute("Optimizer", "_clip_gradients", "what an optimizer clips", optional=True),
    Attribute("Optimizer", "_learning_rate", "the learning rate's schedule", optional=True),
    Attribute("Optimizer", "_use_weight_decay", "which variables decay", optional=True),
    Attribute("Muon", "_should_use_adamw", "which variables decay", optional=True),
    Attribute("Optimizer of Keras 2", "_index_dict", "the state of an optimizer for a variable", optional=True),
    Attribute("Optimizer of Keras 2", "_transform_gradients", "what an optimizer clips", optional=True),
    Attribute("Optimizer of Keras 2", "_loss_scale", "the scale of a loss", optional=True),
    Attribute("Optimizer of Keras 2", "_hyper", "the learning rate's schedule", optional=True),
    Attribute("Optimizer of Keras 2", "_slots", "the state of an optimizer for a variable", optional=True),
    Attribute("Optimizer of TensorFlow 1", "_lr", "the learning rate", optional=True),
    Attribute("ArgumentParser", "_actions", "the options of the command line, for completion"),
)
