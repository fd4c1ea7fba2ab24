# SPDX-License-Identifier: Apache-2.0
"""Accelerators of a node from Python: kernels on NumPy arrays, and no device is named.

    import numpy as np
    from amasia_devices import Session, In, InOut

    with Session(workers=4) as session:
        session.load("saxpy.cl")
        x, y = np.ones(1000, np.float32), np.ones(1000, np.float32)
        done = session.run("saxpy", 1000, In(x), InOut(y), np.float32(2))
        done.get()              # waits; raises DeviceError where the task failed

Words, blocking and thread rules are those of amasia/mcl.h, whose C interface this calls. Waiting
releases the interpreter's lock. An array that a task uses must be C-contiguous; it is kept alive
until the task has ended, and must not be changed until then. Sizes are in work items or elements,
times in seconds.
"""

from ._library import (ANY, CPU, DATAFLOW, FPGA, GPU, Binary, BuiltIn, Cuda, DeviceError, Host,
                       Source, Spirv)
from .session import (Changed, Device, Future, In, InOut, Local, Out, Resident, Session, State)

__all__ = ["ANY", "CPU", "DATAFLOW", "FPGA", "GPU", "Binary", "BuiltIn", "Changed", "Cuda",
           "Device", "DeviceError", "Future", "Host", "In", "InOut", "Local", "Out", "Resident",
           "Session", "Source", "Spirv", "State"]
