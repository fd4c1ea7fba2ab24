// SPDX-License-Identifier: Apache-2.0
// The module on a planted driver, always; and on the GPUs of this machine, where there are any.
#include "amasia/cuda.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>

#include "modules/cuda/gpus.hpp"

namespace amasia::cuda {
namespace {

namespace planted = devices::cuda::planted;
using tasks::place;

// "no error": nothing is thrown.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return "no error";
}

class Planted : public testing::TestWithParam<unsigned> {
 protected:
  void with_library(const std::function<void(library&)>& body) {
    {
      tasks::runtime workers({.workers = GetParam()});
      library cuda(workers, Gpus::open(driver));
      workers.run([&] { body(cuda); });
    }
    EXPECT_EQ(gpus.allocated, 0);
    EXPECT_EQ(gpus.pinned, 0);
    EXPECT_EQ(gpus.modules, 0);
    EXPECT_EQ(gpus.contexts, 0);
  }
  static kernel load(library& cuda, place gpu, const char* name) {
    return cuda.load(gpu, "planted", name, code_kind::binary).get();
  }
  static void fill(place gpu, const tasks::buffer& to, std::vector<long> from) {
    tasks::async_copy(to.data(), gpu, from.data(), tasks::here(), to.bytes()).get();
  }
  static std::vector<long> content(const tasks::buffer& of) {
    std::vector<long> out(of.bytes() / sizeof(long));
    tasks::async_copy(out.data(), tasks::here(), of.data(), of.at(), of.bytes()).get();
    return out;
  }

  planted::Gpus gpus;
  const devices::cuda::Driver driver = planted::Gpus::driver();
};
INSTANTIATE_TEST_SUITE_P(Workers, Planted, testing::Values(1u, 3u));

TEST_P(Planted, EachGpuIsAPlace) {
  with_library([&](library& cuda) {
    ASSERT_EQ(cuda.gpus().size(), 2u);
    EXPECT_EQ(cuda.gpus()[1], tasks::find_place("gpu1"));
    EXPECT_EQ(cuda.gpus()[1].type(), tasks::place_type::gpu);
    EXPECT_EQ(cuda.gpus()[1].bytes(), 1u << 30);
    EXPECT_EQ(cuda.streams(cuda.gpus()[1]).size(), 8u);
    EXPECT_EQ(tasks::async_future_at(cuda.gpus()[1], [] { return tasks::here(); }).get(),
              cuda.gpus()[1]);
  });
}

TEST_P(Planted, KernelsAwaitCopiesAndTasks) {
  with_library([&](library& cuda) {
    const place gpu = cuda.gpus()[0], memory = tasks::here();
    const kernel add = load(cuda, gpu, "add");
    std::vector<long> from(1000), to(1000, 7), out(1000);
    tasks::buffer a(gpu, 8000), b(gpu, 8000);
    tasks::finish([&] {
      const auto filled = tasks::async_future([&] { std::iota(from.begin(), from.end(), 0L); });
      const auto there = tasks::async_copy_await(a.data(), gpu, from.data(), memory, 8000, filled);
      const auto other = tasks::async_copy(b.data(), gpu, to.data(), memory, 8000);
      const auto done = cuda.launch_await(
          work(add, {.items = {1000}}, b.as<long>(), a.as<long>(), 5L), there, other);
      tasks::async_copy_await(out.data(), memory, b.data(), gpu, 8000, done);
    });
    for (long n = 0; n < 1000; ++n) ASSERT_EQ(out[static_cast<std::size_t>(n)], n + 12);
  });
}

// Copies of all sizes around that of a piece, in all directions, also between GPUs.
TEST_P(Planted, CopiesOfAnySizeArrive) {
  with_library([&](library& cuda) {
    constexpr std::size_t kPiece = 4 << 20;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kPiece - 8, kPiece,
                                    kPiece + 8, 3 * kPiece + 16}) {
      std::vector<long> from(bytes / 8), out(bytes / 8);
      std::iota(from.begin(), from.end(), 3L);
      tasks::buffer a(cuda.gpus()[0], bytes), b(cuda.gpus()[1], bytes), c(cuda.gpus()[1], bytes);
      tasks::async_copy(a.data(), a.at(), from.data(), tasks::here(), bytes).get();
      tasks::async_copy(b.data(), b.at(), a.data(), a.at(), bytes).get();
      tasks::async_copy(c.data(), c.at(), b.data(), b.at(), bytes).get();
      tasks::async_copy(out.data(), tasks::here(), c.data(), c.at(), bytes).get();
      EXPECT_EQ(out, from) << bytes;
    }
    EXPECT_EQ(gpus.peer_copies, 5);
  });
}

