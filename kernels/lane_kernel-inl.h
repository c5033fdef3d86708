// One key per lane: the scattered layouts, driven by a table of slots (one per probe).
//
// A probe of an absent key in a half-full filter fails after two bits on average, but a vector of
// keys needs more, and scalar code with early exit pays a mispredicted branch each time. So: test
// slot 0 for all keys of a chunk, keep the survivors (half of them), test slot 1 for those, and so
// on. Two touches a key in all, and no branch that depends on a key.

#if defined(TEPAL_KERNELS_LANE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_LANE_KERNEL_INL_H_
#undef TEPAL_KERNELS_LANE_KERNEL_INL_H_
#else
#define TEPAL_KERNELS_LANE_KERNEL_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/hwy_compat-inl.h"
#include "kernels/kernel_tables.h"
#include "kernels/layout_traits.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight lanes at most, which bounds the padding below.
using Lanes64 = hn::CappedTag<uint64_t, 8>;
using V64 = hn::Vec<Lanes64>;
constexpr size_t kMaxLanes64 = hn::MaxLanes(Lanes64());

// Keys that go through all stages together. In caches, 512, whose state of 17 KiB leaves room in
// L1. In memory, more, because each stage waits for its first lines, and the last stages have few
// keys: with 1024, absent keys took 0.8 to 0.93 times the time (64 MiB, standard, variable and
// partitioned, AVX3_DL, Emerald Rapids); 2048 would gain 3% more, and take twice the stack.
template <Prefetch kPrefetch>
constexpr size_t kLaneChunk = kPrefetch == Prefetch::kNone ? 512 : 1024;

// The keys that are still in the running; entries from `count` on are padding for whole vectors.
template <size_t kChunk>
struct LaneState {
  // The arrays lie a third of a page apart, modulo a page. Next to each other, a load from one
  // would look to the CPU like a store to another that is still under way.
  static constexpr size_t kSize = kChunk + kMaxLanes64 + 160;
  alignas(64) uint64_t g[kSize];  // g(t) of LAYOUTS.md; the low bits are the key's row in the chunk
  alignas(64) uint64_t step[kSize];  // to g(t + 1), in the same units
  alignas(64) uint64_t position[kSize];
  uint8_t passed[kChunk];  // for each vector of keys, which lanes passed the last test
  size_t count = 0;
};

constexpr uint64_t kRowMask = (uint64_t{1} << Scattered::kRowBits) - 1;
static_assert(kLaneChunk<Prefetch::kPaced> <= kRowMask + 1);

// The first step, h2 << kRowBits of LAYOUTS.md, from g(0) with or without a row number.
HWY_INLINE V64 SecondHash(Lanes64 d, V64 g) {
  const V64 row_mask = hn::Set(d, kRowMask);
  const V64 x = hn::AndNot(row_mask, g);
  const V64 y = Mul64(d, hn::Xor(x, hn::ShiftRight<32>(x)), Scattered::kRemixFactor);
  const V64 r = hn::Xor(y, hn::ShiftRight<32>(y));
  return hn::Or(hn::AndNot(row_mask, r), hn::Set(d, kRowMask + 1));
}

// u, the upper half of the first step.
HWY_INLINE V64 ActivationOf(Lanes64 d, V64 step, const Slot& slot) {
  return hn::ShiftRight<32>(Mul64(d, step, slot.unstep));
}

// Both below 2^33, so that a signed comparison will do, which AVX2 has.
HWY_INLINE hn::Mask<Lanes64> AtLeast(Lanes64 d, V64 u, uint64_t bound) {
  const hn::RebindToSigned<Lanes64> di;
  return hn::RebindMask(d,
                        hn::Gt(hn::BitCast(di, u), hn::Set(di, static_cast<int64_t>(bound) - 1)));
}

// Which lanes do not make the probe of `slot`, one bit a lane.
HWY_INLINE uint64_t InactiveLanes(Lanes64 d, V64 step, const Slot& slot) {
  if (slot.active_below == kAlwaysActive) return 0;
  return MaskToBits(d, AtLeast(d, ActivationOf(d, step, slot), slot.active_below));
}

