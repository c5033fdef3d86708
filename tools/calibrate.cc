#include "tools/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "dispatch/capabilities.h"
#include "dispatch/cpu_caches.h"
#include "dispatch/filter_access.h"
#include "tepal/targets.h"

namespace tepal::tools {
namespace {

// Short samples, and many: clock rates change within milliseconds.
constexpr double kSampleNs = 2.5e5;
constexpr int kSamplesPerVisit = 8;
constexpr int kMinPasses = 3;

// Two sizes per doubling. None is a power of two, where some layouts take a short cut.
constexpr uint64_t kSmallestBytes = uint64_t{12} << 10;

std::vector<uint64_t> FilterSizes(uint64_t max_filter_bytes) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = kSmallestBytes; bytes <= max_filter_bytes; bytes *= 2) {
    sizes.push_back(bytes);
    if (const uint64_t between = bytes / 12 * 17; between <= max_filter_bytes) {
      sizes.push_back(between);
    }
  }
  return sizes;
}

// A filter of 37 MB that had just been written took 5.9 ns a key, 4.8 after 20 ms of probes,
// and 4.1 to 4.4 after 100 (split512, Emerald Rapids): a large L3 learns slowly what to keep.
// Larger filters stay out of it.
constexpr double kSettleNsPerByte = 2;
constexpr uint64_t kMaxSettleBytes = uint64_t{64} << 20;

// ---- What is measured

using Fill = ProbeArena::Fill;

struct CurveSpec {
  Layout layout;
  Operation operation;
  uint32_t num_probes;
  Fill fill;

  double bits_per_key_touched() const {
    const double k = num_probes;
    if (operation == Operation::kInsert || IsBlocked(layout) || fill == Fill::kFull) return k;
    return fill == Fill::kEmpty ? 1 : 2 - std::exp2(1 - k);  // 1 + 1/2 + 1/4 + ...
  }
};

// In the order of MachineProfile::curves. k of line512: one vector of AVX2, and two.
std::vector<CurveSpec> CurveSpecs() {
  std::vector<CurveSpec> specs;
  const auto probe = [&](Layout layout, uint32_t k, Fill fill = Fill::kHalf) {
    specs.push_back({layout, Operation::kProbe, k, fill});
  };
  const auto insert = [&](Layout layout, uint32_t k) {
    specs.push_back({layout, Operation::kInsert, k, Fill::kFull});
  };
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    // Absent keys look at the first part of a partitioned filter only: one part is all of it. But
    // the one probe of `variable` would have all blocks to choose from, which is slower than the
    // first one of many.
    probe(layout, layout == Layout::kPartitioned ? 1 : 8, Fill::kEmpty);
    // Half full, a partitioned filter would hardly be looked at beyond its first quarter.
    if (layout != Layout::kPartitioned) probe(layout, 8);
    for (const uint32_t k : {4u, 8u, 16u}) probe(layout, k, Fill::kFull);
    for (const uint32_t k : {4u, 16u}) insert(layout, k);
  }
  for (const uint32_t k : {4u, 6u}) probe(Layout::kRegister, k);
  insert(Layout::kRegister, 4);
  for (const Layout layout : {Layout::kSplit256, Layout::kSplit512}) {
    probe(layout, 8);
    insert(layout, 8);
  }
  for (const uint32_t k : {4u, 8u, 9u, 16u}) probe(Layout::kLine512, k);
  for (const uint32_t k : {8u, 16u}) insert(Layout::kLine512, k);
  return specs;
}

// A smaller filter is never slower than a larger one, so if it seems to be, that was noise.
void LevelOut(std::vector<double>* ns_by_size) {
  std::partial_sum(ns_by_size->rbegin(), ns_by_size->rend(), ns_by_size->rbegin(),
                   [](double a, double b) { return std::min(a, b); });
}

struct Cell {
  uint64_t filter_bytes;
  Fill fill;
  BestTime best = {};
  std::function<void()> run_batch = {};
};

class Measurement {
 public:
  static Result<std::unique_ptr<Measurement>> Make(uint64_t max_filter_bytes) {
    Result<ProbeArena> arena = ProbeArena::Make(max_filter_bytes);
    if (!arena.ok()) return arena.status();
    std::unique_ptr<Measurement> measurement(new Measurement(std::move(*arena)));
    measurement->sizes_ = FilterSizes(max_filter_bytes);
    for (const uint64_t bytes : measurement->sizes_) {
      for (const CurveSpec& spec : measurement->specs_) {
        if (Status status = measurement->AddCell(spec, bytes); !status.ok()) return status;
      }
    }
    measurement->arena_.Refill();
    return measurement;
  }

