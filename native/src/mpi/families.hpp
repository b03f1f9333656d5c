// Libraries whose ABI differs from that of the MPI standard.
#pragma once

#include <string>

namespace halocline::mpi {

// A loaded library.
struct Library {
  std::string path;
  void* handle;

  // Address of a symbol. Throws std::runtime_error if the library does not have it.
  void* symbol(const char* name) const;
  void* optional(const char* name) const;  // null if the library does not have it

  template <typename Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(symbol(name));
  }
};

// Bind the functions of the standard to functions that convert handles, constants and statuses.
void bind_mpich(const Library& library);
void bind_open_mpi(const Library& library);

}  // namespace halocline::mpi
