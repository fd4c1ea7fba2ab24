// SPDX-License-Identifier: Apache-2.0
// modules: libraries whose operations are futures of tasks; docs/modules.md. Each folder is one
// module and one library of its own, built where the library that it stands on is found. A module
// uses the installed headers (include/amasia), base and os (`nodes` also fabric and
// launch), and no other module.
#pragma once
