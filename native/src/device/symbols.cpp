#include "device/symbols.hpp"

#include <dlfcn.h>

namespace halocline::device {

Symbols::Symbols(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    const char* error = dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own
    if (!error_.empty()) error_ += "; ";
    error_ += error == nullptr ? library : error;
  }
}

Symbols::Symbol Symbols::optional(const char* name) const {
  return Symbol(library_ == nullptr ? nullptr : dlsym(library_, name));
}

Symbols::Symbol Symbols::operator[](const char* name) {
  void* address = library_ == nullptr ? nullptr : dlsym(library_, name);
  if (address == nullptr) missing_.emplace_back(name);
  return Symbol(address);
}

}  // namespace halocline::device
