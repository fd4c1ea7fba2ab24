// SPDX-License-Identifier: Apache-2.0
// The stencil with OpenCL and MPI alone, on the first device that OpenCL has: as the
// straightforward program, in which each step computes, copies the border planes out, sends,
// receives and copies them in, one after the other; and with overlap by hand: border planes first,
// and the inside is in the device's queue while planes travel.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "grid.hpp"

namespace stencil {

class ByOpencl {
 public:
  explicit ByOpencl(const char* kernel_path) {
    cl_platform_id platform = nullptr;
    must(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "clGetDeviceIDs");
    cl_int error = 0;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
    must(error, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, 0, &error);
    must(error, "clCreateCommandQueue");
    std::ifstream file(kernel_path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const char* source = text.c_str();
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &error);
    must(error, "clCreateProgramWithSource");
    must(clBuildProgram(program_, 1, &device_, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = clCreateKernel(program_, "stencil_of_grids", &error);
    must(error, "clCreateKernel");
  }
  ByOpencl(const ByOpencl&) = delete;
  ByOpencl& operator=(const ByOpencl&) = delete;
  ~ByOpencl() {
    clReleaseKernel(kernel_);
    clReleaseProgram(program_);
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }

  Grid run(const Shape& shape, const Part& part, bool overlaps) {
    Run run(*this, shape, part);
    Grid grid(shape, part.planes);
    run.copy_in(run.next, grid);
    grid.fill(part.first);
    run.copy_in(run.now, grid);
    run.read_borders(run.now);
    run.exchange();
    run.write_halo(run.now);
    const int last = part.planes;
    for (int step = 0; step < shape.steps; ++step) {
      if (overlaps && last > 2) {
        const int first = part.below() != MPI_PROC_NULL ? 2 : 1;
        const int end = part.above() != MPI_PROC_NULL ? last : last + 1;
        if (first == 2) run.compute(1, 1);
        if (end == last) run.compute(last, 1);
        run.read_borders(run.next);  // waits for these two
        run.compute(first, end - first);
        clFlush(queue_);
      } else {
        run.compute(1, last);
        run.read_borders(run.next);
      }
      run.exchange();
      run.write_halo(run.next);
      std::swap(run.now, run.next);
    }
    must(clEnqueueReadBuffer(queue_, run.now, CL_TRUE, 0, run.bytes(), grid.plane(0), 0, nullptr,
                             nullptr),
         "clEnqueueReadBuffer");
    return grid;
  }

 private:
  static void must(cl_int error, const char* what) {
    if (error == CL_SUCCESS) return;
    std::fprintf(stderr, "%s: OpenCL error %d\n", what, error);
    std::exit(1);
  }

  // Two grids on the device, and a rank's border planes on the host.
  struct Run {
    Run(ByOpencl& of_in, const Shape& shape_in, const Part& part_in)
        : of(of_in), shape(shape_in), part(part_in) {
      for (cl_mem* one : {&now, &next}) {
        cl_int error = 0;
        *one = clCreateBuffer(of.context_, CL_MEM_READ_WRITE, bytes(), nullptr, &error);
        must(error, "clCreateBuffer");
      }
      for (std::vector<double>* one : {&to_below, &to_above, &from_below, &from_above}) {
        one->resize(cells());
      }
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() {
      clReleaseMemObject(now);
      clReleaseMemObject(next);
    }
    std::size_t cells() const { return static_cast<std::size_t>(shape.x) * shape.y; }
    std::size_t plane_bytes() const { return cells() * sizeof(double); }
    std::size_t bytes() const { return plane_bytes() * static_cast<std::size_t>(part.planes + 2); }

    void copy_in(cl_mem to, const Grid& from) {
      must(clEnqueueWriteBuffer(of.queue_, to, CL_TRUE, 0, bytes(), from.plane(0), 0, nullptr,
                                nullptr),
           "clEnqueueWriteBuffer");
    }
    // Planes first to first + count - 1 of the next step.
    void compute(int first, int count) {
      cl_uint at = 0;
      const auto pass = [&](const auto& argument) {
        must(clSetKernelArg(of.kernel_, at++, sizeof argument, &argument), "clSetKernelArg");
      };
      pass(now);
      pass(next);
      pass(shape.x);
      pass(shape.y);
      pass(first);
      const std::size_t items[3] = {static_cast<std::size_t>(shape.x),
                                    static_cast<std::size_t>(shape.y),
                                    static_cast<std::size_t>(count)};
      must(clEnqueueNDRangeKernel(of.queue_, of.kernel_, 3, nullptr, items, nullptr, 0, nullptr,
                                  nullptr),
           "clEnqueueNDRangeKernel");
    }
    // Those that a neighbour waits for.
    void read_borders(cl_mem from) {
      const auto read = [&](int neighbour, int plane, std::vector<double>& to) {
        if (neighbour == MPI_PROC_NULL) return;
        must(clEnqueueReadBuffer(of.queue_, from, CL_FALSE,
                                 plane_bytes() * static_cast<std::size_t>(plane), plane_bytes(),
                                 to.data(), 0, nullptr, nullptr),
             "clEnqueueReadBuffer");
      };
      read(part.below(), 1, to_below);
      read(part.above(), part.planes, to_above);
      clFinish(of.queue_);
    }
    void exchange() {
      const int count = static_cast<int>(cells());
      MPI_Request all[4];
      MPI_Irecv(from_below.data(), count, MPI_DOUBLE, part.below(), kUp, MPI_COMM_WORLD, &all[0]);
      MPI_Irecv(from_above.data(), count, MPI_DOUBLE, part.above(), kDown, MPI_COMM_WORLD, &all[1]);
      MPI_Isend(to_below.data(), count, MPI_DOUBLE, part.below(), kDown, MPI_COMM_WORLD, &all[2]);
      MPI_Isend(to_above.data(), count, MPI_DOUBLE, part.above(), kUp, MPI_COMM_WORLD, &all[3]);
      MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
    }
    void write_halo(cl_mem to) {
      const std::size_t above = plane_bytes() * static_cast<std::size_t>(part.planes + 1);
      if (part.below() != MPI_PROC_NULL) {
        must(clEnqueueWriteBuffer(of.queue_, to, CL_FALSE, 0, plane_bytes(), from_below.data(), 0,
                                  nullptr, nullptr),
             "clEnqueueWriteBuffer");
      }
      if (part.above() != MPI_PROC_NULL) {
        must(clEnqueueWriteBuffer(of.queue_, to, CL_FALSE, above, plane_bytes(), from_above.data(),
                                  0, nullptr, nullptr),
             "clEnqueueWriteBuffer");
      }
      clFinish(of.queue_);  // the planes are received into again
    }

    ByOpencl& of;
    const Shape& shape;
    const Part& part;
    cl_mem now = nullptr, next = nullptr;
    std::vector<double> to_below, to_above, from_below, from_above;
  };

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
};

}  // namespace stencil
