"""The layer between a training and its recorder. A training calls its recorder in three ways: it notifies it (a
callback's methods), it runs a step that the recorder has put in place of the user's step, and it requests what was
recorded. Everything that the recorder does in such a call, including its decisions, runs in here: an exception ends the
recording, is reported once, and has no other effect. A step that has completed is never run again; the batches of one
that has not are passed to the user's own function.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.errors import Refused

_NOTHING = object()


Report = Callable[[Exception, str], None]
"""Called with a fault, and with a sentence on what it may have changed; empty if nothing."""


def _unheard(fault: Exception, cost: str) -> None:
    raise fault


class Execution:
    """One call of the user's training function, which the recorder carries out differently.

    Args:
        iterator: Where its batches come from; null for a function that is called with its batch.

    Attributes:
        batches: The batches that were drawn for it.
        has_run: Whether its step, or all its steps, have run.
        results: What the user's own function would have returned.
        data_error: The error that the iterator raised.
        step_error: The error that a compiled step raised.
        own_error: The error that the user's own function raised.
        ends: Called where a fault of this execution is to end something.
    """

    def __init__(self, iterator: Any = None) -> None:
        self.iterator = iterator
        self.batches: list[Any] = []
        self.results: Any = _NOTHING
        self.data_error: BaseException | None = None
        self.step_error: BaseException | None = None
        self.own_error: BaseException | None = None
        self.ends: Report = _unheard

    @property
    def has_run(self) -> bool:
        return self.results is not _NOTHING

    @property
    def element_spec(self) -> Any:
        """The type of a batch."""
        return self.iterator.element_spec

    def get_next(self) -> Any:
        """The next batch."""
        try:
            batch = self.iterator.get_next()
        except BaseException as error:
            self.data_error = error
            raise
        self.batches.append(batch)
        return batch

    def call(self, step: Callable[..., Any], *args: Any, is_paired: bool) -> Any:
        """Runs a function that does the user's step. `is_paired` means that it returns the user's results and something
        else."""
        try:
            returned = step(*args)
        except BaseException as error:
            self.step_error = error
            raise
        self.results = returned[0] if is_paired else returned
        return returned

    def call_own(self, plain: Callable[[], Any]) -> None:
        """Runs the user's own function."""
        try:
            self.results = plain()
        except BaseException as error:
            self.own_error = error
            raise


Data = Callable[[Execution], Any]
"""An iterator that starts with the batches that were drawn for an execution."""


_END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)


