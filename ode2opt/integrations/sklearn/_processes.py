"""A memory in worker processes: each has a copy, and fits there do not learn from each other."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

from ode2opt.solvers import Memory


class CopiedMemory:
    """Mixin: knows whether an estimator came to a worker process with a copy of its memory."""

    memory: Any
    _came_to_worker = False
    _warned = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take note that this estimator was sent from another process."""
        super().__setstate__(state)  # type: ignore[misc]
        if multiprocessing.parent_process() is not None:
            self._came_to_worker = True

    def __sklearn_clone__(self) -> Any:
        """Clones share the memory: it is there to be learned from by several fits."""
        cloned = super().__sklearn_clone__()  # type: ignore[misc]
        if self.memory is not None:
            cloned.memory = self.memory
        if self._came_to_worker:
            cloned._came_to_worker = True
        return cloned

    def _warn_of_copies(self) -> None:
        """Warn, once a process, where what a fit learns stays in a worker process."""
        if self._came_to_worker and isinstance(self.memory, Memory) and not CopiedMemory._warned:
            CopiedMemory._warned = (
                True  # scikit-learn sets the filters of warnings anew for each fit
            )
            warnings.warn(
                "This fit runs in a worker process (n_jobs) with a copy of its memory: what it "
                "learns is not shared with other fits. Give memory='FILE', which processes share, "
                "or n_jobs=1.",
                UserWarning,
                stacklevel=2,
            )
