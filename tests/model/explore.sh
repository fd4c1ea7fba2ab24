#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long explorations of the single-writer protocol: about three minutes and 4 GiB. Three of them
# stop at 8 million states.
# usage: tests/model/explore.sh [path to dsm_test]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
test_binary=${1:-$root/build/gcc/bin/dsm_test}
exec "$test_binary" --gtest_also_run_disabled_tests --gtest_filter='ExplorerLong.*'
