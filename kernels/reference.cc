#include "kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/layout_traits.h"

namespace tepal::reference {
namespace {

__extension__ using uint128_t = unsigned __int128;

constexpr uint128_t kTwo32 = uint128_t{1} << 32;

uint64_t High(uint64_t h) { return static_cast<uint64_t>(h / kTwo32); }
uint64_t Low(uint64_t h) { return static_cast<uint64_t>(h % kTwo32); }

// ---- Blocked layouts

uint64_t BlockStart(uint64_t num_bits, uint64_t block_bits, uint64_t hash) {
  const uint64_t num_blocks = num_bits / block_bits;
  return static_cast<uint64_t>(uint128_t{High(hash)} * num_blocks / kTwo32) * block_bits;
}

// One of `range` bits, chosen by the top of low(h) * salt[i] mod 2^32.
uint64_t SaltedBit(uint64_t hash, size_t i, uint64_t range) {
  const uint128_t product = uint128_t{Low(hash)} * kSalts[i] % kTwo32;
  return static_cast<uint64_t>(product * range / kTwo32);
}

// One bit in each of 8 words.
std::vector<uint64_t> Split256Positions(const Geometry& geometry, uint64_t hash) {
  const uint64_t start = BlockStart(geometry.num_bits, 256, hash);
  std::vector<uint64_t> positions;
  for (size_t i = 0; i < 8; ++i) {
    positions.push_back(start + i * 32 + SaltedBit(hash, i, 32));
  }
  return positions;
}

// One bit in each of 8 words, each of which has 32 bits in either half of the line.
std::vector<uint64_t> Split512Positions(const Geometry& geometry, uint64_t hash) {
  const uint64_t start = BlockStart(geometry.num_bits, 512, hash);
  std::vector<uint64_t> positions;
  for (size_t i = 0; i < 8; ++i) {
    const uint64_t bit = SaltedBit(hash, i, 64);
    positions.push_back(start + bit / 32 * 256 + i * 32 + bit % 32);
  }
  return positions;
}

// k bits anywhere in a block.
std::vector<uint64_t> LinePositions(const Geometry& geometry, uint64_t hash, uint64_t block_bits) {
  const uint64_t start = BlockStart(geometry.num_bits, block_bits, hash);
  std::vector<uint64_t> positions;
  for (size_t i = 0; i < geometry.num_probes; ++i) {
    positions.push_back(start + SaltedBit(hash, i, block_bits));
  }
  return positions;
}

// ---- Scattered layouts

uint64_t Remix(uint64_t hash) {
  const uint64_t x = hash / 4096 * 4096;
  const uint64_t y = (x ^ High(x)) * 0x9E3779B97F4A7C15u;
  return y ^ High(y);
}

uint64_t H1(uint64_t hash) { return hash / 4096; }
uint64_t H2(uint64_t hash) { return Remix(hash) / 4096 | 1; }

// h1 + (5^0 + ... + 5^(t-1)) * h2
uint64_t Probe(uint64_t hash, uint64_t t) {
  uint64_t factor = 0;
  for (uint64_t power = 1; t > 0; --t, power *= 5) factor += power;
  return (H1(hash) + factor * H2(hash)) * 4096;
}

uint64_t Activation(uint64_t hash) { return High(Remix(hash)); }

bool IsPowerOfTwo(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }

uint64_t Reduce(uint64_t g, uint64_t size) {
  if (IsPowerOfTwo(size)) return g / (uint64_t{1} << 24) % size;
  const uint64_t line = static_cast<uint64_t>(uint128_t{High(g)} * (size / 512) / kTwo32);
  return line * 512 + g / (uint64_t{1} << 23) % 512;
}

std::vector<uint64_t> StandardPositions(const Geometry& geometry, uint64_t hash) {
  std::vector<uint64_t> positions;
  for (uint64_t t = 0; t < geometry.num_probes; ++t) {
    positions.push_back(Reduce(Probe(hash, t), geometry.num_bits));
  }
  return positions;
}

std::vector<uint64_t> PartitionedPositions(const Geometry& geometry, uint64_t hash) {
  const uint64_t part_bits = geometry.num_bits / geometry.num_probes;
  std::vector<uint64_t> positions;
  for (uint64_t t = 0; t < geometry.num_probes; ++t) {
    positions.push_back(t * part_bits + Reduce(Probe(hash, t), part_bits));
  }
  return positions;
}

// The number of probes that a key makes if k of them are wanted on average.
uint64_t ActiveProbes(double k, uint64_t hash) {
  const double whole = std::floor(k);
  const auto share = static_cast<uint64_t>(std::floor((k - whole) * 4294967296.0));
  return static_cast<uint64_t>(whole) + (Activation(hash) < share ? 1 : 0);
}

std::vector<uint64_t> RationalPositions(const Geometry& geometry, uint64_t hash) {
  std::vector<uint64_t> positions;
  for (uint64_t t = 0; t < ActiveProbes(geometry.rational_k, hash); ++t) {
    positions.push_back(Reduce(Probe(hash, t), geometry.num_bits));
  }
  return positions;
}

// The powers of two that add up to num_bits, largest first.
std::vector<uint64_t> BlockSizes(uint64_t num_bits) {
  std::vector<uint64_t> sizes;
  for (int bit = 63; bit >= 0; --bit) {
    if (num_bits >> bit & 1) sizes.push_back(uint64_t{1} << bit);
  }
  return sizes;
}

std::vector<uint64_t> VariablePositions(const Geometry& geometry, uint64_t hash) {
  std::vector<uint64_t> positions;
  for (uint64_t t = 0; t < geometry.num_probes; ++t) {
    const uint128_t place = uint128_t{t} * kTwo32 + Activation(hash);
    uint64_t start = 0;
    for (const uint64_t size : BlockSizes(geometry.num_bits)) {
      const uint128_t boundary = kTwo32 * geometry.num_probes * (start + size) / geometry.num_bits;
      if (place < boundary) {
        positions.push_back(start + Reduce(Probe(hash, t), size));
        break;
      }
      start += size;
    }
  }
  return positions;
}

std::vector<uint64_t> VariablePaperPositions(const Geometry& geometry, uint64_t hash) {
  std::vector<uint64_t> positions;
  uint64_t start = 0;
  for (const uint64_t size : BlockSizes(geometry.num_bits)) {
    const double k =
        geometry.rational_k * static_cast<double>(size) / static_cast<double>(geometry.num_bits);
    for (uint64_t i = 0; i < ActiveProbes(k, hash); ++i) {
      positions.push_back(start + (H1(hash) + (i + size) * H2(hash)) % size);
    }
    start += size;
  }
  return positions;
}

}  // namespace

std::vector<uint64_t> Positions(const Geometry& geometry, uint64_t hash) {
  switch (geometry.layout) {
    case Layout::kStandard:
      return StandardPositions(geometry, hash);
    case Layout::kPartitioned:
      return PartitionedPositions(geometry, hash);
    case Layout::kRational:
      return RationalPositions(geometry, hash);
    case Layout::kVariable:
      return VariablePositions(geometry, hash);
    case Layout::kVariablePaper:
      return VariablePaperPositions(geometry, hash);
    case Layout::kRegister:
      return LinePositions(geometry, hash, 64);
    case Layout::kSplit256:
      return Split256Positions(geometry, hash);
    case Layout::kSplit512:
      return Split512Positions(geometry, hash);
    case Layout::kLine512:
      return LinePositions(geometry, hash, 512);
  }
  return {};
}

void Insert(const Geometry& geometry, uint64_t hash, uint8_t* filter) {
  for (const uint64_t position : Positions(geometry, hash)) {
    filter[position / 8] = static_cast<uint8_t>(filter[position / 8] | (1u << (position % 8)));
  }
}

bool MayContain(const Geometry& geometry, uint64_t hash, const uint8_t* filter) {
  const std::vector<uint64_t> positions = Positions(geometry, hash);
  return std::all_of(positions.begin(), positions.end(), [filter](uint64_t position) {
    return (filter[position / 8] >> (position % 8) & 1u) != 0;
  });
}

}  // namespace tepal::reference
