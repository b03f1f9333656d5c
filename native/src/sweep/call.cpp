#include "sweep/call.hpp"

namespace halocline {

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
