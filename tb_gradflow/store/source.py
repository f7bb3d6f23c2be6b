"""The interface of the places that a server reads runs from: TensorBoard's DataProvider, or a directory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from tb_gradflow.store.hyperparameters import Hyperparameters
from tb_gradflow.store.layout import Tag
from tb_gradflow.store.run import TagReader


class Source(Protocol):
    """Many runs. `context` and `experiment_id` say for whom TensorBoard asks; a directory has neither. A run has the
    name that TensorBoard gives it: its directory below the log directory.
    """

    def runs(self, context: Any, experiment_id: str) -> Mapping[str, Collection[Tag]]:
        """The runs that have a session of ours, by name, each with its tags."""

    def has(self, context: Any, experiment_id: str, run: str) -> bool:
        """Whether there is such a run now."""

    def reader(self, context: Any, experiment_id: str, run: str) -> TagReader:
        """The records of a run."""

    def hyperparameters(self, context: Any, experiment_id: str) -> Mapping[str, Hyperparameters]:
        """The runs that have some, including those of other plugins."""
