# SPDX-License-Identifier: Apache-2.0
"""Nodes that are slowed on purpose: --emulate and --link."""

import os
import pathlib
import re
import signal
import subprocess

from launcher import (BUILD, LaunchTest, amasia, environment, finish, main, processes, start,
                      wait_until)

PROGRAM = str(BUILD / "bin" / "launch_test_emulated")
REGION = str(BUILD / "bin" / "launch_test_region")
GROUP = re.compile(r"(?m)^\d+:[^:]*:\S*/(amasia-[0-9a-f]+)/(\d+)$")


def why_no_quota():
    """Why this machine cannot slow a program, or None."""
    result = amasia("run", "--emulate=0.5", "true", env=environment(AMASIA_LIBRARY=None))
    if result.code == 2 and "a CPU quota needs" in result.err or "control groups" in result.err:
        return result.err.strip()
    return None


def groups_left(name):
    """Control groups of that name, in any hierarchy."""
    found = subprocess.run(["find", "/sys/fs/cgroup", "-type", "d", "-name", name], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return found.stdout.split()


class Emulated(LaunchTest):
    def setUp(self):
        super().setUp()
        reason = why_no_quota()
        if reason:
            self.skipTest(reason)

    def tearDown(self):
        self.assert_nothing_left()

    def run_real(self, *arguments, **changes):
        return self.run_amasia("run", *arguments, AMASIA_LIBRARY=None, **changes)

    def test_a_program_gives_what_it_gives_plainly(self):
        plain = subprocess.run([PROGRAM, "work"], stdout=subprocess.PIPE, text=True, check=True,
                               env={**os.environ, "OMP_NUM_THREADS": "2"}).stdout
        for options in (["--emulate", "1.0,0.5", "--link", "50,200"],
                        ["--emulate", "0.5,1.0,0.25"], ["--emulate", "0.5"], ["--emulate", "1.0"],
                        ["--emulate", "0.5", "--stats=" + self.folder.name + "/stats"],
                        ["-n2", "--link", "0,100"], ["-n3", "--link", "200", "--transport=tcp"]):
            with self.subTest(options):
                result = self.run_real(*options, PROGRAM, "work")
                self.assertEqual((result.code, result.out, result.err), (0, plain, ""))

    def test_each_node_has_its_share_of_one_core(self):
        for shares in ("1.0,0.5", "0.33,0.33,0.33,0.33", "0.25", "1.0"):
            with self.subTest(shares):
                result = self.run_real("--emulate", shares, PROGRAM, "shares", *shares.split(","))
                count = shares.count(",") + 1
                self.assertEqual((result.code, result.out), (0, f"{count} processors\n"), result)

    def test_a_plain_program_is_slowed_as_a_whole_and_its_group_goes(self):
        result = self.run_real("--emulate=0.5", "sh", "-c", "cat /proc/self/cgroup; exit 7")
        self.assertEqual((result.code, result.err), (7, ""), result)
        found = GROUP.search(result.out)
        self.assertTrue(found, result)
        self.assertEqual(groups_left(found[1]), [])

    def test_a_plain_program_that_was_killed_leaves_no_segment(self):
        # As libomp does, which removes it in a destructor.
        make = "name=__KMP_REGISTERED_LIB_$$_$(id -u); > /dev/shm/$name; echo $name"
        for script in (make + "; kill -9 $$",
                       f"(sh -c '{make}; exec sleep 1000' & ) | (read name; echo $name)"):
            with self.subTest(script):
                result = self.run_real("--emulate=0.5", "sh", "-c", script)
                self.assertRegex(result.out, "^__KMP_REGISTERED_LIB_[0-9]+_[0-9]+\n$")
                self.assertFalse(os.path.exists("/dev/shm/" + result.out.strip()), result)

    def test_a_whole_core_needs_no_group(self):
        result = self.run_real("--emulate=1.0", "cat", "/proc/self/cgroup")
        self.assertEqual(result.code, 0, result)
        self.assertNotIn("amasia-", result.out)

    def test_variable(self):
        result = self.run_real(PROGRAM, "shares", "0.5", "0.5", AMASIA_EMULATE="0.5,0.5",
                               AMASIA_LINK="100")
        self.assertEqual((result.code, result.out), (0, "2 processors\n"), result)

    def stay(self):
        """A job whose nodes stay in a region: launcher, groups of each node's threads by name."""
        process = start("run", "--emulate=0.5,0.4,0.3", REGION, "stay",
                        env=self.env(AMASIA_LIBRARY=None))
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "in a region\n")
        nodes = {}
        for number in processes(self.mark):
            if os.readlink(f"/proc/{number}/exe") != REGION:
                continue
            for task in pathlib.Path(f"/proc/{number}/task").iterdir():
                found = GROUP.search((task / "cgroup").read_text())
                name = (task / "comm").read_text().strip()
                nodes.setdefault(number, []).append((name, found and found.groups()))
        return process, nodes

    def test_only_the_programs_threads_are_slowed_and_a_killed_launcher_leaves_no_group(self):
        process, nodes = self.stay()
        self.assertEqual(len(nodes), 3)
        slowed_as = set()
        for threads in nodes.values():
            slowed = {group for _, group in threads if group}
            self.assertEqual(len(slowed), 1, threads)
            slowed_as |= slowed
            engines = [group for name, group in threads if name == "amasia-engine"]
            self.assertEqual(engines, [None], threads)
        self.assertEqual({index for _, index in slowed_as}, {"0", "1", "2"})
        (name,) = {name for name, _ in slowed_as}
        self.assertNotEqual(groups_left(name), [])
        process.send_signal(signal.SIGKILL)
        finish(process, 0)
        wait_until(lambda: not groups_left(name), f"{name} is removed")

    def test_an_interrupted_job_leaves_no_group(self):
        process, nodes = self.stay()
        name = next(group for threads in nodes.values() for _, group in threads if group)[0]
        process.send_signal(signal.SIGINT)
        self.assertEqual(finish(process, 0).code, -signal.SIGINT)
        self.assertEqual(groups_left(name), [])


