// Parts of the Python module, in the order of their registration. The signatures of a part may
// contain types that earlier parts register.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "halocline/accumulator.h"

namespace halocline {

hc_kind kind_of(const std::string& name);  // kind of a reduction

void bind_storage(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_link(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_device_plan(nanobind::module_& m);
void bind_arrays(nanobind::module_& m);
void bind_nvrtc(nanobind::module_& m);
void bind_points(nanobind::module_& m);

}  // namespace halocline
