"""Notifies when a module is imported, without importing it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Collection
from typing import Any


class OnImport:
    """An import finder that finds no modules itself, but runs a callback when one of its modules has been imported.

    Args:
        names: Full names of modules.
        imported: Called with the name of each module after its import.
        begins: Called before the import.
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
        """Moves in front of the other finders."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Removes itself and leaves the other finders unchanged."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Called by Python's import system: returns what the other finders find."""
        if name not in self._names:
            return None
        # Only the finders after this one: another finder of this class queries those after itself in the same way.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []:
            found = getattr(finder, "find_spec", None)
            spec = found(name, path, target) if found is not None else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    self._tell_after(spec.loader, name)
                return spec
        return None

    def _tell_after(self, loader: Any, name: str) -> None:
        original, is_replaced = loader.exec_module, "exec_module" in vars(loader)

        def exec_module(module: types.ModuleType) -> None:
            # Everyone else sees the original loader.
            if is_replaced:
                loader.exec_module = original
            else:
                del loader.exec_module
            self._begins(name)
            original(module)
            self._imported(name)

        loader.exec_module = exec_module
