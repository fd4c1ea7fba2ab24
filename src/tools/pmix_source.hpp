// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "fabric/fabric.hpp"
#include "tools/job_source.hpp"

namespace amasia::tools {

// This launcher as one rank of a PMIx job: rank k starts node k. Rank 0's word travels by a
// broadcast, for which the other ranks wait on a thread of their own. `name` replaces the value of
// AMASIA_LAUNCHER in what rank 0 announces: each launcher listens at a place of its own.
Result<std::unique_ptr<JobSource>> make_pmix_source(
    std::unique_ptr<fabric::PmixMembership> membership, const std::string& name);

}  // namespace amasia::tools
