// Functions of a library that is located at run time. One build can thus run with and without the library.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace halocline::device {

class Symbols {
 public:
  // Load the first of these libraries that is available. It stays loaded until the process ends, since its
  // threads and destructors may still run.
  explicit Symbols(const std::vector<std::string>& libraries);

  bool loaded() const { return library_ != nullptr; }
  // Message of the loader if no library could be loaded.
  const std::string& error() const { return error_; }
  // Names of missing functions that were requested with [].
  const std::vector<std::string>& missing() const { return missing_; }

  class Symbol {
   public:
    explicit Symbol(void* address) : address_(address) {}
    template <typename Function>
      requires std::is_pointer_v<Function>
    operator Function() const {  // not explicit, since it initializes pointers
      return reinterpret_cast<Function>(address_);
    }

   private:
    void* address_;
  };
  // Return a function. With [], a missing function is recorded in missing(); optional() returns null.
  Symbol operator[](const char* name);
  Symbol optional(const char* name) const;

 private:
  void* library_ = nullptr;
  std::string error_;
  std::vector<std::string> missing_;
};

}  // namespace halocline::device