  // One visit to each cell, size by size and fill by fill, so that the caches hold what is measured
  // next.
  void Pass(const std::function<void(double)>& progress) {
    size_t visited = 0;
    for (size_t first = 0; first < cells_.size(); first += specs_.size()) {
      for (const Fill fill : ProbeArena::kFills) {
        SettlePart(cells_[first].filter_bytes, fill);
        for (size_t i = first; i < first + specs_.size(); ++i) {
          if (cells_[i].fill != fill) continue;
          cells_[i].best.Sample(cells_[i].run_batch);
          progress(static_cast<double>(++visited) / static_cast<double>(cells_.size()));
        }
      }
    }
  }

  MachineProfile Profile() const {
    MachineProfile profile;
    profile.filter_bytes = sizes_;
    for (size_t s = 0; s < specs_.size(); ++s) {
      TimeCurve curve{.layout = specs_[s].layout,
                      .operation = specs_[s].operation,
                      .bits_per_key_touched = specs_[s].bits_per_key_touched()};
      for (size_t i = s; i < cells_.size(); i += specs_.size()) {
        curve.ns.push_back(std::round(cells_[i].best.ns_per_key * 1000) / 1000);
      }
      LevelOut(&curve.ns);
      profile.curves.push_back(std::move(curve));
    }
    return profile;
  }

 private:
  explicit Measurement(ProbeArena arena)
      : arena_(std::move(arena)),
        specs_(CurveSpecs()),
        hashes_(1),
        bitmap_(HashStream::kBatchKeys / 8) {}

  Status AddCell(const CurveSpec& spec, uint64_t bytes) {
    const Geometry geometry{
        .layout = spec.layout, .num_bits = bytes * 8, .num_probes = spec.num_probes};
    Cell cell{.filter_bytes = bytes, .fill = spec.fill};
    if (spec.operation == Operation::kInsert) {
      Result<Filter> filter = arena_.ToInsert(geometry);
      if (!filter.ok()) return filter.status();
      auto shared = std::make_shared<Filter>(std::move(*filter));
      cell.run_batch = [this, shared, bytes] { shared->InsertHashes(hashes_.Next(bytes)); };
    } else {
      Result<FilterView> view = arena_.View(spec.fill, geometry);
      if (!view.ok()) return view.status();
      cell.run_batch = [this, view = *view, bytes] {
        view.ProbeHashes(hashes_.Next(bytes), bitmap_.data());
      };
    }
    cells_.push_back(std::move(cell));
    return Status::Ok();
  }

  // What all filters of this size and fill share.
  void SettlePart(uint64_t bytes, Fill fill) {
    const Geometry lines{.layout = Layout::kSplit512, .num_bits = bytes * 8, .num_probes = 8};
    Settle(arena_.View(fill, lines).value(), hashes_);
  }

  ProbeArena arena_;
  std::vector<CurveSpec> specs_;
  std::vector<uint64_t> sizes_;
  std::vector<Cell> cells_;  // all curves of the first size, of the second, ...
  HashStream hashes_;
  std::vector<uint8_t> bitmap_;
};

// ---- This machine

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "unknown CPU";
  std::string details;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("cpu family")) details = ", family " + value;
    if (line.starts_with("model\t")) details += " model " + value;
  }
  return name + details;
}

void DescribeMachine(MachineProfile* profile) {
  profile->cpu = CpuName();
  profile->target = ActiveTarget();
  profile->l1_bytes = L1CacheBytes();
  profile->l2_bytes = L2CacheBytes();
  profile->l3_bytes = L3CacheBytes();
}

// CPU time of the process: what others do on the machine does not count directly.
double CpuNs() {
  return static_cast<double>(std::clock()) * (1e9 / static_cast<double>(CLOCKS_PER_SEC));
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double NsPerKey(const std::function<void()>& run_batch, size_t batches) {
  const double start = CpuNs();
  for (size_t i = 0; i < batches; ++i) run_batch();
  return (CpuNs() - start) / static_cast<double>(batches * HashStream::kBatchKeys);
}

}  // namespace

// ---- Samples

void BestTime::Sample(const std::function<void()>& run_batch) {
  constexpr size_t kPilotBatches = 4;
  const double pilot_ns = std::max(NsPerKey(run_batch, kPilotBatches), 0.1);
  const double batches = kSampleNs / (pilot_ns * HashStream::kBatchKeys);
  const size_t num_batches = std::max(kPilotBatches, static_cast<size_t>(batches));
  for (int i = 0; i < kSamplesPerVisit; ++i) {
    ns_per_key = std::min(ns_per_key, NsPerKey(run_batch, num_batches));
  }
}

