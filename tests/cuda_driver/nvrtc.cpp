// A stand-in for NVRTC: kernels become a library of the host, by g++, which the stand-in for the driver runs.
//
// It calls itself version 0.1, so that what it makes is never taken for a cubin.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

struct Program {
  std::string source, name, log, code;
};

constexpr int kInvalidOption = 5, kCompilation = 6;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 1;
  return 0;
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}

int nvrtcGetSupportedArchs(int* architectures) {
  for (const int one : {70, 80, 90}) *architectures++ = one;
  return 0;
}

const char* nvrtcGetErrorString(int status) {
  if (status == kInvalidOption) return "NVRTC_ERROR_INVALID_OPTION";
  return status == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

int nvrtcCreateProgram(Program** program, const char* source, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, name, "", ""};
  return 0;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  bool contracts = true;
  for (int n = 0; n < count; ++n) {
    const std::string option = options[n];
    if (option == "--fmad=false") contracts = false;
    if (option.rfind("--gpu-architecture=compute_", 0) == 0) {
      program->log = "the stand-in makes no PTX\n";
      return kInvalidOption;
    }
  }
  if (contracts) {
    program->log = "--fmad=false is missing: results would differ from the CPU's\n";
    return kInvalidOption;
  }
  if (program->source.find("#include") != std::string::npos) {
    program->log = "kernels include no header\n";
    return kCompilation;
  }

  std::string text = "#include \"kernels.hpp\"\n#line 1 \"" + program->name + "\"\n" + program->source + "\n";
  const bool barriers = program->source.find("__syncthreads") != std::string::npos;
  const std::regex kernel(
      R"(__global__((?:\s+(?:static|void)|\s*__launch_bounds__\s*\([^()]*\))+)\s+(\w+)\s*\()");
  const std::regex bounds(R"(__launch_bounds__\s*\(\s*(\d+))");
  for (std::sregex_iterator found(program->source.begin(), program->source.end(), kernel), end; found != end;
       ++found) {
    const std::string before = (*found)[1];
    std::smatch bound;
    const std::string most = std::regex_search(before, bound, bounds) ? bound[1].str() : "1024";
    text +=
        "STANDIN_KERNEL(" + (*found)[2].str() + ", " + most + ", " + (barriers ? "true" : "false") + ")\n";
  }

  char folder[] = "/tmp/halocline-standin-XXXXXX";
  if (mkdtemp(folder) == nullptr) return kCompilation;
  const std::string place = folder;
  std::ofstream(place + "/kernels.cpp") << text;
  const char* include = std::getenv("HALOCLINE_TEST_CUDA_SOURCES");
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen((place + "/log").c_str(), "w", stderr) == nullptr) _exit(127);
    execlp("g++", "g++", "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fno-math-errno",
           "-fPIC", "-shared", "-w", (std::string("-I") + (include == nullptr ? "." : include)).c_str(),
           (place + "/kernels.cpp").c_str(), "-o", (place + "/kernels.so").c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 1;
  waitpid(child, &status, 0);
  program->log = contents(place + "/log");
  const std::string made = contents(place + "/kernels.so");
  for (const char* name : {"/kernels.cpp", "/kernels.so", "/log"}) std::remove((place + name).c_str());
  rmdir(folder);
  if (status != 0) return kCompilation;
  const uint64_t size = made.size();
  program->code = "HALOCLINE-STAND-IN";
  program->code.append(reinterpret_cast<const char*>(&size), sizeof size);
  program->code += made;
  return 0;
}

int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}

int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->code.size();
  return 0;
}

int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return 0;
}

int nvrtcGetPTXSize(Program*, size_t* size) {
  *size = 0;
  return 0;
}

int nvrtcGetPTX(Program*, char*) { return 0; }
}
