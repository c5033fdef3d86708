// Time between two requests for memory, for limit kernels.
#ifndef TEPAL_BENCH_PACE_H_
#define TEPAL_BENCH_PACE_H_

namespace tepal::bench {

// Instructions that do nothing: in memory, requests that do not come in bursts are served better
// (PaceRequests() in kernels/hwy_compat-inl.h). The limit kernel of split256 at 64 and 512 MiB
// without them: 3.5 and 5.1 ns a key, with 24: 2.8 and 4.5, with 36: 2.7 and 4.0, with 48: 3.1 and
// 4.1 (Zen 4).
template <int kInstructions>
inline __attribute__((always_inline)) void Pace() {
#if defined(__x86_64__)
  unsigned zero;
  asm volatile(".rept %c1\n\txor %0, %0\n\t.endr" : "=r"(zero) : "i"(kInstructions) : "cc");
#endif
}

}  // namespace tepal::bench

#endif  // TEPAL_BENCH_PACE_H_
