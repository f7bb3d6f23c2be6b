"""The entry point that TensorBoard imports.

Imports as little as it can: an ImportError here would keep TensorBoard from starting at all.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

if TYPE_CHECKING:
    from tb_gradflow.serve.plugin import GradFlowPlugin

# Each of our tags holds one event, which no loader ever samples away. This is a second safeguard: by default the
# loaders keep ten events of a tag of an unknown plugin.
SAMPLES = 5000


class GradFlowLoader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard has no types
    """Creates the plugin."""

    def fix_flags(self, flags: argparse.Namespace) -> None:
        samples = getattr(flags, "samples_per_plugin", None)
        if isinstance(samples, dict):
            samples.setdefault("gradflow", SAMPLES)

    def load(self, context: base_plugin.TBContext) -> GradFlowPlugin | None:
        if context.data_provider is None:
            return None
        from tb_gradflow.serve.plugin import GradFlowPlugin
        from tb_gradflow.serve.runs.checksums import quicken

        quicken()
        return GradFlowPlugin(context)
