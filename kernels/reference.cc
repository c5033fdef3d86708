#include "kernels/reference.h"

#include <algorithm>
#include <cstddef>

#include "kernels/layout_traits.h"

namespace tepal::reference {
namespace {

__extension__ using uint128_t = unsigned __int128;

// LAYOUTS.md, "split256".
std::vector<uint64_t> Split256Positions(const Geometry& geometry, uint64_t hash) {
  const uint64_t num_blocks = geometry.num_bits / 256;
  const uint128_t scaled = uint128_t{hash / (uint64_t{1} << 32)} * num_blocks;
  const uint64_t block = static_cast<uint64_t>(scaled / (uint128_t{1} << 32));
  std::vector<uint64_t> positions;
  for (uint64_t word = 0; word < 8; ++word) {
    const uint64_t product = (hash % (uint64_t{1} << 32)) * Split256::kSalts[word];
    const uint64_t bit = product % (uint64_t{1} << 32) / (uint64_t{1} << 27);
    positions.push_back(block * 256 + word * 32 + bit);
  }
  return positions;
}

}  // namespace

std::vector<uint64_t> Positions(const Geometry& geometry, uint64_t hash) {
  switch (geometry.layout) {
    case Layout::kSplit256:
      return Split256Positions(geometry, hash);
    default:
      return {};
  }
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
