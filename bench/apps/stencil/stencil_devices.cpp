// SPDX-License-Identifier: Apache-2.0
// The stencil of HiPER (IPDPSW 2017, section II-D) with its grid in memory of devices: kernels
// compute, border planes are copied to the host, sent, received and copied to the device, and the
// inside is computed meanwhile. Kernels, copies and messages know of each other by futures alone.
//
//   amasia   that
//   hand     OpenCL and MPI themselves, on the same device, with the same overlap (opencl.hpp)
//   plain    the same one after the other
//   openmp   MPI+OpenMP on the cores: what another memory than theirs costs here
//
// Verified as stencil.cpp is. Ends with 77 where there is no device for OpenCL C.
// Run, with a daemon (docs/devices.md): mpirun -np N stencil_devices [options as stencil]
#include "../../tasks/harness.hpp"
#include "amasia/device_tasks.hpp"
#include "amasia/mpi.hpp"
#include "grid.hpp"
#include "opencl.hpp"

namespace device_tasks = amasia::device_tasks;
namespace devices = amasia::devices;
namespace mpi = amasia::mpi;
namespace tasks = amasia::tasks;

namespace {

using namespace stencil;
using Plane = std::vector<double>;

class OnDevices {
 public:
  OnDevices(mpi::library& mpi, device_tasks::library& devices, const Shape& shape,
            const Part& part)
      : mpi_(mpi),
        devices_(devices),
        shape_(shape),
        part_(part),
        cells_(static_cast<std::size_t>(shape.x) * shape.y),
        now_(devices.devices(), bytes()),
        next_(devices.devices(), bytes()) {
    for (Plane* one : {&to_below_, &to_above_, &from_below_, &from_above_}) one->resize(cells_);
  }

  Grid run() {
    Grid grid(shape_, part_.planes);
    copy_in(next_, grid);  // zeroes, at the borders for good
    grid.fill(part_.first);
    copy_in(now_, grid);
    tasks::promise<void> there;
    there.put();
    const auto begun = there.get_future();
    await_all([&](auto& all) { exchange(all, now_, begun, begun); });
    for (int step = 0; step < shape_.steps; ++step) {
      await_all([&](auto& all) { update(all, begun); });
      std::swap(now_, next_);
    }
    tasks::async_copy(grid.plane(0), host_, now_.data(), now_.at(), bytes()).get();
    return grid;
  }

 private:
  using All = std::vector<tasks::future<void>>;
  std::size_t bytes() const {
    return cells_ * static_cast<std::size_t>(part_.planes + 2) * sizeof(double);
  }
  double* plane(tasks::buffer& of, int z) const {
    return of.as<double>() + cells_ * static_cast<std::size_t>(z);
  }
  void copy_in(tasks::buffer& to, const Grid& from) {
    tasks::async_copy(to.data(), to.at(), from.plane(0), host_, bytes()).get();
  }
  template <typename Body>
  static void await_all(Body body) {
    All all;
    tasks::finish([&] { body(all); });
    for (const auto& one : all) one.get();
  }

  // Planes first to first + count - 1 of the next step, once all of `awaited` are ready.
  template <typename... Futures>
  tasks::future<void> compute(int first, int count, const Futures&... awaited) {
    const auto at = [&](int z) { return cells_ * static_cast<std::size_t>(z); };
    const device_tasks::part<double> from(now_, at(first - 1), at(count + 2));
    const device_tasks::part<double> to(next_, at(first), at(count));
    return devices_.submit_await(
        devices::task("stencil", from.in(), to.inout(), shape_.x, shape_.y),
        {static_cast<std::uint64_t>(shape_.x), static_cast<std::uint64_t>(shape_.y),
         static_cast<std::uint64_t>(count)},
        awaited...);
  }

