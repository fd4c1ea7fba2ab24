// SPDX-License-Identifier: Apache-2.0
// base: the vocabulary of every layer. Depends on the C++ library and fmt only; does no I/O except
// the log's single write(2). Invariants: nothing here takes a lock, and nothing here but `options`,
// texts of JSON and `Result`'s error text allocates, so the fault path may use all the rest.
#pragma once

#include "base/check.hpp"
#include "base/emulation.hpp"
#include "base/ids.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "base/quantities.hpp"
#include "base/result.hpp"
#include "base/sharing_advice.hpp"
#include "base/sharing_reason.hpp"
#include "base/statistics.hpp"
#include "base/units.hpp"

namespace amasia {
// The words that every layer speaks are lifted out of `base`, so that signatures stay readable.
using base::Bytes;
using base::Error;
using base::Nanos;
using base::NodeId;
using base::PageCount;
using base::PageIndex;
using base::Result;
using base::Status;
}  // namespace amasia
