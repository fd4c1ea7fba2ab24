# SPDX-License-Identifier: Apache-2.0
"""Sessions, arguments, tasks. See the package's docstring for an example."""

import ctypes
import dataclasses
import enum
import os
import weakref

import numpy

from . import _library as mcl
from ._library import DeviceError, checked, library


class State(enum.Enum):
    CREATED, RUNNABLE, EXECUTING, TERMINATED, FAILED = range(5)


@dataclasses.dataclass(frozen=True)
class Device:
    """A device; `memory` in bytes."""
    id: int
    name: str
    vendor: str
    type: int
    memory: int
    elements: int


def _array(given, written):
    if not isinstance(given, numpy.ndarray):
        raise TypeError(f"memory of a task is a numpy array, not {type(given).__name__}")
    if not given.flags.c_contiguous:
        raise ValueError("memory of a task is C-contiguous; numpy.ascontiguousarray makes a copy")
    if written and not given.flags.writeable:
        raise ValueError("the task writes this array, which is read-only")
    if given.dtype.hasobject:
        raise TypeError("an array of Python objects means nothing to a device")
    return given


class _Memory:
    """An array, or a part of a Resident, as an argument."""
    flags = 0
    written = False

    def __init__(self, array, part=slice(None)):
        self.resident = array if isinstance(array, Resident) else None
        if self.resident is None:
            self.array = _array(array, self.written)[part]
            _array(self.array, self.written)
            return
        if self.written and not self.resident.written:
            raise ValueError("the task writes this buffer, which was made resident for reading")
        self.array = _array(self.resident.array[part], self.written)

    def set(self, handle, index):
        if self.resident is None:
            checked(library.mcl_task_set_arg(handle, index, self.array.ctypes.data,
                                             self.array.nbytes, mcl.ARG_BUFFER | self.flags))
            return
        base = self.resident.array.ctypes.data
        checked(library.mcl_task_set_arg_buffer(
            handle, index, base, self.array.nbytes, self.array.ctypes.data - base,
            self.resident.flags | self.flags))


class In(_Memory):
    """The task reads the array, or `part` (a slice) of a Resident."""
    flags = mcl.ARG_INPUT


class Out(_Memory):
    """The task writes it; it comes back with the task."""
    flags = mcl.ARG_OUTPUT
    written = True


class InOut(_Memory):
    """The task reads and writes it."""
    flags = mcl.ARG_INPUT | mcl.ARG_OUTPUT
    written = True


class Changed(_Memory):
    """The task reads and writes a part of a Resident, which stays on the device for later tasks."""
    flags = mcl.ARG_INPUT
    written = True


class Local:
    """Memory of a work group, of so many bytes."""

    def __init__(self, size):
        self.size = int(size)

    def set(self, handle, index):
        checked(library.mcl_task_set_arg(handle, index, None, self.size, mcl.ARG_LOCAL))


class _Scalar:
    def __init__(self, value):
        if not isinstance(value, numpy.generic):
            raise TypeError(
                f"a {type(value).__name__} has no size on a device: give a numpy scalar, such as "
                "numpy.int32(3) or numpy.float32(0.5), or memory as In(array), Out(array), "
                "InOut(array)")
        self.bytes = value.tobytes()

    def set(self, handle, index):
        checked(library.mcl_task_set_arg(handle, index, self.bytes, len(self.bytes),
                                         mcl.ARG_SCALAR))


class Resident:
    """An array whose copies on devices stay between tasks. Close it, or use it in a `with`, when no
    task uses it any more. `written`: kernels write it."""

    def __init__(self, array, written=True):
        self.array = _array(array, written)
        self.written = written
        self.flags = mcl.ARG_BUFFER | mcl.ARG_RESIDENT | (mcl.ARG_DYNAMIC if written else 0)
        checked(library.mcl_register_buffer(self.array.ctypes.data, self.array.nbytes, self.flags))
        self._open = True

    def invalidate(self):
        """The array was changed: copies on devices are void."""
        checked(library.mcl_invalidate_buffer(self.array.ctypes.data))

    def close(self):
        if self._open:
            self._open = False
            checked(library.mcl_unregister_buffer(self.array.ctypes.data))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _free_handle(handle, session):
    # The session's end has freed all handles.
    if session.generation == Session.current_generation and Session.open:
        library.mcl_hdl_free(handle)


