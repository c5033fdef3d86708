#include "tepal/targets.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "dispatch/active_kernels.h"
#include "dispatch/no_memory.h"
#include "hwy/targets.h"

namespace tepal {
namespace {

// One bit of `mask` at a time, best target first (Highway gives better targets lower bits).
template <class Visit>
void ForEachTarget(int64_t mask, const Visit& visit) {
  for (uint64_t rest = static_cast<uint64_t>(mask); rest != 0; rest &= rest - 1) {
    visit(static_cast<int64_t>(rest & (~rest + 1)));
  }
}

// The worst compiled target, which the compiler's flags allow without a test of the CPU: SCALAR or
// EMU128, or SSE2 with newer versions of Highway, which then leave those two out.
int64_t FallbackTarget() {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(CompiledTargetMask())));
}

// The kernel sets that this CPU can run, best first. Never empty: the fallback runs everywhere,
// even if the program told Highway to disable it.
class KernelSets {
 public:
  KernelSets() {
    const int64_t runnable = HWY_SUPPORTED_TARGETS | FallbackTarget();
    ForEachTarget(CompiledTargetMask() & runnable, [this](int64_t target) {
      sets_[count_++] = {target,
                         &HashKernelsFor(target),
                         &BlockKernelsFor(target),
                         &LaneKernelsFor(target),
                         &ResultKernelsFor(target),
                         &SetKernelsFor(target)};
    });
  }
  std::span<const KernelSet> all() const { return {sets_.data(), count_}; }

 private:
  std::array<KernelSet, 64> sets_;
  size_t count_ = 0;
};

std::span<const KernelSet> AllKernelSets() {
  static const KernelSets kSets;
  return kSets.all();
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [&](char x, char y) { return lower(x) == lower(y); });
}

std::string Join(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

Result<const KernelSet*> FindKernelSet(std::string_view name) {
  if (name.empty() || EqualsIgnoringCase(name, "auto")) return &AllKernelSets().front();
  for (const KernelSet& set : AllKernelSets()) {
    if (EqualsIgnoringCase(name, hwy::TargetName(set.target))) return &set;
  }
  for (const std::string& compiled : CompiledTargets()) {
    if (EqualsIgnoringCase(name, compiled)) {
      return Status::Unsupported(
          "target " + compiled +
          " is compiled in, but this CPU cannot run it; available: " + Join(AvailableTargets()));
    }
  }
  return Status::InvalidArgument("unknown target \"" + std::string(name) + "\"; available: " +
                                 Join(AvailableTargets()) + ", or \"auto\" for the best of them");
}

// What TEPAL_TARGET asks for, read once.
const Result<const KernelSet*>& EnvironmentChoice() {
  static const Result<const KernelSet*> kChoice = [] {
    const char* name = std::getenv("TEPAL_TARGET");
    return FindKernelSet(name == nullptr ? "" : name);
  }();
  return kChoice;
}

// The set in force; null until first used.
std::atomic<const KernelSet*> g_active{nullptr};

// What runs if nothing was forced: a wrong TEPAL_TARGET is reported by CheckEnvironment(), not
// here.
const KernelSet* DefaultKernels() {
  const Result<const KernelSet*>& choice = EnvironmentChoice();
  return choice.ok() ? *choice : &AllKernelSets().front();
}

}  // namespace

const KernelSet& ActiveKernels() {
  const KernelSet* active = g_active.load(std::memory_order_acquire);
  if (active == nullptr) {
    // Several threads may come here at once; they store the same pointer, and never over a forced
    // one.
    const KernelSet* chosen = DefaultKernels();
    if (g_active.compare_exchange_strong(active, chosen)) active = chosen;
  }
  return *active;
}

std::string ActiveTarget() { return hwy::TargetName(ActiveKernels().target); }

std::vector<std::string> CompiledTargets() {
  std::vector<std::string> names;
  ForEachTarget(CompiledTargetMask(),
                [&](int64_t target) { names.emplace_back(hwy::TargetName(target)); });
  return names;
}

std::vector<std::string> AvailableTargets() {
  std::vector<std::string> names;
  for (const KernelSet& set : AllKernelSets()) names.emplace_back(hwy::TargetName(set.target));
  return names;
}

Status ForceTarget(std::string_view name) try {
  const Result<const KernelSet*> set = FindKernelSet(name);
  if (!set.ok()) return set.status();
  g_active.store(*set, std::memory_order_release);
  return Status::Ok();
} catch (const std::exception&) {
  return NoMemory();
}

Status CheckEnvironment() try {
  const Result<const KernelSet*>& choice = EnvironmentChoice();
  if (choice.ok()) return Status::Ok();
  return {choice.status().code(), "TEPAL_TARGET: " + choice.status().message()};
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal
