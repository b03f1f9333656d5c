// Functions of a library that is found at run time, so that one build serves machines with and without it.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace halocline::device {

class Symbols {
 public:
  // The first of these libraries that can be loaded. It stays loaded until the process ends: threads of its
  // own and destructors of the process may still run in it.
  explicit Symbols(const std::vector<std::string>& libraries);

  bool loaded() const { return library_ != nullptr; }
  // Why none could be loaded, in the words of the loader.
  const std::string& why() const { return why_; }
  // What was asked for with [] and is not there.
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
  // A function that must be there, and one that may be null.
  Symbol operator[](const char* name);
  Symbol optional(const char* name) const;

 private:
  void* library_ = nullptr;
  std::string why_;
  std::vector<std::string> missing_;
};

}  // namespace halocline::device
