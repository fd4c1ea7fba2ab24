# SPDX-License-Identifier: Apache-2.0
"""A program whose data is more than one node may keep: each stays within --memory."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

from launcher import BUILD, LaunchTest, finish, main, processes, start

PROGRAM = str(BUILD / "bin" / "launch_test_memory")
MIB = 1 << 20


def managed_memory(process):
    """Bytes that the file behind the process's managed memory takes; 0 where there is none."""
    try:
        for number in os.listdir(f"/proc/{process}/fd"):
            path = f"/proc/{process}/fd/{number}"
            if os.readlink(path).startswith("/memfd:amasia "):
                return os.stat(path).st_blocks * 512
    except OSError:
        pass
    return 0


class Memory(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def watch(self, process, most):
        while process.poll() is None:
            for number in processes(self.mark):
                most[number] = max(most.get(number, 0), managed_memory(number))
            time.sleep(0.01)

    def run_within(self, limit, nodes, mebibytes, blocks):
        """Each node's statistics, after the program has told the same as a plain run of it."""
        arguments = [PROGRAM, str(mebibytes), str(blocks)]
        plain = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        most = {}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "stats.json"
            began = time.monotonic()
            process = start("run", f"-n{nodes}", "--threads=1", f"--memory={limit // MIB}M",
                            f"--stats={file}", *arguments, env=self.env(AMASIA_LIBRARY=None))
            watcher = threading.Thread(target=self.watch, args=(process, most))
            watcher.start()
            result = finish(process, began)
            watcher.join()
            self.assertEqual((result.code, result.out, result.err), (0, plain, ""), result)
            report = json.loads(file.read_text())["nodes"]
        seen = [most.get(node["pid"], 0) for node in report]
        for node, bytes_seen in zip(report, seen):
            # The last margin is a sixteenth; as much again may be under way.
            self.assertLess(max(bytes_seen, node["memory_max"]), limit + limit // 8, (report, seen))
            self.assertGreater(bytes_seen, limit // 4, (report, seen))
        return report

    def test_more_than_a_node_on_two(self):
        report = self.run_within(64 * MIB, 2, 90, 9)
        self.assertGreater(report[0]["pages_evicted"], 1000, report)

    def test_one_block_larger_than_a_node(self):
        report = self.run_within(64 * MIB, 3, 90, 1)
        self.assertGreater(report[0]["pages_evicted"], 1000, report)

    def test_one_block_larger_than_a_node_on_two(self):
        report = self.run_within(64 * MIB, 2, 90, 1)
        self.assertGreater(report[0]["pages_evicted"], 1000, report)

    def test_twice_a_node_on_three(self):
        report = self.run_within(64 * MIB, 3, 130, 10)
        self.assertGreater(report[0]["pages_evicted"], 1000, report)

    def test_more_than_all_nodes_together_is_told_by_each(self):
        arguments = [PROGRAM, "200", "20"]
        plain = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "stats.json"
            result = finish(start("run", "-n2", "--threads=1", "--memory=64M", f"--stats={file}",
                                  *arguments, env=self.env(AMASIA_LIBRARY=None)), time.monotonic())
            report = json.loads(file.read_text())["nodes"]
        self.assertEqual((result.code, result.out), (0, plain), result)
        sentence = ("the program's data that belong to this node, and cannot go elsewhere, take "
                    "more than the 64 MiB that it may use (--memory): allow more, or start more "
                    "nodes")
        self.assertEqual(sorted(result.err.splitlines()),
                         [f"amasia[{node}]: {sentence}" for node in range(2)])
        for node in report:  # what is too much is dealt to both
            self.assertLess(node["memory_max"], 150 * MIB, report)

    def test_nothing_is_evicted_where_there_is_room(self):
        arguments = ["run", "-n2", "--threads=1", "--memory=1G", "--stats", PROGRAM, "20", "1"]
        result = finish(start(*arguments, env=self.env(AMASIA_LIBRARY=None)), time.monotonic())
        self.assertEqual(result.code, 0, result)
        lines = [line.split() for line in result.err.splitlines()]
        column = lines[0].index("evicted") - 2  # "pages in" and "pages out" are two words each
        for line in lines[1:3]:
            self.assertEqual(line[column], "0", result)


if __name__ == "__main__":
    main()
