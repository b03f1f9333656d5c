// Functions of a library that is located at run time, so that one build serves machines with and without it.
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
  // Functions that were requested with [] and are missing.
  const std::vector<std::string>& missing() const { return missing_; }

  class Symbol {
   public:
    explicit Symbol(void* address) : address_(address) {}
    template <typename Function>
      requires std::is_pointer_v<Function>
    operator Function() const {  // not explicit: it initializes pointers
      return reinterpret_cast<Function>(address_);
    }

   private:
    void* address_;
  };
  // Return a function that must exist, or one that may be null.
  Symbol operator[](const char* name);
  Symbol optional(const char* name) const;

 private:
  void* library_ = nullptr;
  std::string error_;
  std::vector<std::string> missing_;
};

}  // namespace halocline::device
