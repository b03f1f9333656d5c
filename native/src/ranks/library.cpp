#include "ranks/library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace halocline {

namespace {

std::string last_error() {
  const char* error = dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own
  return error == nullptr ? "unknown error" : error;
}

}  // namespace

Library::Library(const std::string& path)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw std::runtime_error("kernel library cannot be loaded: " + last_error());
}

Library::~Library() { dlclose(handle_); }

void* Library::find(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  if (symbol == nullptr) throw std::runtime_error("kernel library " + path_ + " has no function " + name);
  return symbol;
}

}  // namespace halocline
