// SPDX-License-Identifier: Apache-2.0
// MPI's initialisation. MPI opens components then, and what those use: dozens of libraries whose
// data are this node's own, so that every region would have to stay, as after any late library
// (objects.hpp). But a program that asks for no more than MPI_THREAD_FUNNELED calls MPI on its main
// thread, which is the origin's, and so on no other node. Where it asks for more, regions stay.
#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

constexpr int kFunneled = 1;  // MPI_THREAD_FUNNELED, of Open MPI and MPICH

constinit Real<int(int*)> query_thread{"MPI_Query_thread"};

// `initialise` calls the next definition, which may be MPI's own or a tool's. Any thread, once.
template <typename Initialise>
auto initialise_mpi(const Initialise& initialise) {
  const bool was_late = process.managed && process.objects.late_library() != nullptr;
  const auto result = initialise();
  const auto query = query_thread.find();
  int level = kFunneled + 1;
  // MPI that has not been initialised must not be asked.
  if (process.managed && !was_late && result == 0 && query != nullptr && query(&level) == 0 &&
      level <= kFunneled) {
    process.objects.accept_opened();
  }
  return result;
}

// Fortran's, which returns nothing.
template <typename... Arguments>
void initialise_mpi(Real<void(Arguments...)>& real, Arguments... arguments) {
  initialise_mpi([&] {
    real(arguments...);
    return 0;
  });
}

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the entry points below are in no namespace

AMASIA_EXPORT int MPI_Init(int* count, char*** values) {
  static constinit Real<int(int*, char***)> real{"MPI_Init"};
  return initialise_mpi([&] { return real(count, values); });
}

AMASIA_EXPORT int MPI_Init_thread(int* count, char*** values, int required, int* provided) {
  static constinit Real<int(int*, char***, int, int*)> real{"MPI_Init_thread"};
  return initialise_mpi([&] { return real(count, values, required, provided); });
}

AMASIA_EXPORT void mpi_init_(int* error) {
  static constinit Real<void(int*)> real{"mpi_init_"};
  initialise_mpi(real, error);
}

AMASIA_EXPORT void mpi_init_thread_(int* required, int* provided, int* error) {
  static constinit Real<void(int*, int*, int*)> real{"mpi_init_thread_"};
  initialise_mpi(real, required, provided, error);
}

AMASIA_EXPORT void mpi_init_f08_(int* error) {
  static constinit Real<void(int*)> real{"mpi_init_f08_"};
  initialise_mpi(real, error);
}

AMASIA_EXPORT void mpi_init_thread_f08_(int* required, int* provided, int* error) {
  static constinit Real<void(int*, int*, int*)> real{"mpi_init_thread_f08_"};
  initialise_mpi(real, required, provided, error);
}
