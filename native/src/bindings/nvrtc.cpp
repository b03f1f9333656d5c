// Bindings of NVRTC. Python locates the library and chooses the options.
#include "device/nvrtc.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {

void bind_nvrtc(nb::module_& m) {
  using device::Nvrtc;
  nb::class_<Nvrtc>(m, "Nvrtc",
                    "NVRTC, the CUDA compiler of NVIDIA as a library. It requires no device.\n\n"
                    "Parameters\n"
                    "----------\n"
                    "library : str\n"
                    "    Path, or a name that the loader finds.\n"
                    "needed : list of str\n"
                    "    Libraries to load first.\n\n"
                    "Raises\n"
                    "------\n"
                    "RuntimeError\n"
                    "    A library cannot be loaded.")
      .def(nb::init<const std::string&, const std::vector<std::string>&>(), "library"_a, "needed"_a)
      .def_prop_ro("version", &Nvrtc::version)
      .def_prop_ro("architectures", &Nvrtc::architectures, "Compute capabilities: 90 for sm_90.")
      .def(
          "compile",
          [](const Nvrtc& self, const std::string& source, const std::string& name,
             const std::vector<std::string>& options) {
            Nvrtc::Result result;
            {
              const nb::gil_scoped_release release;
              result = self.compile(source, name, options);
            }
            return nb::make_tuple(nb::bytes(result.code.data(), result.code.size()), result.error,
                                  result.log);
          },
          "source"_a, "name"_a, "options"_a,
          nb::sig(
              "def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str, str]"),
          "Return the code (a cubin for a real architecture, otherwise PTX), the error name and the log.\n\n"
          "The error name is empty on success.");
}

}  // namespace halocline
