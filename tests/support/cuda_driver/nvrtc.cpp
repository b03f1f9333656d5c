// A stand-in for NVRTC: g++ compiles kernels into a library of the host, which the driver's stand-in runs.
//
// It reports version 0.1, so that its output is never mistaken for a cubin.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string source, name, log, code;
};

constexpr int kInvalidOption = 5, kCompilation = 6;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs a program and returns true if it succeeds; its messages are written to a file.
bool run(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stderr) == nullptr) _exit(127);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the position of the bracket that closes the one at `open`, or the end if there is none.
size_t closing(const std::string& text, size_t open) {
  const char opens = text[open], closes = opens == '(' ? ')' : '}';
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == opens) ++depth;
    if (text[at] == closes && --depth == 0) return at;
  }
  return text.size();
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at) words.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Returns the words of each function, by its name.
std::map<std::string, std::set<std::string>> functions_of(const std::string& text) {
  std::map<std::string, std::set<std::string>> functions;
  for (size_t brace = text.find('{'); brace != std::string::npos; brace = text.find('{', brace + 1)) {
    const size_t last = brace == 0 ? std::string::npos : text.find_last_not_of(" \t\n", brace - 1);
    if (last == std::string::npos || text[last] != ')') continue;
    size_t open = last;
    for (int depth = 0;; --open) {
      depth += text[open] == ')' ? 1 : text[open] == '(' ? -1 : 0;
      if (depth == 0 || open == 0) break;
    }
    size_t begin = open;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    const std::string name = text.substr(begin, open - begin);
    if (name.empty() || name == "if" || name == "for" || name == "while" || name == "switch") continue;
    functions[name].merge(words_of(text.substr(brace, closing(text, brace) - brace)));
  }
  return functions;
}

// Returns the properties of each kernel for the driver's stand-in: the maximum number of threads of a thread
// block, and true if the kernel or a called function contains a barrier.
std::string entries(const std::string& text) {
  const auto functions = functions_of(text);
  std::set<std::string> meeting{"__syncthreads"};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, words] : functions) {
      const bool meets = std::any_of(words.begin(), words.end(),
                                     [&](const std::string& word) { return meeting.count(word) != 0; });
      if (meets) more = meeting.insert(name).second || more;
    }
  }
  const std::string mark = "__global__", bounds = "__launch_bounds__";
  std::string definitions;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    std::string most = "1024";
    size_t open = text.find('(', at);
    const size_t bounded = text.find(bounds, at);
    if (bounded < open) {
      const size_t close = closing(text, open);
      most = text.substr(open + 1, close - open - 1);
      int depth = 0;
      for (size_t n = 0; n < most.size(); ++n) {
        depth += most[n] == '(' ? 1 : most[n] == ')' ? -1 : 0;
        if (most[n] == ',' && depth == 0) most.resize(n);
      }
      open = text.find('(', close);
    }
    if (open == std::string::npos) break;
    const size_t last = text.find_last_not_of(" \t\n", open - 1);
    size_t begin = last + 1;
    while (is_word(text[begin - 1])) --begin;
    const std::string name = text.substr(begin, last + 1 - begin);
    definitions +=
        "STANDIN_KERNEL(" + name + ", (" + most + "), " + (meeting.count(name) ? "true" : "false") + ")\n";
  }
  return definitions;
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

  char folder[] = "/tmp/halocline-standin-XXXXXX";
  if (mkdtemp(folder) == nullptr) return kCompilation;
  const std::string place = folder;
  const char* sources = std::getenv("HALOCLINE_TEST_CUDA_SOURCES");
  const std::string include = std::string("-I") + (sources == nullptr ? "." : sources);
  const std::string source = place + "/source.cpp", expanded = place + "/expanded.cpp";
  const std::string kernels = place + "/kernels.cpp", library = place + "/kernels.so", log = place + "/log";
  const std::string named = "#line 1 \"" + program->name + "\"\n" + program->source + "\n";
  std::ofstream(source) << named;
  // kernels are visible only after the expansion of macros
  bool good = run({"g++", "-std=c++17", "-E", "-P", "-w", "-D__CUDACC__=1", "-D__CUDACC_RTC__=1",
                   "-D__CUDA_ARCH__=900", source, "-o", expanded},
                  log);
  if (good) {
    std::ofstream(kernels) << "#include \"kernels.hpp\"\n" << named << entries(contents(expanded));
    good = run({"g++", "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC",
                // kernels of different programs have the same names
                "-fno-gnu-unique", "-shared", "-w", include, kernels, "-o", library},
               log);
  }
  program->log = contents(log);
  const std::string binary = good ? contents(library) : "";
  for (const std::string& file : {source, expanded, kernels, library, log}) std::remove(file.c_str());
  rmdir(folder);
  if (!good) return kCompilation;
  const uint64_t size = binary.size();
  program->code = "HALOCLINE-STAND-IN";
  program->code.append(reinterpret_cast<const char*>(&size), sizeof size);
  program->code += binary;
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