// Moves g and step on to slot `index`: to the next t, or not at all.
class Stepper {
 public:
  HWY_INLINE Stepper(const SlotTable& table, size_t index)
      : advance_(index < table.num_slots && table.slots[index].advance ? ~uint64_t{0} : 0),
        grow_(table.steps_grow ? advance_ : 0) {}

  HWY_INLINE V64 Next(Lanes64 d, V64 g, V64 step) const {
    return hn::Add(g, hn::And(step, hn::Set(d, advance_)));
  }
  HWY_INLINE V64 NextStep(Lanes64 d, V64 step) const {
    static_assert(Scattered::kStepGrowth == 5);
    return hn::Add(step, hn::And(hn::ShiftLeft<2>(step), hn::Set(d, grow_)));
  }

 private:
  uint64_t advance_;
  uint64_t grow_;
};

// Where the probes of one slot fall.
template <bool kUseMasks>
class SlotPositions {
 public:
  HWY_INLINE SlotPositions(const SlotTable& table, const Slot& slot)
      : slot_(slot),
        ranges_(table.ranges + slot.first_range),
        mask_shift_(static_cast<int>(table.mask_shift)) {}

  HWY_INLINE V64 operator()(Lanes64 d, V64 g, V64 step) const {
    V64 reducer = hn::Set(d, ranges_[0].reducer);
    V64 offset = hn::Set(d, ranges_[0].offset);
    if (slot_.num_ranges == 1) return hn::Add(offset, Reduce(d, g, reducer));
    const V64 u = ActivationOf(d, step, slot_);
    for (size_t i = 1; i < slot_.num_ranges; ++i) {
      const auto later = AtLeast(d, u, ranges_[i].from_u);
      reducer = hn::IfThenElse(later, hn::Set(d, ranges_[i].reducer), reducer);
      offset = hn::IfThenElse(later, hn::Set(d, ranges_[i].offset), offset);
    }
    return hn::Add(offset, Reduce(d, g, reducer));
  }

 private:
  HWY_INLINE V64 Reduce(Lanes64 d, V64 g, V64 reducer) const {
    if constexpr (kUseMasks) {
      return hn::And(hn::ShiftRightSame(g, mask_shift_), reducer);
    } else {
      const V64 line = hn::ShiftRight<32>(MulLow32(d, hn::ShiftRight<32>(g), reducer));
      const V64 bit = hn::And(hn::ShiftRight<Scattered::kLineShift>(g),
                              hn::Set(d, uint64_t{Scattered::kLineBits - 1}));
      return hn::Add(hn::ShiftLeft<9>(line), bit);
    }
  }

  const Slot& slot_;
  const SlotRange* ranges_;
  int mask_shift_;
};

// Which of the positions are set in the filter, one bit a lane.
HWY_INLINE uint64_t TestPositions(Lanes64 d, const uint8_t* filter, V64 positions) {
  const V64 words = LittleEndian64(d, WordsAt(d, filter, hn::ShiftRight<6>(positions)));
  // Moves the bit to the top: left by 63 - position % 64.
  return TopBits(d, hn::Shl(words, hn::AndNot(positions, hn::Set(d, 63))));
}

// The positions of `count` keys, a vector at a time and in order, from position_of(i). For filters
// in memory, also asks for the cache lines of the keys kFarPrefetchKeys later. Asking for all lines
// of a stage first takes 1.15 times as long where no key matches and 1.25 times where all do
// (standard, 64 MiB, Zen 3), since memory idles while they are tested.
template <Prefetch kPrefetch, class PositionOf>
class PositionQueue {
 public:
  HWY_INLINE PositionQueue(const PositionOf& position_of, const uint8_t* filter, size_t count,
                           uint64_t* positions)
      : position_of_(position_of), filter_(filter), count_(count), positions_(positions) {
    if constexpr (kPrefetch == Prefetch::kNone) return;
    for (size_t i = 0; i < HWY_MIN(kFarPrefetchKeys, count); i += hn::Lanes(Lanes64())) Request(i);
  }

  HWY_INLINE V64 Take(size_t i) const {
    if constexpr (kPrefetch == Prefetch::kNone) return position_of_(i);
    if (i + kFarPrefetchKeys < count_) Request(i + kFarPrefetchKeys);
    return hn::Load(Lanes64(), positions_ + i);
  }

