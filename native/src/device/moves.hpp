// Copies of boxes of cells by one launch.
#pragma once

#include <memory>
#include <vector>

#include "device/subdomain.hpp"

namespace halocline::device {

// The arguments of the kernel hc_move are arrays in this order: the storages of the subdomain that runs it,
// the storages of the other subdomain, and the buffer of messages.
class Moves {
 public:
  explicit Moves(const Subdomain& domain) : subdomain_(domain), fields_(domain.storages().size()) {}

  // Add copies between cells of this subdomain and messages, or cells of another subdomain. Throws
  // std::invalid_argument if a box is not inside its storage.
  void pack(size_t storage, const Index& lo, const Index& extent, size_t offset);
  void unpack(size_t storage, const Index& lo, const Index& extent, size_t offset);
  void copy(const Subdomain& from, size_t storage, const Index& source, const Index& target,
            const Index& extent);
  // Combine the copies since the last call into one launch, and return its number.
  size_t close();
  size_t pieces() const { return pieces_.size(); }

  // Upload the table of pieces and create the kernel. Nothing can be added afterwards.
  void upload();
  // Run one launch. `other` is the subdomain of the source cells, and `messages` contains packed messages.
  void operator()(Queue& queue, size_t launch, const Subdomain* other, const Buffer* messages) const;

 private:
  enum class Side { kOwn, kOther, kMessages };
  void add(Side from, const hc_layout& source, Side to, const hc_layout& target, size_t storage,
           const Index& extent);
  hc_layout dense(const Index& extent, size_t offset, size_t itemsize) const;
  hc_layout cells(const Subdomain& domain, size_t storage, const Index& lo, const Index& extent) const;

  const Subdomain& subdomain_;
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
