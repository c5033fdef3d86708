#include "tools/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <utility>

#if defined(__unix__)
#include <unistd.h>
#endif

#include "dispatch/capabilities.h"
#include "dispatch/filter_access.h"
#include "tepal/targets.h"

namespace tepal::tools {
namespace {

constexpr double kSampleNs = 1e6;
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

// Filters up to this size are warm when they are measured.
constexpr uint64_t kWarmBytes = uint64_t{64} << 20;

// ---- What is measured

struct CurveSpec {
  Layout layout;
  Operation operation;
  uint32_t num_probes;
  bool present;  // all probes find their key

  double bits_per_key_touched() const {
    const double k = num_probes;
    const bool stops_early = operation == Operation::kProbe && !present && !IsBlocked(layout);
    return stops_early ? 2 - std::exp2(1 - k) : k;  // 1 + 1/2 + 1/4 + ...
  }
};

// In the order of MachineProfile::curves. k of line512: one vector of AVX2, and two.
std::vector<CurveSpec> CurveSpecs() {
  std::vector<CurveSpec> specs;
  const auto probe = [&](Layout layout, uint32_t k, bool present = false) {
    specs.push_back({layout, Operation::kProbe, k, present});
  };
  const auto insert = [&](Layout layout, uint32_t k) {
    specs.push_back({layout, Operation::kInsert, k, true});
  };
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    // The one probe of `variable` with k = 1 would have all blocks to choose from, which is slower
    // than the first one of many.
    probe(layout, layout == Layout::kVariable ? 2 : 1);
    // With k = 8, absent keys would hardly look beyond the first quarter of a partitioned filter.
    if (layout != Layout::kPartitioned) probe(layout, 8);
    for (const uint32_t k : {4u, 8u, 16u}) probe(layout, k, /*present=*/true);
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

struct Cell {
  uint64_t filter_bytes;
  bool full;  // which half of the arena it uses
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
    measurement->arena_.MakeFull();
    return measurement;
  }

  // One visit to each cell, size by size and half by half of the arena, so that the caches hold
  // what is measured next.
  void Pass(const std::function<void(double)>& progress) {
    size_t visited = 0;
    for (size_t first = 0; first < cells_.size(); first += specs_.size()) {
      for (const bool full : {false, true}) {
        Warm(cells_[first].filter_bytes, full);
        for (size_t i = first; i < first + specs_.size(); ++i) {
          if (cells_[i].full != full) continue;
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
    Cell cell{.filter_bytes = bytes, .full = spec.present};
    if (spec.operation == Operation::kInsert) {
      Result<Filter> filter = arena_.ToInsert(geometry);
      if (!filter.ok()) return filter.status();
      auto shared = std::make_shared<Filter>(std::move(*filter));
      cell.run_batch = [this, shared, bytes] { shared->InsertHashes(hashes_.Next(bytes)); };
    } else {
      Result<FilterView> view = spec.present ? arena_.Full(geometry) : arena_.HalfFull(geometry);
      if (!view.ok()) return view.status();
      cell.run_batch = [this, view = *view, bytes] {
        view.ProbeHashes(hashes_.Next(bytes), bitmap_.data());
      };
    }
    cells_.push_back(std::move(cell));
    return Status::Ok();
  }

  void Warm(uint64_t bytes, bool full) const {
    if (bytes > kWarmBytes) return;
    const Geometry geometry{.layout = Layout::kSplit256, .num_bits = bytes * 8, .num_probes = 8};
    const Result<FilterView> view = full ? arena_.Full(geometry) : arena_.HalfFull(geometry);
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < bytes; i += 64) sink = view->bytes()[i];
    static_cast<void>(sink);
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
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const auto cache_bytes = [](int name) {
    return static_cast<uint64_t>(std::max(0L, sysconf(name)));
  };
  profile->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
  profile->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
  profile->l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
#endif
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
  for (int i = 0; i < 2; ++i) ns_per_key = std::min(ns_per_key, NsPerKey(run_batch, num_batches));
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

ProbeArena::ProbeArena(Filter half_full, Filter full)
    : half_full_(std::move(half_full)), full_(std::move(full)) {}

Result<ProbeArena> ProbeArena::Make(uint64_t max_filter_bytes) {
  // Filters get aligned memory on huge pages.
  const Geometry geometry{
      .layout = Layout::kSplit512, .num_bits = (max_filter_bytes + 63) / 64 * 512, .num_probes = 8};
  Result<Filter> half_full = Filter::Create(geometry);
  if (!half_full.ok()) return half_full.status();
  Result<Filter> full = Filter::Create(geometry);
  if (!full.ok()) return full.status();
  std::mt19937_64 random(2);
  const std::span<uint8_t> bytes = FilterAccess::MutableBytes(*half_full);
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(&bytes[i], &bits, sizeof(bits));
  }
  ProbeArena arena(std::move(*half_full), std::move(*full));
  arena.MakeFull();
  return arena;
}

Result<FilterView> ProbeArena::HalfFull(const Geometry& geometry) const {
  return FilterView::Over(geometry, half_full_.bytes().first(geometry.num_bytes()));
}

Result<FilterView> ProbeArena::Full(const Geometry& geometry) const {
  return FilterView::Over(geometry, full_.bytes().first(geometry.num_bytes()));
}

Result<Filter> ProbeArena::ToInsert(const Geometry& geometry) {
  return FilterIn(FilterAccess::MutableBytes(full_), geometry);
}

void ProbeArena::MakeFull() { std::ranges::fill(FilterAccess::MutableBytes(full_), uint8_t{0xFF}); }

// ---- Calibrate

Result<MachineProfile> Calibrate(const CalibrateOptions& options) {
  if (!(options.seconds > 0) || options.max_filter_bytes < kSmallestBytes) {
    return Status::InvalidArgument(
        "calibrate: seconds must be positive, and max_filter_bytes at "
        "least " +
        std::to_string(kSmallestBytes));
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