// Nothing but the stream orders these; the driver takes streams in any order.
TEST_P(Planted, OneStreamKeepsItsOrder) {
  with_library([&](library& cuda) {
    constexpr std::size_t kWords = (6 << 20) / 8;  // two pieces
    const place gpu = cuda.gpus()[1], memory = tasks::here();
    const kernel add = load(cuda, gpu, "add");
    std::vector<std::vector<long>> from, out;
    std::vector<tasks::buffer> on_gpu;
    tasks::buffer zero(gpu, kWords * 8);
    fill(gpu, zero, std::vector<long>(kWords));
    const auto streams = cuda.streams(gpu);
    for (std::size_t n = 0; n < streams.size(); ++n) {
      from.emplace_back(kWords, static_cast<long>(n));
      out.emplace_back(kWords);
      on_gpu.emplace_back(gpu, kWords * 8);
    }
    tasks::finish([&] {
      for (std::size_t n = 0; n < streams.size(); ++n) {
        cuda.copy(streams[n], on_gpu[n].data(), gpu, from[n].data(), memory, kWords * 8);
        for (int round = 0; round < 10; ++round) {
          cuda.launch(work(add, {.items = {kWords}, .group = {256}}, on_gpu[n].as<long>(),
                           zero.as<long>(), 1L).in(streams[n]));
        }
        cuda.copy(streams[n], out[n].data(), memory, on_gpu[n].data(), gpu, kWords * 8);
      }
    });
    for (std::size_t n = 0; n < streams.size(); ++n) {
      EXPECT_EQ(out[n], std::vector<long>(kWords, static_cast<long>(n) + 10)) << n;
    }
  });
}

// The GPU does nothing until a task says so: hangs if any worker waited for it.
TEST_P(Planted, WorkersGoOnMeanwhile) {
  with_library([&](library& cuda) {
    const place gpu = cuda.gpus()[0];
    const kernel count = load(cuda, gpu, "count");
    tasks::buffer sum(gpu, 8);
    fill(gpu, sum, {0});
    std::vector<long> big((16 << 20) / 8);
    tasks::buffer large(gpu, big.size() * 8);
    gpus.hold(true);
    tasks::finish([&] {
      for (int n = 0; n < 50; ++n) cuda.launch(work(count, {.items = {3, 2}}, sum.as<long>()));
      tasks::async_copy(large.data(), gpu, big.data(), tasks::here(), large.bytes());
      std::atomic<int> ran{0};
      tasks::forasync(0, 1000, [&](std::ptrdiff_t) { ++ran; });
      EXPECT_EQ(ran, 1000);
      gpus.hold(false);
    });
    EXPECT_EQ(content(sum), std::vector<long>{300});
  });
}

TEST_P(Planted, MistakesAreErrorsThatSayWhat) {
  with_library([&](library& cuda) {
    const place gpu = cuda.gpus()[0], other = cuda.gpus()[1];
    const kernel add = load(cuda, gpu, "add");
    tasks::buffer a(gpu, 64);
    const auto launched = [&](work one) {
      return error_of([&] { cuda.launch(std::move(one)).get(); });
    };
    EXPECT_EQ(error_of([&] { load(cuda, gpu, "none"); }),
              "cuda: the program has no kernel 'none' for planted (is it extern \"C\"?)");
    EXPECT_EQ(error_of([&] { cuda.load(gpu, "other", "add", code_kind::binary).get(); }),
              "cuda: the program is not taken by planted: PLANTED_OTHER (by the test)");
    EXPECT_EQ(launched(work(add, {}, a.as<long>())),
              "cuda: the kernel 'add' takes 3 arguments, not 1");
    EXPECT_EQ(launched(work(add, {}, a.as<long>(), a.as<long>(), 1)),
              "cuda: parameter 2 of the kernel 'add' takes 8 bytes, not 4");
    EXPECT_NE(launched(work(add, {.items = {3}, .group = {2}}, a.as<long>(), a.as<long>(), 1L))
                  .find("must divide"),
              std::string::npos);
    EXPECT_EQ(launched(work(kernel(), {})), "cuda: a launch without a kernel");
    EXPECT_EQ(launched(work(add, {}, a.as<long>(), a.as<long>(), 1L).in(cuda.streams(other)[0])),
              "cuda: the kernel 'add' is on GPU 0, and the stream is of 'gpu1'");
    long host = 0;
    const auto copied = [&](void* to, place to_place, std::size_t bytes) {
      return error_of([&] { tasks::async_copy(to, to_place, &host, tasks::here(), bytes).get(); });
    };
    EXPECT_NE(copied(a.as<long>() + 7, gpu, 16).find("are not within memory of GPU 0"),
              std::string::npos);
    EXPECT_NE(copied(a.data(), other, 8).find("are not within memory of GPU 1"),
              std::string::npos);
    gpus.memory_left = 0;
    EXPECT_NE(error_of([&] { tasks::buffer(gpu, 1 << 20); }).find("PLANTED_FULL"),
              std::string::npos);
    EXPECT_EQ(error_of([&] { fill(gpu, a, std::vector<long>(8)); }), "no error");
  });
}

