// SPDX-License-Identifier: Apache-2.0
// The launcher as a member of a PMIx job (mpirun, prterun, srun): it serves its one node over a
// socket by asking PMIx. In a library of its own (amasia_fabric_pmix), so that the program's
// process never loads PMIx.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/bootstrap.hpp"

namespace amasia::fabric {

// True if a PMIx launcher started this process. Looks at the environment only.
bool started_by_pmix();
// The version of the PMIx library, as it names itself. Works outside a job.
std::string pmix_version();

// This process as one rank of a PMIx job. Rank k of n is node k of n.
class PmixMembership {
 public:
  virtual ~PmixMembership() = default;
  virtual NodeId self() const = 0;
  virtual std::uint32_t node_count() const = 0;
  // Serves this rank's node over `socket`, which it takes. At most once; the service must not
  // outlive the membership.
  virtual std::unique_ptr<BootstrapService> serve(int socket) = 0;
  // Rank 0's `value` on every rank; the others' is not looked at. Once, by all ranks. Blocks until
  // all have called, however long that takes.
  virtual Result<std::vector<std::byte>> broadcast(std::span<const std::byte> value) = 0;
  // Ends the whole job through the PMIx server, with this exit status and sentence.
  virtual void abort(int status, std::string_view sentence) = 0;
};

// PMIx_Init, rank and size, and agreement on a secret that rank 0 makes. Blocks until all ranks
// have come, up to `timeout`. Destruction is PMIx_Finalize.
Result<std::unique_ptr<PmixMembership>> join_pmix(Nanos timeout = 30 * base::kSecond);

}  // namespace amasia::fabric
