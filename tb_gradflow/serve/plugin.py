"""The TensorBoard plugin.

All data comes through the DataProvider, so it works with both of TensorBoard's loaders and with any other provider.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard import plugin_util
from tensorboard.plugins import base_plugin

from tb_gradflow.serve.routes import SCRIPT, STATIC, Application, Routes, Who
from tb_gradflow.store.layout import PLUGIN
from tb_gradflow.store.provider import ProviderSource


def _who(environ: dict[str, Any]) -> Who:
    return plugin_util.context(environ), plugin_util.experiment_id(environ)


class GradFlowPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard has no types
    """The tab "Gradient flow"."""

    plugin_name = PLUGIN

    def __init__(self, context: base_plugin.TBContext, static: Path = STATIC) -> None:
        self._routes = Routes(ProviderSource(context.data_provider), context.logdir or "", static, _who)

    def is_active(self) -> bool:
        # TensorBoard asks the DataProvider whether there is data of this plugin, and shows the tab if so.
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path=f"/static/{SCRIPT}", tab_name="Gradient flow")

    def get_plugin_apps(self) -> dict[str, Application]:
        return self._routes.apps()
