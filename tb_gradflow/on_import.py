"""Says when a module is imported, without importing it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Collection
from typing import Any


class OnImport:
    """A finder of modules that finds none itself: it has those of its names run something at the end of their import.

    Args:
        names: Full names of modules.
        imported: Is called with the name of each of them, once it is imported.
        begins: Is called before that, too.
    """

    def __init__(
        self,
        names: Collection[str],
        imported: Callable[[str], None],
        begins: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._names = set(names)
        self._begins = begins
        self._imported = imported

    def install(self) -> None:
        """Goes in front of the other finders."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Leaves the other finders as they were."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As Python asks for it: what the others find."""
        if name not in self._names:
            return None
        for finder in sys.meta_path:
            found = getattr(finder, "find_spec", None)
            spec = found(name, path, target) if found is not None and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    self._tell_after(spec.loader, name)
                return spec
        return None

    def _tell_after(self, loader: Any, name: str) -> None:
        original = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            del loader.exec_module  # the loader stays as others know it
            self._begins(name)
            original(module)
            self._imported(name)

        loader.exec_module = exec_module