 private:
  HWY_INLINE void Request(size_t i) const {
    const Lanes64 d;
    hn::Store(position_of_(i), d, positions_ + i);
    for (size_t j = i; j < i + hn::Lanes(d); ++j) {
      RequestLine<kPrefetch>(filter_ + positions_[j] / 8);
    }
  }

  const PositionOf& position_of_;
  const uint8_t* filter_;
  size_t count_;
  uint64_t* positions_;
};

// Calls visit(i, lanes_in_use) for each vector of `count` keys. All but the last are full, which
// saves the compiler the question in the loop.
template <class Visit>
HWY_INLINE void ForEachVector(size_t count, const Visit& visit) {
  const size_t lanes = hn::Lanes(Lanes64());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) visit(i, (uint64_t{1} << lanes) - 1);
  if (i != count) visit(i, (uint64_t{1} << (count - i)) - 1);
}

// Vectors of hashes from an array that ends at `count`.
class HashReader {
 public:
  HashReader(const uint64_t* hashes, size_t count)
      : hashes_(hashes), tail_begin_(count / hn::Lanes(Lanes64()) * hn::Lanes(Lanes64())) {
    memcpy(tail_, hashes + tail_begin_, (count - tail_begin_) * sizeof(uint64_t));
  }
  HWY_INLINE V64 operator()(Lanes64 d, size_t i) const {
    return hn::LoadU(d, i == tail_begin_ ? tail_ : hashes_ + i);
  }

 private:
  const uint64_t* hashes_;
  size_t tail_begin_;
  uint64_t tail_[kMaxLanes64] = {};
};

// Gives each key its first step, and moves on as `stepper` says.
template <size_t kChunk>
HWY_INLINE void StartSteps(const Stepper& stepper, LaneState<kChunk>& state) {
  const Lanes64 d;
  for (size_t i = 0; i < state.count; i += hn::Lanes(d)) {
    const V64 g = hn::Load(d, state.g + i);
    const V64 step = SecondHash(d, g);
    hn::Store(stepper.Next(d, g, step), d, state.g + i);
    hn::Store(stepper.NextStep(d, step), d, state.step + i);
  }
}

// Notes which of `count` keys pass the test of a slot. inactive(i) says which lanes of the vector
// at i need not.
//
// To keep the survivors is the work of another loop. If this one stored them, too, where would
// depend on loads from the filter, and it seems that CPUs that have seen such a store meet a later
// load make all loads wait: 8.7 ns a key in some processes and 4.8 in others, now 4.4 (standard,
// all keys match, AVX3_DL, Emerald Rapids, 16 KiB).
template <class Queue, class Inactive, size_t kChunk>
HWY_INLINE void TestSlot(const uint8_t* filter, const Queue& queue, size_t count,
                         const Inactive& inactive, LaneState<kChunk>& state) {
  const Lanes64 d;
  ForEachVector(count, [&](size_t i, uint64_t in_use) TEPAL_LAMBDA {
    const uint64_t passed = TestPositions(d, filter, queue.Take(i)) | inactive(i);
    state.passed[i / hn::Lanes(d)] = static_cast<uint8_t>(passed & in_use);
  });
}

// Calls keep(i, compressor, kept) for each vector of `count` keys, to store those that passed from
// `kept` on.
template <class Keep, size_t kChunk>
HWY_INLINE void KeepSurvivors(size_t count, const Keep& keep, LaneState<kChunk>& state) {
  const Lanes64 d;
  size_t kept = 0;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const Compressor<Lanes64> compressor(d, state.passed[i / hn::Lanes(d)]);
    keep(i, compressor, kept);
    kept += compressor.count();
  }
  state.count = kept;
}

