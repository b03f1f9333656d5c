// The Python module halocline._native.

#include <dlfcn.h>
#include <mpi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace {

// The file of the MPI library that native code calls. Python compares it with mpi4py's.
std::string mpi_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&MPI_Comm_rank), &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "The native engine of Halocline.";
  m.def("mpi_library", &mpi_library, "Path of the MPI library that native code is bound to.");
}
