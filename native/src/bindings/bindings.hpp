// The parts of the Python module that have files of their own.
#pragma once

#include <nanobind/nanobind.h>

namespace halocline {

void bind_device(nanobind::module_& m);
void bind_device_plan(nanobind::module_& m);
void bind_nvrtc(nanobind::module_& m);

}  // namespace halocline