// Tests the first slot and keeps the survivors, ready for the second one. Only survivors need their
// second hash, so this stage works without it, unless the slot depends on u.
template <bool kUseMasks, Prefetch kPrefetch, size_t kChunk>
HWY_INLINE void RunFirstStage(const SlotTable& table, const uint8_t* filter, const uint64_t* hashes,
                              size_t count, LaneState<kChunk>& state) {
  const Lanes64 d;
  const Slot& slot = table.slots[0];
  const SlotPositions<kUseMasks> positions(table, slot);
  const bool needs_h2 = slot.num_ranges > 1 || slot.active_below != kAlwaysActive;
  const HashReader read(hashes, count);
  const auto h2_at = [&](size_t i) TEPAL_LAMBDA {
    return needs_h2 ? SecondHash(d, read(d, i)) : hn::Zero(d);
  };
  const auto position_at = [&](size_t i)
                               TEPAL_LAMBDA { return positions(d, read(d, i), h2_at(i)); };
  const auto inactive = [&](size_t i) TEPAL_LAMBDA {
    return needs_h2 ? InactiveLanes(d, h2_at(i), slot) : 0;
  };
  const PositionQueue<kPrefetch, decltype(position_at)> queue(position_at, filter, count,
                                                              state.position);
  TestSlot(filter, queue, count, inactive, state);
  V64 row = hn::Iota(d, 0);
  KeepSurvivors(
      count,
      [&](size_t i, const Compressor<Lanes64>& compressor, size_t kept) TEPAL_LAMBDA {
        const V64 g = hn::AndNot(hn::Set(d, kRowMask), read(d, i));
        compressor.Store(hn::Or(g, row), state.g + kept);
        row = hn::Add(row, hn::Set(d, hn::Lanes(d)));
      },
      state);
  StartSteps(Stepper(table, 1), state);
}

// Tests a further slot for the keys that are left, and keeps the survivors, ready for the next one.
// kAllActive: every key makes the probe.
template <bool kUseMasks, Prefetch kPrefetch, bool kAllActive, size_t kChunk>
HWY_INLINE void RunStage(const SlotTable& table, size_t index, const uint8_t* filter,
                         LaneState<kChunk>& state) {
  const Lanes64 d;
  const Slot& slot = table.slots[index];
  const SlotPositions<kUseMasks> positions(table, slot);
  const auto g_at = [&](size_t i) TEPAL_LAMBDA { return hn::Load(d, state.g + i); };
  const auto step_at = [&](size_t i) TEPAL_LAMBDA { return hn::Load(d, state.step + i); };
  const auto position_at = [&](size_t i) TEPAL_LAMBDA { return positions(d, g_at(i), step_at(i)); };
  const auto inactive = [&](size_t i) TEPAL_LAMBDA {
    return kAllActive ? 0 : InactiveLanes(d, step_at(i), slot);
  };
  const PositionQueue<kPrefetch, decltype(position_at)> queue(position_at, filter, state.count,
                                                              state.position);
  TestSlot(filter, queue, state.count, inactive, state);
  const Stepper stepper(table, index + 1);
  KeepSurvivors(
      state.count,
      [&](size_t i, const Compressor<Lanes64>& compressor, size_t kept) TEPAL_LAMBDA {
        const V64 step = step_at(i);
        compressor.Store(stepper.Next(d, g_at(i), step), state.g + kept);
        compressor.Store(stepper.NextStep(d, step), state.step + kept);
      },
      state);
}

// One bit for each key of a chunk: is it among the survivors?
template <size_t kChunk>
HWY_INLINE void WriteSurvivors(const LaneState<kChunk>& state, size_t chunk_keys, uint8_t* bitmap) {
  uint8_t survived[kChunk] = {};
  for (size_t i = 0; i < state.count; ++i) survived[state.g[i] & kRowMask] = 1;
  for (size_t i = 0; i < chunk_keys; i += 8) bitmap[i / 8] = JoinFlags(survived + i);
}

template <bool kUseMasks, Prefetch kPrefetch>
HWY_INLINE size_t ProbeChunk(const SlotTable& table, const uint8_t* filter, const uint64_t* hashes,
                             size_t count, uint8_t* bitmap) {
  LaneState<kLaneChunk<kPrefetch>> state;
  if (kPrefetch != Prefetch::kNone && table.prefetch_first) {
    RunFirstStage<kUseMasks, kPrefetch>(table, filter, hashes, count, state);
  } else {
    RunFirstStage<kUseMasks, Prefetch::kNone>(table, filter, hashes, count, state);
  }
  for (size_t i = 1; i < table.num_slots && state.count != 0; ++i) {
    if (table.slots[i].active_below == kAlwaysActive) {
      RunStage<kUseMasks, kPrefetch, true>(table, i, filter, state);
    } else {
      RunStage<kUseMasks, kPrefetch, false>(table, i, filter, state);
    }
  }
  WriteSurvivors(state, count, bitmap);
  return state.count;
}