  // A step: what neighbours wait for, then, while it travels, the others. The kernel of those comes
  // after the copies of the first: it would keep them from the device until its end.
  void update(All& all, const tasks::future<void>& begun) {
    const int last = part_.planes;
    const bool has_below = part_.below() != MPI_PROC_NULL;
    const bool has_above = part_.above() != MPI_PROC_NULL;
    const auto low = has_below ? compute(1, 1, begun) : begun;
    const auto high = !has_above ? begun : has_below && last == 1 ? low : compute(last, 1, begun);
    const auto [low_out, high_out] = exchange(all, next_, low, high);
    const int first = has_below ? 2 : 1, end = has_above ? last : last + 1;
    if (first < end) all.push_back(compute(first, end - first, low_out, high_out));
  }

  // Border planes as soon as `low` and `high` have computed them; the neighbours' when they come.
  // When ours were copied to the host.
  std::pair<tasks::future<void>, tasks::future<void>> exchange(All& all, tasks::buffer& of,
                                                               const tasks::future<void>& low,
                                                               const tasks::future<void>& high) {
    const int cells = static_cast<int>(cells_);
    const std::size_t size = cells_ * sizeof(double);
    const auto send = [&](Plane& plane_out, int z, int to, int tag, const auto& computed) {
      if (to == MPI_PROC_NULL) return computed;
      const auto out = tasks::async_copy_await(plane_out.data(), host_, plane(of, z), of.at(),
                                               size, computed);
      mpi_.isend_await(plane_out.data(), cells, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, out);
      all.push_back(out);
      return out;
    };
    const auto receive = [&](Plane& plane_in, int z, int from, int tag) {
      if (from == MPI_PROC_NULL) return;
      const auto in = mpi_.irecv(plane_in.data(), cells, MPI_DOUBLE, from, tag);
      all.push_back(tasks::async_copy_await(plane(of, z), of.at(), plane_in.data(), host_, size,
                                            in));
    };
    receive(from_below_, 0, part_.below(), kUp);
    receive(from_above_, part_.planes + 1, part_.above(), kDown);
    return {send(to_below_, 1, part_.below(), kDown, low),
            send(to_above_, part_.planes, part_.above(), kUp, high)};
  }

  mpi::library& mpi_;
  device_tasks::library& devices_;
  const Shape shape_;
  const Part part_;
  const std::size_t cells_;
  const tasks::place host_ = tasks::here();
  tasks::buffer now_, next_;
  Plane to_below_, to_above_, from_below_, from_above_;
};

}  // namespace

int main(int argc, char** argv) {
  const Setting setting = setting_of(argc, argv);
  const Shape& shape = setting.shape;
  omp_set_num_threads(static_cast<int>(setting.threads));
  tasks::runtime workers({.workers = setting.threads});
  mpi::library mpi(workers, &argc, &argv);
  device_tasks::library devices(workers);
  if (mcl_get_ndev() == 0) {
    std::fprintf(stderr, "stencil_devices: skipped, there is no device\n");
    return 77;
  }
  const Part part(shape, mpi.rank(), mpi.size());
  if (!begins(part)) return 2;
  const Grid whole = alone(shape);
  int wrong = 0;
  const double updates =
      static_cast<double>(shape.x) * shape.y * shape.z * shape.steps / part.ranks;
  workers.run([&] { devices.load(STENCIL_KERNEL).get(); });
  const auto on_devices = [&] {
    const Grid grid =
        workers.run([&] { return OnDevices(mpi, devices, shape, part).run(); });
    wrong += !is_part_of(grid, whole, part);
  };
  ByOpencl by_opencl(STENCIL_KERNEL);
  const auto with_opencl = [&](bool overlaps) {
    wrong += !is_part_of(by_opencl.run(shape, part, overlaps), whole, part);
  };
  const auto by_openmp = [&] { wrong += !is_part_of(with_openmp(shape, part), whole, part); };
  bench::compare("stencil on devices", setting.threads, updates, "cell",
                 {{"amasia", on_devices},
                  {"hand", [&] { with_opencl(true); }},
                  {"plain", [&] { with_opencl(false); }},
                  {"openmp", by_openmp}},
                 setting.rounds);
  return verdict(wrong);
}
