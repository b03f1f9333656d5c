#include "device/nvrtc.hpp"

#include <stdexcept>

namespace halocline::device {

namespace {

std::vector<Symbols> loaded(const std::vector<std::string>& libraries) {
  std::vector<Symbols> result;
  for (const std::string& library : libraries) {
    result.emplace_back(std::vector{library});
    if (!result.back().loaded()) throw std::runtime_error("NVRTC cannot be loaded: " + result.back().error());
  }
  return result;
}

}  // namespace

Nvrtc::Nvrtc(const std::string& library, const std::vector<std::string>& dependencies)
    : dependencies_(loaded(dependencies)), symbols_({library}) {
  if (!symbols_.loaded()) throw std::runtime_error("NVRTC cannot be loaded: " + symbols_.error());
  if (!symbols_.missing().empty()) {
    throw std::runtime_error(library + " lacks " + symbols_.missing().front() +
                             ": it is not NVRTC, or it is older than CUDA 11.2");
  }
  version_of_(&version_.first, &version_.second);
  int count = 0;
  count_of_(&count);
  architectures_.resize(static_cast<size_t>(count));
  architectures_of_(architectures_.data());
}

Nvrtc::Result Nvrtc::compile(const std::string& source, const std::string& name,
                             const std::vector<std::string>& options) const {
  Result result;
  Program program = nullptr;
  int status = create_(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (status != 0) {
    result.error = error_string_(status);
    return result;
  }
  std::vector<const char*> words;
  words.reserve(options.size());
  for (const std::string& option : options) words.push_back(option.c_str());
  status = compile_(program, static_cast<int>(words.size()), words.data());

  // Sizes include the zero at the end of texts.
  size_t size = 0;
  if (log_size_(program, &size) == 0 && size > 1) {
    result.log.resize(size);
    if (log_(program, result.log.data()) == 0) result.log.resize(size - 1);
  }
  if (status == 0) {
    size = 0;
    status = cubin_size_(program, &size);
    if (status == 0 && size > 0) {
      result.code.resize(size);
      status = cubin_(program, result.code.data());
    } else {
      status = ptx_size_(program, &size);
      result.code.resize(size);
      if (status == 0) status = ptx_(program, result.code.data());
      if (status == 0) result.code.resize(size - 1);
    }
  }
  if (status != 0) {
    result.code.clear();
    result.error = error_string_(status);
  }
  destroy_(&program);
  return result;
}

}  // namespace halocline::device