class Refused(LaunchTest):
    def test_values(self):
        for value in ("0", "-0.5", "1.5", "1.0,,0.5", "1.0,", "fast", ",".join(["0.5"] * 65)):
            with self.subTest(value):
                self.assert_refused(self.run_amasia("run", f"--emulate={value}", PROGRAM),
                                    "--emulate", f"'{value}'", "from 0.01 to 1", "1 to 64 nodes")
        for value in ("0", "-1", "slow", "50,", "50,0", "1,2,3", "1000001"):
            with self.subTest(value):
                self.assert_refused(self.run_amasia("run", f"--link={value}", PROGRAM), "--link",
                                    f"'{value}'", "from 0 to 1000000")
        self.assert_refused(self.run_amasia("run", PROGRAM, AMASIA_EMULATE="2"), "AMASIA_EMULATE")
        self.assert_refused(self.run_amasia("run", PROGRAM, AMASIA_LINK="0"), "AMASIA_LINK")

    def test_options_that_say_otherwise(self):
        for arguments, parts in [
                (["-n3", "--emulate=1.0,0.5"], ["--nodes", "'3'", "makes 2 nodes"]),
                (["-t2", "--emulate=1.0,0.5"], ["--threads", "'2'", "0 or 1"]),
                (["--no-bind", "--emulate=1.0,0.5"], ["--no-bind", "--emulate"]),
                (["--bootstrap=pmix", "--emulate=1.0,0.5"], ["pmix"])]:
            with self.subTest(arguments):
                self.assert_refused(self.run_amasia("run", *arguments, PROGRAM), *parts)

    def test_without_permission(self):
        if os.getuid() != 0:
            self.skipTest("only root can become somebody who has no permission")
        try:
            began = start("run", "--emulate=1.0,0.5", "true", env=self.env(), user=65534,
                          group=65534, extra_groups=[], cwd="/")
        except OSError as error:
            self.skipTest(f"somebody else cannot execute the command: {error}")
        self.assert_refused(finish(began, 0), "--emulate", "root or a delegated control group")


if __name__ == "__main__":
    main()
