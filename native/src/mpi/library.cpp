// Selection of the ABI of an MPI library, and its functions.
#include <dlfcn.h>

#include <stdexcept>

#include "mpi/families.hpp"
#include "mpi/standard.hpp"

namespace halocline {

// NOLINTBEGIN(bugprone-macro-parentheses): definitions and types
#define HC_DEFINE(name, arguments) int(*MPI_##name) arguments = nullptr;
HC_MPI_FUNCTIONS(HC_DEFINE)
#undef HC_DEFINE
MPI_Comm (*MPI_Comm_fromint)(int) = nullptr;
int (*MPI_Comm_toint)(MPI_Comm) = nullptr;

namespace mpi {

namespace {

std::string& loaded() {
  static std::string path;
  return path;
}

void bind_standard(const Library& library) {
#define HC_BIND(name, arguments) MPI_##name = library.function<int arguments>("MPI_" #name);
  HC_MPI_FUNCTIONS(HC_BIND)
#undef HC_BIND
  // NOLINTEND(bugprone-macro-parentheses)
  MPI_Comm_fromint = library.function<MPI_Comm(int)>("MPI_Comm_fromint");
  MPI_Comm_toint = library.function<int(MPI_Comm)>("MPI_Comm_toint");
}

// Return true if the library has the ABI of the standard. MPICH may have the function without the ABI.
bool is_standard(const Library& library) {
  int major = -1, minor = -1;
  auto* const version = reinterpret_cast<int (*)(int*, int*)>(library.optional("MPI_Abi_get_version"));
  return version != nullptr && version(&major, &minor) == MPI_SUCCESS && major > 0;
}

}  // namespace

void* Library::symbol(const char* name) const {
  void* const address = optional(name);
  if (address == nullptr) throw std::runtime_error(path + " is not a usable MPI library: it has no " + name);
  return address;
}

void* Library::optional(const char* name) const { return dlsym(handle, name); }

void load(const std::string& path) {
  if (path == loaded()) return;
  if (!loaded().empty()) {
    throw std::runtime_error("the engine already uses the MPI library " + loaded() +
                             ", so that it cannot use " + path);
  }
  const Library library{path, dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)};
  if (library.handle == nullptr) {
    const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc has one reason per thread
    throw std::runtime_error("the MPI library " + path + " cannot be loaded: " + reason);
  }
  if (is_standard(library)) {  // first, since such a library may depend on one of the other families
    bind_standard(library);
  } else if (library.optional("ompi_mpi_comm_world") != nullptr) {
    bind_open_mpi(library);
  } else {
    bind_mpich(library);
  }
  loaded() = path;
}

const std::string& library() { return loaded(); }

}  // namespace mpi

}  // namespace halocline
