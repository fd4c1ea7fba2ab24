# SPDX-License-Identifier: Apache-2.0
"""The shared library, its functions' signatures, and what amasia/mcl.h defines."""

import ctypes
import ctypes.util
import os

# Device classes.
CPU, GPU, FPGA, DATAFLOW = 0x02, 0x04, 0x08, 0x10
ANY = CPU | GPU | FPGA | DATAFLOW
FAVOUR_SHIFT = 16
# Kinds of program.
Source, Spirv, Binary, BuiltIn, Cuda, Host = 0x02, 0x04, 0x08, 0x20, 0x40, 0x80
# Arguments.
ARG_INPUT, ARG_OUTPUT, ARG_SCALAR, ARG_BUFFER = 0x001, 0x002, 0x004, 0x008
ARG_RESIDENT, ARG_LOCAL, ARG_DYNAMIC = 0x010, 0x100, 0x400
BIND_WORKERS = 0x01
DIMENSIONS = 3
COMPLETED = 0
ERR_INVARG, ERR_TIMEOUT, ERR_MEMALLOC = 0x01, 0x0d, 0x02
FOREVER = 2**64 - 1
TEXT = 256


class DeviceError(RuntimeError):
    """What went wrong, as a sentence; `code` is MCL_ERR_*, positive."""

    def __init__(self, code, what):
        super().__init__(what)
        self.code = code


class DeviceInfo(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("name", ctypes.c_char * TEXT),
                ("vendor", ctypes.c_char * TEXT), ("type", ctypes.c_uint64),
                ("status", ctypes.c_uint64), ("mem_size", ctypes.c_uint64),
                ("pes", ctypes.c_uint64), ("ndims", ctypes.c_uint64),
                ("wgsize", ctypes.c_uint64), ("wisize", ctypes.c_void_p)]


class HostRange(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64 * DIMENSIONS)
                for name in ("begin", "end", "global_", "local", "offset")]


HOST_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(HostRange),
                               ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64)

_HANDLE, _SIZES = ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)
_INT, _U64, _TEXT, _POINTER = ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p
_SIGNATURES = {
    "mcl_init": (_INT, _U64, _U64),
    "mcl_finit": (_INT,),
    "mcl_get_ndev": (ctypes.c_uint32,),
    "mcl_get_dev": (_INT, ctypes.c_uint32, ctypes.POINTER(DeviceInfo)),
    "mcl_prg_load": (_INT, _TEXT, _TEXT, ctypes.c_ulong),
    "mcl_prg_add_host": (_INT, _TEXT, HOST_KERNEL),
    "mcl_task_create": (_HANDLE,),
    "mcl_task_set_kernel": (_INT, _HANDLE, _TEXT, _U64),
    "mcl_task_set_arg": (_INT, _HANDLE, _U64, _POINTER, ctypes.c_size_t, _U64),
    "mcl_task_set_arg_buffer": (_INT, _HANDLE, _U64, _POINTER, ctypes.c_size_t, ctypes.c_long,
                                _U64),
    "mcl_task_set_priority": (_INT, _HANDLE, _INT),
    "mcl_exec2_with_dependencies": (_INT, _HANDLE, _SIZES, _SIZES, _SIZES, _U64, _U64,
                                    ctypes.POINTER(_HANDLE)),
    "mcl_wait_for": (_INT, _HANDLE, _U64),
    "mcl_wait_all": (_INT,),
    "mcl_test": (_INT, _HANDLE),
    "mcl_hdl_free": (_INT, _HANDLE),
    "mcl_task_state": (_INT, _HANDLE),
    "mcl_task_error": (_INT, _HANDLE),
    "mcl_task_device": (_INT, _HANDLE),
    "mcl_task_reason": (_TEXT, _HANDLE),
    "mcl_reason": (_TEXT,),
    "mcl_strerror": (_TEXT, _INT),
    "mcl_register_buffer": (_INT, _POINTER, ctypes.c_size_t, _U64),
    "mcl_unregister_buffer": (_INT, _POINTER),
    "mcl_invalidate_buffer": (_INT, _POINTER),
}


def load():
    """libamasia-devices.so: $AMASIA_DEVICES_LIBRARY, else where the loader finds it."""
    name = os.environ.get("AMASIA_DEVICES_LIBRARY") or "libamasia-devices.so.0"
    try:
        library = ctypes.CDLL(name)
    except OSError as failure:
        raise ImportError(
            f"cannot load '{name}': {failure}; install Amasia, or name the library's file in "
            "AMASIA_DEVICES_LIBRARY") from None
    for function, (result, *arguments) in _SIGNATURES.items():
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


library = load()
# Not the library's: mcl_get_dev allocates with malloc.
_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, (ctypes.c_void_p,)


def free(pointer):
    _free(pointer)


def fail(code, reason=None):
    code = abs(code)
    said = (reason or b"").decode(errors="replace")
    raise DeviceError(code, said or library.mcl_strerror(code).decode(errors="replace"))


def checked(result):
    if result < 0:
        fail(result, library.mcl_reason())
    return result