class Future:
    """A task that was submitted. Its memory is kept alive with it; letting go of it waits."""

    def __init__(self, handle, keeps, session):
        self._handle, self._keeps, self._session = handle, keeps, session
        # The arrays are arguments so that they outlive the wait in it.
        self._end = weakref.finalize(self, Future._finish, handle, session, keeps)
        self._end.atexit = False

    @staticmethod
    def _finish(handle, session, keeps):
        _free_handle(handle, session)
        del keeps

    def _checked_handle(self):
        if self._session.generation != Session.current_generation or not Session.open:
            raise DeviceError(mcl.ERR_INVARG, "the task's session has ended")
        return self._handle

    @property
    def state(self):
        return State(checked(library.mcl_task_state(self._checked_handle())))

    @property
    def device(self):
        """Where it ran, or runs."""
        return checked(library.mcl_task_device(self._checked_handle()))

    def ready(self):
        return checked(library.mcl_test(self._checked_handle())) == mcl.COMPLETED

    def wait(self, timeout=None):
        """Until the task has ended; False after `timeout` seconds, when it goes on."""
        nanos = mcl.FOREVER if timeout is None else max(0, int(timeout * 1e9))
        handle = self._checked_handle()
        result = library.mcl_wait_for(handle, nanos)
        if result == -mcl.ERR_TIMEOUT:
            return False
        if result < 0 and library.mcl_task_error(handle) == 0:
            checked(result)
        return True

    def get(self):
        """Waits; raises DeviceError where the task failed."""
        self.wait()
        code = library.mcl_task_error(self._handle)
        if code != 0:
            mcl.fail(code, library.mcl_task_reason(self._handle))


def _sizes(given, rest):
    dimensions = (given,) if isinstance(given, (int, numpy.integer)) else tuple(given)
    if not 1 <= len(dimensions) <= mcl.DIMENSIONS:
        raise ValueError(f"a range has one to three dimensions, not {len(dimensions)}")
    if any(int(size) < 0 for size in dimensions):
        raise ValueError(f"a range has no negative sizes, such as in {dimensions}")
    filled = [int(size) for size in dimensions] + [rest] * (mcl.DIMENSIONS - len(dimensions))
    return (ctypes.c_uint64 * mcl.DIMENSIONS)(*filled)


class Session:
    """This process's connection to the daemon, which is started where none runs; one at a time."""
    open = False
    current_generation = 0

    def __init__(self, workers=1, bind=False):
        if checked(library.mcl_init(workers, mcl.BIND_WORKERS if bind else 0)) == 1:
            raise DeviceError(mcl.ERR_INVARG, "this process has a session already")
        Session.open = True
        Session.current_generation += 1
        self.generation = Session.current_generation
        self._kernels = []  # of Python: what the library calls

    def close(self):
        """Waits for all tasks. Futures of the session are void."""
        if Session.open and self.generation == Session.current_generation:
            Session.open = False
            checked(library.mcl_finit())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def devices(self):
        out = []
        for i in range(library.mcl_get_ndev()):
            info = mcl.DeviceInfo()
            checked(library.mcl_get_dev(i, ctypes.byref(info)))
            out.append(Device(i, info.name.decode(errors="replace"),
                              info.vendor.decode(errors="replace"), info.type, info.mem_size,
                              info.pes))
            mcl.free(info.wisize)
        return out

    def load(self, path, kind=mcl.Source, options=""):
        """A program, once. DeviceError holds the compiler's log."""
        checked(library.mcl_prg_load(os.fsencode(path), options.encode(), kind))

    def add_host_kernel(self, name, function):
        """A Python function as a kernel of the host's cores: function(begin, end, addresses), with
        the part of the range as tuples, and the addresses of its arguments. Called by worker
        threads, one at a time (the interpreter's lock). An exception fails the task."""

        def call(part, addresses, count):
            try:
                function(tuple(part[0].begin), tuple(part[0].end),
                         [addresses[i] for i in range(count)])
                return 0
            except Exception:  # pylint: disable=broad-except
                import traceback
                traceback.print_exc()
                return 1

        kernel = mcl.HOST_KERNEL(call)
        self._kernels.append(kernel)
        checked(library.mcl_prg_add_host(name.encode(), kernel))

    def run(self, kernel, work, *arguments, group=None, offset=0, on=mcl.ANY, favour=0, priority=0,
            after=()):
        """Submits one execution of a kernel over `work` items and returns a Future at once.

        work, group, offset: a number or up to three; on: classes it may run on; favour: a class
        that is better; after: futures that have to end first. Arguments: In, Out, InOut, Changed,
        Local, or numpy scalars."""
        prepared = [one if isinstance(one, (_Memory, Local)) else _Scalar(one) for one in arguments]
        handle = library.mcl_task_create()
        if not handle:
            mcl.fail(mcl.ERR_MEMALLOC, library.mcl_reason())
        try:
            checked(library.mcl_task_set_kernel(handle, kernel.encode(), len(prepared)))
            for index, argument in enumerate(prepared):
                argument.set(handle, index)
            if priority != 0:
                checked(library.mcl_task_set_priority(handle, priority))
            earlier = [one._checked_handle() for one in after]
            list_of_earlier = (ctypes.c_void_p * max(1, len(earlier)))(*earlier)
            checked(library.mcl_exec2_with_dependencies(
                handle, _sizes(work, 1), None if group is None else _sizes(group, 1),
                _sizes(offset, 0), on | favour << mcl.FAVOUR_SHIFT, len(earlier), list_of_earlier))
        except BaseException:
            library.mcl_hdl_free(handle)
            raise
        return Future(handle, prepared, self)

    def wait_all(self):
        """Until this process has no task under way. Failures are told by futures."""
        checked(library.mcl_wait_all())