// A GPU that crashes calls nobody back; it is noticed all the same, and the other one goes on.
TEST_P(Planted, ACrashEndsAllFutures) {
  with_library([&](library& cuda) {
    const place gpu = cuda.gpus()[0], other = cuda.gpus()[1];
    const kernel crash = load(cuda, gpu, "crash"), count = load(cuda, gpu, "count");
    tasks::buffer sum(gpu, 8), well(other, 8);
    std::vector<future<void>> all;
    all.push_back(cuda.launch(work(crash, {}).in(cuda.streams(gpu)[2])));
    for (int n = 0; n < 20; ++n) {
      all.push_back(
          cuda.launch(work(count, {}, sum.as<long>()).in(cuda.streams(gpu)[2])));
    }
    const auto never = cuda.launch_await(work(count, {}, sum.as<long>()), all.back());
    for (const auto& one : all) {
      EXPECT_NE(error_of([&] { one.get(); }).find("PLANTED_CRASH"), std::string::npos);
    }
    EXPECT_EQ(error_of([&] { never.get(); }), error_of([&] { all.back().get(); }));
    EXPECT_EQ(error_of([&] { fill(other, well, {1}); }), "no error");
  });
}

// Random kernels and copies on parts of one buffer, against the host.
TEST_P(Planted, RandomOperationsGiveWhatTheHostHas) {
  with_library([&](library& cuda) {
    constexpr std::size_t kSize = 500;
    const place gpu = cuda.gpus()[0], memory = tasks::here();
    const kernel add = load(cuda, gpu, "add");
    std::mt19937 random(11);
    std::vector<long> model(kSize), piece(kSize);
    tasks::buffer buffer(gpu, kSize * 8), zero(gpu, kSize * 8);
    fill(gpu, zero, model);
    fill(gpu, buffer, model);
    for (int round = 0; round < 400; ++round) {
      const std::size_t first = random() % kSize, count = 1 + random() % (kSize - first);
      long* const at = buffer.as<long>() + first;
      if (random() % 3 == 0) {
        for (std::size_t n = 0; n < count; ++n) model[first + n] = static_cast<long>(random());
        tasks::async_copy(at, gpu, model.data() + first, memory, count * 8).get();
      } else if (random() % 2 == 0) {
        for (std::size_t n = 0; n < count; ++n) model[first + n] += round;
        cuda.launch(work(add, {.items = {count}}, at, zero.as<long>(), long{round})).get();
      } else {
        tasks::async_copy(piece.data(), memory, at, gpu, count * 8).get();
        ASSERT_TRUE(std::equal(piece.begin(), piece.begin() + static_cast<long>(count),
                               model.begin() + static_cast<long>(first)))
            << "round " << round;
      }
    }
  });
}

// On the GPUs of this machine.
TEST(Cuda, CompilesRunsAndCopiesOnEachGpu) {
  tasks::runtime workers({.workers = 2});
  std::unique_ptr<library> cuda;
  try {
    cuda = std::make_unique<library>(workers);
  } catch (const error& none) {
    GTEST_SKIP() << none.what();
  }
  if (const auto nvrtc = devices::cuda::load_compiler(); !nvrtc.ok()) {
    GTEST_SKIP() << nvrtc.error().message;
  }
  workers.run([&] {
    for (const place gpu : cuda->gpus()) {
      const kernel saxpy = cuda->load(gpu, R"(extern "C" __global__ void saxpy(
          const float* x, float* y, float a) {
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] += a * x[i];
      })", "saxpy").get();
      constexpr std::size_t kSize = 3 << 20;
      std::vector<float> x(kSize, 2), y(kSize, 1);
      const std::size_t bytes = kSize * sizeof(float);
      tasks::buffer on_x(gpu, bytes), on_y(gpu, bytes), again(gpu, bytes);
      const auto a = tasks::async_copy(on_x.data(), gpu, x.data(), tasks::here(), bytes);
      const auto b = tasks::async_copy(on_y.data(), gpu, y.data(), tasks::here(), bytes);
      const auto ran = cuda->launch_await(
          work(saxpy, {.items = {kSize}}, on_x.as<float>(), on_y.as<float>(), 3.0F), a, b);
      const auto moved = tasks::async_copy_await(again.data(), gpu, on_y.data(), gpu, bytes, ran);
      tasks::async_copy_await(y.data(), tasks::here(), again.data(), gpu, bytes, moved).get();
      EXPECT_EQ(std::count(y.begin(), y.end(), 7.0F), static_cast<long>(kSize));
      EXPECT_NE(error_of([&] { cuda->load(gpu, "nonsense here", "f").get(); }).find("nonsense"),
                std::string::npos);
    }
  });
}

}  // namespace
}  // namespace amasia::cuda
