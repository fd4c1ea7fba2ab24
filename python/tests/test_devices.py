# SPDX-License-Identifier: Apache-2.0
"""The package against a daemon that the first session starts: kernels of the host, so that it runs
anywhere, and OpenCL where there is a device for it."""

import ctypes
import gc
import os
import re
import tempfile
import unittest

import numpy as np

import amasia_devices as devices
from amasia_devices import _library
from amasia_devices import Changed, DeviceError, In, InOut, Out, Resident, Session, State


def floats(address, count):
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


def add_one(begin, end, arguments):
    floats(arguments[0], end[0])[begin[0]:end[0]] += 1


def scale(begin, end, arguments):
    """out = a * in"""
    part = slice(begin[0], end[0])
    factor = floats(arguments[2], 1)[0]
    floats(arguments[1], end[0])[part] = factor * floats(arguments[0], end[0])[part]


def broken(begin, end, arguments):
    raise ValueError("this kernel fails, as the test wants")


SAXPY = """
__kernel void saxpy(__global const float* x, __global float* y, float a) {
  y[get_global_id(0)] += a * x[get_global_id(0)];
}
"""


class DevicesTest(unittest.TestCase):
    def setUp(self):
        self.session = Session(workers=2)
        self.addCleanup(self.session.close)
        for kernel in (add_one, scale, broken):
            self.session.add_host_kernel(kernel.__name__, kernel)

    def test_runs_a_kernel_on_arrays(self):
        x, y = np.arange(1000, dtype=np.float32), np.empty(1000, np.float32)
        done = self.session.run("scale", 1000, In(x), Out(y), np.float32(3))
        done.get()
        self.assertTrue(done.ready())
        self.assertEqual(done.state, State.TERMINATED)
        self.assertLess(done.device, len(self.session.devices))
        np.testing.assert_array_equal(y, 3 * x)

    def test_tasks_follow_each_other(self):
        x = np.zeros(16, np.float32)
        chain = []
        for _ in range(20):
            chain.append(self.session.run("add_one", 16, InOut(x), after=chain[-1:]))
        chain[-1].get()
        np.testing.assert_array_equal(x, np.full(16, 20))

    def test_resident_arrays_and_parts_of_them(self):
        x = np.zeros(100, np.float32)
        with Resident(x) as there:
            self.session.run("add_one", 100, Changed(there)).get()
            self.session.run("add_one", 10, InOut(there, slice(20, 30))).get()
            self.session.run("add_one", 100, InOut(there)).get()
        expected = np.full(100, 2)
        expected[20:30] = 3
        np.testing.assert_array_equal(x, expected)

    def test_memory_lives_as_long_as_its_task(self):
        for _ in range(50):
            self.session.run("add_one", 100_000, InOut(np.zeros(100_000, np.float32)))
            gc.collect()
        self.session.wait_all()

    def test_failures_have_a_sentence(self):
        failed = self.session.run("broken", 1)
        self.assertTrue(failed.wait())
        self.assertEqual(failed.state, State.FAILED)
        with self.assertRaises(DeviceError) as caught:
            failed.get()
        self.assertNotEqual(str(caught.exception), "")
        with self.assertRaises(DeviceError):
            self.session.run("add_one", 4, InOut(np.zeros(4, np.float32)), after=[failed]).get()
        with self.assertRaises(DeviceError):
            self.session.run("no such kernel", 1)
        with self.assertRaises(DeviceError):
            Session()

    def test_what_cannot_be_an_argument_is_refused(self):
        fixed = np.zeros(4)
        fixed.flags.writeable = False
        for argument, kind in (([1, 2], TypeError), (3, TypeError), (2.5, TypeError)):
            with self.assertRaises(kind):
                self.session.run("add_one", 4, argument)
        with self.assertRaises(ValueError):
            Out(fixed)
        with self.assertRaises(ValueError):
            In(np.zeros((4, 4)).T[1:3])
        with self.assertRaises(TypeError):
            In([1, 2])
        with self.assertRaises(TypeError):
            In(np.array([object()]))
        with self.assertRaises(ValueError):
            self.session.run("add_one", (1, 1, 1, 1))
        with self.assertRaises(ValueError):
            self.session.run("add_one", -1)

    def test_futures_of_a_session_that_ended_say_so(self):
        x = np.zeros(4, np.float32)
        done = self.session.run("add_one", 4, InOut(x))
        self.session.close()
        np.testing.assert_array_equal(x, np.ones(4))
        with self.assertRaises(DeviceError):
            done.wait()
        with Session() as again:
            self.assertGreater(len(again.devices), 0)

    def test_opencl_source(self):
        with tempfile.NamedTemporaryFile("w", suffix=".cl", delete=False) as file:
            file.write(SAXPY)
        self.addCleanup(os.unlink, file.name)
        try:
            self.session.load(file.name)
        except DeviceError as error:
            self.skipTest(f"no device takes OpenCL C: {error}")
        x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
        self.session.run("saxpy", 64, In(x), InOut(y), np.float32(2), on=devices.ANY).get()
        np.testing.assert_array_equal(y, 1 + 2 * x)


class HeaderTest(unittest.TestCase):
    """What _library.py says is what amasia/mcl.h says."""

    def setUp(self):
        path = os.environ.get("AMASIA_MCL_HEADER")
        if not path:
            self.skipTest("AMASIA_MCL_HEADER names no file")
        with open(path, encoding="ascii") as file:
            self.header = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)

    def test_functions_take_as_many_arguments(self):
        for name, (_, *arguments) in _library._SIGNATURES.items():
            declared = re.search(rf"\b{name}\(([^)]*)\);", self.header)
            self.assertIsNotNone(declared, name)
            given = [] if declared[1].strip() == "void" else declared[1].split(",")
            self.assertEqual(len(given), len(arguments), name)

    def test_numbers_are_the_same(self):
        defined = {name: int(value, 0) for name, value in re.findall(
            r"#define MCL_(\w+) (0x[0-9a-f]+|\d+)(?:UL|L)?\s", self.header)}
        for ours, theirs in {
                "CPU": "TASK_CPU", "GPU": "TASK_GPU", "FPGA": "TASK_FPGA", "DATAFLOW": "TASK_DF",
                "Source": "PRG_SRC", "Spirv": "PRG_IR", "Binary": "PRG_BIN",
                "BuiltIn": "PRG_BUILTIN", "Cuda": "PRG_CUDA", "Host": "PRG_HOST",
                "ARG_INPUT": "ARG_INPUT", "ARG_OUTPUT": "ARG_OUTPUT", "ARG_SCALAR": "ARG_SCALAR",
                "ARG_BUFFER": "ARG_BUFFER", "ARG_RESIDENT": "ARG_RESIDENT",
                "ARG_LOCAL": "ARG_LOCAL", "ARG_DYNAMIC": "ARG_DYNAMIC",
                "BIND_WORKERS": "SET_BIND_WORKERS", "DIMENSIONS": "DEV_DIMS",
                "COMPLETED": "REQ_COMPLETED", "ERR_INVARG": "ERR_INVARG",
                "ERR_TIMEOUT": "ERR_TIMEOUT", "ERR_MEMALLOC": "ERR_MEMALLOC"}.items():
            self.assertEqual(getattr(_library, ours), defined[theirs], ours)


if __name__ == "__main__":
    unittest.main()
