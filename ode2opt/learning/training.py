"""``ode2opt.learn``: from a family of problems to a method."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.dynamics.jaxed import double
from ode2opt.errors import InputError, Ode2OptError
from ode2opt.learning.board import Board
from ode2opt.learning.instant_run import InstantRun
from ode2opt.learning.options import Options
from ode2opt.learning.remembered import snapshot
from ode2opt.learning.run import NOTHING_FOLLOWED, TESTED, Callback, Run, Step
from ode2opt.learning.run_directory import Progress, RunDirectory
from ode2opt.learning.stopm import Batch, State, StoPM
from ode2opt.learning.target import TEST, VALIDATION, batch_numbers
from ode2opt.learning.targets import target_of
from ode2opt.learning.validation import Validation, Validator
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

CERTIFIED = 5  # held-out problems for the certificate
CAUTION = 1.02  # the factor by which validation takes the curvature to be larger
REJECTED = 1.2  # in best complexities: from there training goes back to the best point
NOT_CONVEX = -1e-4
LARGEST_PENALTY = 1e6


def learn(
    family: Family,
    *,
    memory: Memory | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    **options: Any,
) -> Method:
    """Learn a method for a family of problems.

    Args:
        family: problems to learn from; see :class:`ode2opt.Family`.
        memory: what is known already, of problems of the same kind and size: its metric becomes the
            method's, its mean solution the start where it has proved better, and no problem is
            solved beforehand. The target is then "sequence".
        out: a folder for method, metrics, checkpoints and TensorBoard events; None keeps nothing.
        resume: go on with the run in ``out``, bit for bit.
        callback: called with a :class:`Step` after every step; a true answer ends training.
        options: the fields of :class:`ode2opt.learning.Options`.

    Returns:
        The best feasible method by validation on held-out training problems.

    Example:
        >>> family = Family.from_dataset("logistic", "digits")
        >>> method = learn(family, steps=50, out="runs/digits")
        >>> result = solve(family.sample(0, part="test"), method=method, tol=3e-4)
    """
    if memory is not None:
        options = {"target": "sequence"} | options
    return begun(family, make_options(options), out, resume, memory=memory).run(callback)


def begun(
    family: Family,
    options: Options,
    out: str | Path | None,
    resume: bool,
    note: Callable[[str], None] = lambda text: None,
    memory: Memory | None = None,
) -> Run:
    """Return a run that is ready to go; without steps it is that of an instant method."""
    if memory is not None:
        memory = snapshot(memory, options)
    kind = Training if options.steps else InstantRun
    return kind(family, options, out, resume, note, memory)


def make_options(given: dict[str, Any]) -> Options:
    """Return options from keywords, with a clear word about unknown ones."""
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            raise InputError(f"learn() has no option {name}; it has {', '.join(known)}.")
    return Options(**given)


class Training(Run):
    """A run of StoPM, from its start or from its last checkpoint."""

    @double
    def _set_up(self, note: Callable[[str], None], memory: Memory | None) -> None:
        options = self.options
        self.target = target_of(self.family, options, memory, self.directory, note)
        self.stopm = StoPM(self.target.start, self.target.learnable, options, self.target.rules)
        self.state = self.stopm.start
        self.best = self.state.parameters
        self.progress = Progress(penalty=self.state.penalty)
        if self.going_on:
            assert self.directory is not None
            self._resume(self.directory)
        self._earlier = self.progress.seconds
        self._settle()
        safety = min(CAUTION, options.safety)
        self.validator = Validator(self.target, VALIDATION, options.validation, safety)
        self.warned = False

    def _resume(self, directory: RunDirectory) -> None:
        like = (self.state.parameters, self.state.memory, self.best)
        self.progress, (parameters, memory, self.best) = directory.load(like)
        self.state = State(parameters, memory, self.progress.penalty)

    def _run(self, callback: Callback | None) -> Method:
        """Train to the end, Ctrl-C, or the callback's word; returns the best method."""
        board = Board(self.directory, self.progress.step)
        try:
            if self.progress.best is None:
                self._first_validation()
            while self.progress.step < self.options.steps and not self.progress.over:
                line, validation = self._step()
                board.add(line)
                if callback is not None and callback(
                    Step(line, validation, self._best_complexity, self.options.steps)
                ):
                    break
            else:
                method = self._finish()
                board.add_method(method, self.progress.step)
                return method
            self._checkpoint()
            return self._method()
        except KeyboardInterrupt:
            self._checkpoint()
            raise
        finally:
            board.close()

    def _first_validation(self) -> None:
        """Judge the coefficients at the start; a family that cannot be learned is told here."""
        validation = self.validator(self.stopm, self.state)
        if not (validation.flows if self.target.strict else validation.reached):
            raise Ode2OptError(
                f"No {self.options.target} of {validation.total} held-out problems of "
                f"{self.family.name} reaches the gradient norm {self.options.tol:g} within "
                f"{self.options.horizon} iterations: "
                f"raise the tolerance or the horizon, or add l2 to the problem."
            )
        self._judge(validation)
        self._settle()
        self._checkpoint()

    def _step(self) -> tuple[dict[str, Any], Validation | None]:
        options, k = self.options, self.progress.step
        instances = self.target.batch(k, options.batch)
        penalty = self.state.penalty
        self.state, batch = self.stopm.step(self.state, instances)
        self._warn_once(batch, batch_numbers(k, options.batch))
        done, validation = k + 1, None
        if done % options.validate_every == 0 or done == options.steps:
            validation = self.validator(self.stopm, self.state)
            self._judge(validation)
        seconds = self._seconds
        line = {
            "step": k, "stopping_time": batch.stopping_time, "P": batch.P, "Q": batch.Q,
            "loss": batch.loss, "validation": validation and validation.complexity,
            "feasible": validation and validation.feasible, "reached": batch.reached,
            "failed": batch.failed, "penalty": penalty, "seconds": round(seconds, 3),
        }  # fmt: skip
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        self.progress = replace(self.progress, step=done, seconds=seconds, metrics_bytes=length)
        self._settle()
        if validation is not None:
            self._checkpoint()
        return line, validation

    def _judge(self, validation: Validation) -> None:
        """Keep the best point: feasible before infeasible, then the least complexity."""
        old, new = self.progress, validation
        before = (False, -math.inf)
        if old.best is not None:
            before = (old.best["feasible"], -old.best["complexity"])
        better = (new.feasible, -new.complexity) > before
        growth = 1.0 if new.feasible else self.options.penalty_growth
        penalty = min(self.state.penalty * growth, LARGEST_PENALTY)
        self.state = self.state._replace(penalty=penalty)
        stale = 0 if better else old.stale + 1
        self.progress = replace(
            old, penalty=penalty, stale=stale, over=stale >= self.options.patience
        )
        if not self.target.strict and new.complexity > REJECTED * (
            self._best_complexity or math.inf
        ):
            self.state = self.state._replace(parameters=self.best)
        if better:
            self.best = self.state.parameters
            self.progress = replace(self.progress, best=new.statistics())
            self._keep(self._method())

    def _warn_once(self, batch: Batch, numbers: range) -> None:
        for number, turn in zip(numbers, batch.turns, strict=True):
            if turn < NOT_CONVEX and not self.warned:
                self.warned = True
                warnings.warn(
                    f"Training problem {number} of {self.family.name}, seed {self.options.seed}, "
                    f"is not convex: its gradient turns against a step (cosine {turn:.2g}); "
                    f"what is learned may not hold.",
                    stacklevel=2,
                )

    @property
    def _best_complexity(self) -> float | None:
        return None if self.progress.best is None else self.progress.best["complexity"]

    def _settle(self) -> None:
        """Note that a step is whole: an interruption inside the next one goes back to here."""
        self.settled = (self.progress, (self.state.parameters, self.state.memory, self.best))

    def _checkpoint(self) -> None:
        if self.directory is not None:
            self.directory.save(*self.settled)

    def _best_learned(self) -> Any:
        return self.stopm.learned(self.state._replace(parameters=self.best))

    def _method(self) -> Method:
        """Return the best point as a method, without certificate and test statistics."""
        found = self.progress.best
        assert found is not None
        return self.target.method(self._best_learned(), found["worst"]).replace(
            provenance=self.config | {"finished": False}, statistics={"validation": found}
        )

    def _finish(self) -> Method:
        """Certify the best point and measure it on fresh test problems."""
        held_out, learned = self.validator, self._best_learned()
        method = self.target.polished(learned, self._method())
        certificate = self.target.certificate(
            learned, method, held_out.problems[:CERTIFIED], held_out.instances[:CERTIFIED]
        )
        fresh = Validator(self.target, TEST, TESTED)
        starts = [np.asarray(one.x0) for one in fresh.instances]
        best = self.state._replace(parameters=self.best)
        violations = NOTHING_FOLLOWED if method.instant else fresh.followed(self.stopm, best)
        method = self._measured(
            method, self.target.rivals(method), fresh.problems, starts, violations
        )
        return self._finished(method, certificate)
