// The Python module halocline._native.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <omp.h>

#include <string>
#include <utility>

#include "bindings/bindings.hpp"
#include "mpi/standard.hpp"
#include "ranks/mailboxes.hpp"
#include "storage/bandwidth.hpp"
#include "storage/memory.hpp"
#include "threads/team.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

// Bind queries about this machine and the linked libraries.
void bind_machine(nb::module_& m) {
  m.def("load_mpi", &mpi::load, "library"_a,
        "Use an MPI library, whose ABI is that of the MPI standard, of MPICH or of Open MPI.\n\n"
        "Raises RuntimeError if the file is no such library, or if the engine uses another one.");
  m.def("mpi_library", &mpi::library, "Return the path of the MPI library in use; empty if there is none.");
  m.def(
      "has_mailboxes", [](int communicator) { return Mailboxes::unified(Communicator(communicator)); },
      "communicator"_a,
      "Return True if one-sided communication has one memory (MPI_WIN_UNIFIED); collective.");
  m.def("shared_pages_are_huge", &shared_pages_are_huge,
        "Return True if memory that processes share has huge pages (Linux 6.1 and later).");
  m.def(
      "available_memory", &available_memory,
      "Return the bytes that all processes can still allocate, limited by the system and the control group.");
  m.def("available_to_process", &available_to_process,
        "Return the bytes that this process can still allocate, limited also by its address space.");
  m.def("simd_width", &simd_width, "Return the bits of the widest vector registers of this machine.");
  m.def(
      "openmp", [] { return std::pair<int, int>(_OPENMP, omp_get_max_threads()); },
      "Return the OpenMP version as a date (yyyymm) and the default number of threads.");
}

}  // namespace
}  // namespace halocline

NB_MODULE(_native, m) {
  using namespace halocline;
  // A traceback may keep engines alive until the process ends. nanobind would report them as leaks.
  nb::set_leak_warnings(false);
  m.doc() = "Native engine of Halocline, which executes plans and makes no decisions.";

  end_threads_before_forks();
  bind_storage(m);
  bind_device(m);
  bind_link(m);
  bind_plan(m);
  bind_engine(m);
  bind_machine(m);
  bind_device_plan(m);
  bind_arrays(m);
  bind_nvrtc(m);
  bind_points(m);
}
