// Boxes of cells that one launch copies.
#pragma once

#include <memory>
#include <vector>

#include "device/subdomain.hpp"

namespace halocline::device {

// The kernel hc_move takes as many arrays as there are in two subdomains, and one more, for messages. In that
// order: the storages of the subdomain that runs it, those of the other one, and the messages.
class Moves {
 public:
  explicit Moves(const Subdomain& where) : where_(where), fields_(where.storages().size()) {}

  // Between the cells of this subdomain and messages, or cells of the other. Throws std::invalid_argument
  // where a box is not within its storage.
  void pack(size_t storage, const Index& lo, const Index& extent, size_t offset);
  void unpack(size_t storage, const Index& lo, const Index& extent, size_t offset);
  void copy(const Subdomain& from, size_t storage, const Index& source, const Index& target,
            const Index& extent);
  // What has been added since the last call becomes one launch; its number.
  size_t close();
  size_t pieces() const { return pieces_.size(); }

  // Sends the table of pieces to the device and finds the kernel; nothing can be added any more.
  void settle();
  // Runs one launch. `other` has the storages that are copied from, `messages` those that are packed.
  void operator()(Queue& queue, size_t launch, const Subdomain* other, const Buffer* messages) const;

 private:
  enum class Side { kOwn, kOther, kMessages };
  void add(Side from, const hc_layout& source, Side to, const hc_layout& target, size_t storage,
           const Index& extent);
  hc_layout dense(const Index& extent, size_t offset, size_t itemsize) const;
  hc_layout cells(const Subdomain& where, size_t storage, const Index& lo, const Index& extent) const;

  const Subdomain& where_;
  size_t fields_;
  std::vector<hc_piece> pieces_;
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> launches_;
  std::unique_ptr<Buffer> table_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace halocline::device
