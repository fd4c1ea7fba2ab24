#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# python_test.sh SOURCE LIBRARY DAEMON FOLDER: installs the package into FOLDER as a user would, but
# without network, and runs its tests there, with a daemon of their own.
set -euo pipefail
source=$1 library=$2 daemon=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder/runtime"
trap 'rm -rf "$folder"' EXIT
# Building leaves files beside the sources.
cp -r "$source" "$folder/source"
/usr/bin/python3 -m pip install --quiet --no-build-isolation --no-deps --no-index \
  --disable-pip-version-check --root-user-action=ignore --target "$folder/installed" \
  "$folder/source"
chmod 700 "$folder/runtime"
cd "$folder"
export XDG_RUNTIME_DIR="$folder/runtime" AMASIA_DEVICED="$daemon" AMASIA_DEVICES_LIBRARY="$library"
export AMASIA_MCL_HEADER="$source/../include/amasia/mcl.h"
export PYTHONPATH="$folder/installed" PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 source/tests/test_devices.py
