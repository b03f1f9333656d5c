#include "ranks/subdomain.hpp"

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

Call::Call(const Rank& rank, const Subdomain& subdomain, const std::string& kernel,
           const std::vector<int64_t>& operands)
    : subdomain_(subdomain),
      scalars_(rank.scalars),
      shape_(rank.shape),
      kernel_(rank.library.function<hc_kernel>(kernel)) {
  for (const int64_t operand : operands) {
    operands_.push_back(rank.check_storage(operand));
    const Storage& storage = *subdomain.storages[operands_.back()];
    for (const int64_t pitch : storage.pitch())
      strides_.push_back(pitch / static_cast<int64_t>(storage.itemsize()));
  }
  fields_.resize(operands_.size());
}

void Call::bind() {
  for (size_t n = 0; n < operands_.size(); ++n) fields_[n] = subdomain_.storages[operands_[n]]->origin();
}

}  // namespace halocline