// Writes the positions of one slot for all keys that make the probe; returns how many.
template <bool kUseMasks, Prefetch kPrefetch, size_t kChunk>
HWY_INLINE size_t InsertPositions(const SlotTable& table, size_t index, const uint8_t* filter,
                                  LaneState<kChunk>& state) {
  const Lanes64 d;
  const Slot& slot = table.slots[index];
  const SlotPositions<kUseMasks> positions(table, slot);
  const Stepper stepper(table, index);
  const auto next_position = [&](size_t i) TEPAL_LAMBDA {
    const V64 step = hn::Load(d, state.step + i);
    const V64 g = stepper.Next(d, hn::Load(d, state.g + i), step);
    const V64 next_step = stepper.NextStep(d, step);
    hn::Store(g, d, state.g + i);
    hn::Store(next_step, d, state.step + i);
    return positions(d, g, next_step);
  };
  size_t count = 0;
  if (slot.active_below == kAlwaysActive) {
    count = state.count;
    for (size_t i = 0; i < count; i += hn::Lanes(d)) {
      hn::Store(next_position(i), d, state.position + i);
    }
  } else {
    ForEachVector(state.count, [&](size_t i, uint64_t in_use) TEPAL_LAMBDA {
      const V64 position = next_position(i);
      const uint64_t inactive = InactiveLanes(d, hn::Load(d, state.step + i), slot);
      const Compressor<Lanes64> compressor(d, ~inactive & in_use);
      compressor.Store(position, state.position + count);
      count += compressor.count();
    });
  }
  if constexpr (kPrefetch != Prefetch::kNone) {
    for (size_t i = 0; i < count; ++i) RequestLine<kPrefetch>(filter + state.position[i] / 8);
  }
  return count;
}

template <bool kUseMasks, Prefetch kPrefetch>
HWY_INLINE void InsertChunk(const SlotTable& table, const uint64_t* hashes, size_t num_keys,
                            uint8_t* filter) {
  LaneState<kLaneChunk<kPrefetch>> state;
  memcpy(state.g, hashes, num_keys * sizeof(uint64_t));
  memset(state.g + num_keys, 0, kMaxLanes64 * sizeof(uint64_t));
  state.count = num_keys;
  StartSteps(Stepper(table, 0), state);
  for (size_t i = 0; i < table.num_slots; ++i) {
    const size_t count = InsertPositions<kUseMasks, kPrefetch>(table, i, filter, state);
    for (size_t j = 0; j < count; ++j) {
      uint8_t& byte = filter[state.position[j] / 8];
      byte = static_cast<uint8_t>(byte | 1u << (state.position[j] % 8));
    }
  }
}

// Calls run(begin, count) for each chunk of keys.
template <size_t kChunk, class Run>
HWY_INLINE void ForEachLaneChunk(size_t num_keys, const Run& run) {
  for (size_t begin = 0; begin < num_keys; begin += kChunk) {
    run(begin, HWY_MIN(kChunk, num_keys - begin));
  }
}

template <bool kUseMasks, Prefetch kPrefetch>
size_t ProbeLanes(const SlotTable& table, const uint8_t* filter, const uint64_t* hashes,
                  size_t num_keys, uint8_t* bitmap) {
  size_t matches = 0;
  ForEachLaneChunk<kLaneChunk<kPrefetch>>(num_keys, [&](size_t begin, size_t count) TEPAL_LAMBDA {
    matches +=
        ProbeChunk<kUseMasks, kPrefetch>(table, filter, hashes + begin, count, bitmap + begin / 8);
  });
  return matches;
}

template <bool kUseMasks, Prefetch kPrefetch>
void InsertLanes(const SlotTable& table, const uint64_t* hashes, size_t num_keys, uint8_t* filter) {
  ForEachLaneChunk<kLaneChunk<kPrefetch>>(num_keys, [&](size_t begin, size_t count) TEPAL_LAMBDA {
    InsertChunk<kUseMasks, kPrefetch>(table, hashes + begin, count, filter);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_LANE_KERNEL_INL_H_