class Protection:
    """The protection of one recorder.

    Args:
        report: Called with the first fault.
        restored: Restores the user's objects as they are without the recorder; called when the recording ends, and when
            a foreign exception, such as a KeyboardInterrupt, passes through.
        interrupted: Called after `restored` in the latter case, and when the user's step has raised: either may be the
            end of the training.

    Attributes:
        is_over: Whether nothing is recorded any more.
    """

    def __init__(
        self,
        report: Report,
        restored: Callable[[], None] = lambda: None,
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        self.is_over = False
        self._report = report
        self._restored = restored
        self._interrupted = interrupted

    def stop(self) -> None:
        """Nothing is recorded from now on."""
        self.is_over = True
        self._restored()

    def ends(self, fault: Exception, cost: str = "") -> None:
        """A fault ends the recording."""
        if self.is_over:
            return
        self.is_over = True
        for action in (self._restored, functools.partial(self._report, fault, cost)):
            try:
                action()
            except Exception:  # faults while handling a fault are not reported
                action()

    def attempt(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of `action`; None if it fails, or if nothing is recorded any more."""
        if self.is_over:
            return None
        try:
            return action(*args, **kwargs)
        except Exception as fault:
            self.ends(fault)
        except BaseException:
            self._passes()
            raise
        return None

    def _passes(self) -> None:
        self._restored()
        self._may_end()

    def _may_end(self) -> None:
        with contextlib.suppress(Exception):
            self._interrupted()

    def accompany(
        self,
        plain: Callable[[], Any],
        *,
        begins: Callable[[], None],
        looking_on: Callable[[], contextlib.AbstractContextManager[Any]],
        ended: Callable[[], None],
        raised: Callable[[BaseException], None],
    ) -> Any:
        """Returns or raises what `plain` does, which runs a step of the user's. The recorder prepares itself before it,
        looks on, and is told that it has ended, or has raised."""
        if self.is_over:
            return plain()
        self.attempt(begins)
        try:
            results = beside(plain, looking_on, self.ends)
        except Exception as error:
            self.attempt(raised, error)
            if not isinstance(error, _END_OF_DATA):
                self._may_end()
            raise
        except BaseException:
            self._passes()
            raise
        self.attempt(ended)
        return results

    def run(
        self,
        plain: Callable[..., Any],
        ours: Callable[..., Any],
        execution: Execution,
        args: Any,
        kwargs: Any,
        data: Data | None = None,
    ) -> Any:
        """Returns or raises what the user's own function `plain` does for these arguments, while `ours` carries out the
        call. For a function of an iterator, `data` returns the iterator to use after a fault."""
        if self.is_over:
            return plain(*args, **kwargs)
        execution.ends = self.ends
        try:
            return self._carried_out(plain, ours, execution, args, kwargs, data)
        except _END_OF_DATA:
            raise
        except Exception:
            self._may_end()
            raise

    def _carried_out(
        self,
        plain: Callable[..., Any],
        ours: Callable[..., Any],
        execution: Execution,
        args: Any,
        kwargs: Any,
        data: Data | None,
    ) -> Any:
        try:
            ours(execution, *args, **kwargs)
        except Exception as error:
            if error is execution.own_error:
                raise
            fault = error
        except BaseException:
            self._passes()
            raise
        else:
            if execution.has_run:
                return execution.results
            fault = RuntimeError("the recorder has not run the step")
        if execution.has_run:
            execution.ends(fault, "")
            return execution.results
        return _instead(plain, execution, fault, args, kwargs, data)


def _instead(
    plain: Callable[..., Any], execution: Execution, fault: Exception, args: Any, kwargs: Any, data: Data | None
) -> Any:
    """Calls the user's own function after a fault. If their step is at fault, it fails again, with its own
    traceback."""
    if isinstance(fault, Refused):
        raise fault.own from None
    if fault is execution.data_error:
        raise fault
    if fault is execution.step_error and isinstance(fault, _END_OF_DATA):
        raise fault
    cost = ""
    if data is not None:
        # Only an error of an op comes from inside a step.
        if fault is execution.step_error and isinstance(fault, tf.errors.OpError):
            used = "have been used twice" if execution.batches else "not have been used"
            cost = f" The batch of this step may {used}."
        if execution.batches:
            args = (data(execution),)
    try:
        results = plain(*args, **kwargs)
    except _END_OF_DATA:
        execution.ends(fault, cost)
        raise
    execution.ends(fault, cost)
    return results


def protected_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method with which a training notifies its recorder, using the recorder's `protection`."""

    @functools.wraps(method)
    def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.protection.attempt(method, self, *args, **kwargs)

    return tell


def protected_function(own: type[Exception], report: Report) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a function that a training calls, and that raises `own` for wrong arguments."""
    protection = Protection(report)

    def protect(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def tell(*args: Any, **kwargs: Any) -> None:
            if protection.is_over:
                return
            try:
                function(*args, **kwargs)
            except own:
                raise
            except Exception as fault:
                protection.ends(fault)

        return tell

    return protect


def protected_step(plain_of: Callable[[Any], Any], ours_of: Callable[[Any], Any]) -> Callable[..., Any]:
    """The `__call__` of an object that replaces a user's function, once per step: `plain_of` returns that function, and
    `ours_of` the function that carries out an execution. Its `_own_error` is called with exceptions of the user's
    step."""

    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        plain = plain_of(self)

        protection: Protection = self.protection
        # Inside another compiled function it is a part of that function's step.
        if protection.is_over or not tf.executing_eagerly():
            return plain(*args, **kwargs)
        try:
            return protection.run(plain, ours_of(self), Execution(), args, kwargs)
        except Exception as error:
            protection.attempt(self._own_error, error)
            raise

    return call


class StandIn:
    """Replaces the training function of a model for one execution.

    Args:
        model: The model.
        plain: Its own.
        ours: Makes one execution.
        data: See `Protection.run`.
        recorder: Whose it is.
    """

    def __init__(self, model: Any, plain: Any, ours: Callable[[Execution], Any], data: Data, recorder: Any) -> None:
        self._model = model
        self._plain = plain
        self._ours = ours
        self._data = data
        self.__self__ = recorder

    def __call__(self, iterator: Any) -> Any:
        vars(self._model)["train_function"] = self._plain
        protection: Protection = self.__self__.protection
        return protection.run(
            self._plain,
            lambda execution, _: self._ours(execution),
            Execution(iterator),
            (iterator,),
            {},
            self._data,
        )
