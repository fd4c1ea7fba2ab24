// SPDX-License-Identifier: Apache-2.0
// How large a stress test is: smaller where a sanitizer makes each step many times as slow. For
// tests only.
#pragma once

namespace amasia::tasks {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSlow = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kIsSlow = true;
#else
inline constexpr bool kIsSlow = false;
#endif
#else
inline constexpr bool kIsSlow = false;
#endif

constexpr int sized(int many, int few) { return kIsSlow ? few : many; }

}  // namespace amasia::tasks
