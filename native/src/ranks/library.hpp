// Library of generated kernels.
#pragma once

#include <string>

namespace halocline {

class Library {
 public:
  // Throws std::runtime_error if the library cannot be loaded.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Return the function of the given name. Throws std::runtime_error if there is none.
  template <typename Function>
  Function function(const std::string& name) const {
    return reinterpret_cast<Function>(find(name));
  }

 private:
  void* find(const std::string& name) const;

  std::string path_;
  void* handle_;
};

}  // namespace halocline
