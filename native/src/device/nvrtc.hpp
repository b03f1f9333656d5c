// NVRTC, the CUDA kernel compiler of NVIDIA as a library. It requires no device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/symbols.hpp"

namespace halocline::device {

class Nvrtc {
 public:
  // Load the dependencies, which the library would not find by itself, and then the library by its path or
  // name. Throws std::runtime_error if a library cannot be loaded or is not NVRTC.
  Nvrtc(const std::string& library, const std::vector<std::string>& dependencies);

  std::pair<int, int> version() const { return version_; }
  // Supported compute capabilities: 90 for sm_90.
  const std::vector<int>& architectures() const { return architectures_; }

  struct Result {
    std::string code;   // a cubin if the options name a real architecture, otherwise PTX; empty on failure
    std::string error;  // name of the NVRTC error; empty on success
    std::string log;
  };
  Result compile(const std::string& source, const std::string& name,
                 const std::vector<std::string>& options) const;

 private:
  using Program = struct NvrtcProgram*;

  std::vector<Symbols> dependencies_;
  Symbols symbols_;
  int (*version_of_)(int*, int*) = symbols_["nvrtcVersion"];
  int (*count_of_)(int*) = symbols_["nvrtcGetNumSupportedArchs"];
  int (*architectures_of_)(int*) = symbols_["nvrtcGetSupportedArchs"];
  const char* (*error_string_)(int) = symbols_["nvrtcGetErrorString"];
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = symbols_["nvrtcCreateProgram"];
  int (*destroy_)(Program*) = symbols_["nvrtcDestroyProgram"];
  int (*compile_)(Program, int, const char* const*) = symbols_["nvrtcCompileProgram"];
  int (*log_size_)(Program, size_t*) = symbols_["nvrtcGetProgramLogSize"];
  int (*log_)(Program, char*) = symbols_["nvrtcGetProgramLog"];
  int (*cubin_size_)(Program, size_t*) = symbols_["nvrtcGetCUBINSize"];
  int (*cubin_)(Program, char*) = symbols_["nvrtcGetCUBIN"];
  int (*ptx_size_)(Program, size_t*) = symbols_["nvrtcGetPTXSize"];
  int (*ptx_)(Program, char*) = symbols_["nvrtcGetPTX"];
  std::pair<int, int> version_;
  std::vector<int> architectures_;
};

}  // namespace halocline::device
