#include "ranks/rank.hpp"

#include <stdexcept>

namespace halocline {

uint32_t Rank::check_storage(int64_t number) const {
  if (number < 0 || static_cast<size_t>(number) >= storage_count) {
    throw std::invalid_argument("storage " + std::to_string(number) + ": expected a number below " +
                                std::to_string(storage_count));
  }
  return static_cast<uint32_t>(number);
}

size_t Rank::check_scalar(int64_t number) const {
  if (number < 0 || static_cast<size_t>(number) >= scalar_count) {
    throw std::invalid_argument("scalar " + std::to_string(number) + ": expected a number below " +
                                std::to_string(scalar_count));
  }
  return static_cast<size_t>(number);
}

}  // namespace halocline
