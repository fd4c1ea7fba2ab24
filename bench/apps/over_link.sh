#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# over_link.sh RATE RANKS PROGRAM [ARGUMENT…]: ranks of one host whose messages go over TCP through
# one link of this rate (for tc, such as 2gbit; none: the loopback device as it is), in a network
# namespace of their own. Needs root. Both directions share the link: messages of b bytes each way
# hold it for 2 b / RATE.
set -euo pipefail
rate=$1 ranks=$2
shift 2

space=amasia-link-$$
ip netns add "$space"
trap 'ip netns del "$space"' EXIT
# Packets of a size that the bucket lets pass.
ip netns exec "$space" ip link set lo mtu 9000 up
if [[ $rate != none ]]; then
  ip netns exec "$space" tc qdisc add dev lo root tbf rate "$rate" burst 70k latency 50ms
fi
OMP_WAIT_POLICY=passive ip netns exec "$space" \
  mpirun --oversubscribe --allow-run-as-root --bind-to none --mca btl tcp,self \
  --mca btl_tcp_if_include lo -np "$ranks" "$@"