void Settle(const FilterView& filter, HashStream& hashes) {
  const uint64_t bytes = filter.geometry().num_bytes();
  const double end =
      CpuNs() + kSettleNsPerByte * static_cast<double>(std::min(bytes, kMaxSettleBytes));
  volatile size_t matches = 0;
  while (CpuNs() < end) matches = filter.CountHashes(hashes.Next(bytes));
  static_cast<void>(matches);
}

HashStream::HashStream(uint64_t seed) : hashes_(size_t{1} << 22) {
  std::mt19937_64 random(seed);
  for (uint64_t& hash : hashes_) hash = random();
}

HashStream::HashStream(std::vector<uint64_t> hashes) : hashes_(std::move(hashes)) {}

std::span<const uint64_t> HashStream::Next(uint64_t filter_bytes) {
  const auto wanted = std::max<uint64_t>(filter_bytes / 16, uint64_t{1} << 16);
  if (next_ + kBatchKeys > std::min<uint64_t>(wanted, hashes_.size())) next_ = 0;
  next_ += kBatchKeys;
  return {hashes_.data() + next_ - kBatchKeys, kBatchKeys};
}

// ---- ProbeArena

Result<Filter> FilterIn(std::span<uint8_t> memory, const Geometry& geometry) {
  if (geometry.num_bytes() > memory.size()) {
    return Status::InvalidArgument("the filter is larger than its memory");
  }
  MemoryOptions options;
  options.allocator.context = memory.data();
  options.allocator.allocate = [](size_t, size_t, void* context) { return context; };
  options.allocator.deallocate = [](void*, size_t, void*) {};
  return Filter::Create(geometry, options);
}

ProbeArena::ProbeArena(std::vector<Filter> memory) : memory_(std::move(memory)) {}

Result<ProbeArena> ProbeArena::Make(uint64_t max_filter_bytes) {
  // Filters get aligned memory on huge pages.
  const Geometry geometry{
      .layout = Layout::kSplit512, .num_bits = (max_filter_bytes + 63) / 64 * 512, .num_probes = 8};
  std::vector<Filter> memory;
  for (size_t i = 0; i < std::size(kFills); ++i) {
    Result<Filter> filter = Filter::Create(geometry);
    if (!filter.ok()) return filter.status();
    memory.push_back(std::move(*filter));
  }
  ProbeArena arena(std::move(memory));
  arena.Refill();
  return arena;
}

Result<FilterView> ProbeArena::View(Fill fill, const Geometry& geometry) const {
  return FilterView::Over(geometry, memory_[Index(fill)].bytes().first(geometry.num_bytes()));
}

Result<Filter> ProbeArena::ToInsert(const Geometry& geometry) {
  return FilterIn(Bytes(Fill::kFull), geometry);
}

void ProbeArena::Refill() {
  // Written, because all pages that were only read may be one and the same.
  std::ranges::fill(Bytes(Fill::kEmpty), uint8_t{0});
  std::ranges::fill(Bytes(Fill::kFull), uint8_t{0xFF});
  std::mt19937_64 random(2);
  const std::span<uint8_t> half = Bytes(Fill::kHalf);
  for (size_t i = 0; i < half.size(); i += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(&half[i], &bits, sizeof(bits));
  }
}

std::span<uint8_t> ProbeArena::Bytes(Fill fill) {
  return FilterAccess::MutableBytes(memory_[Index(fill)]);
}

// ---- Calibrate

Result<MachineProfile> Calibrate(const CalibrateOptions& options) {
  if (!(options.seconds > 0) || options.max_filter_bytes < kSmallestBytes ||
      options.max_filter_bytes > kMaxBits / 8) {
    return Status::InvalidArgument(
        "calibrate: seconds must be positive, and max_filter_bytes between " +
        std::to_string(kSmallestBytes) + " and " + std::to_string(kMaxBits / 8));
  }
  const double start = WallSeconds();
  const auto share_of_time = [&] { return (WallSeconds() - start) / options.seconds; };
  double reported = 0;
  const auto report = [&](double share) {
    if (!options.progress || WallSeconds() - reported < 0.1) return;
    reported = WallSeconds();
    options.progress(std::min(share, 1.0));
  };
  report(0);
  Result<std::unique_ptr<Measurement>> made = Measurement::Make(options.max_filter_bytes);
  if (!made.ok()) return made.status();
  Measurement& measurement = **made;
  for (int pass = 0; pass < kMinPasses || share_of_time() < 1; ++pass) {
    // Slow machines need more than the time given: then the passes tell how far it is.
    measurement.Pass([&](double share) {
      report(std::min(share_of_time(), std::max((pass + share) / kMinPasses, 0.0)));
    });
  }
  MachineProfile profile = measurement.Profile();
  DescribeMachine(&profile);
  if (Status status = profile.Validate(); !status.ok()) return status;
  return profile;
}

}  // namespace tepal::tools
