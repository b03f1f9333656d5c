// The methods by which messages of one exchange travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranks/rank.hpp"

namespace halocline {

namespace device {
class Link;
}

enum class Method {
  kMpi,        // packed, persistent messages, unpacked; on devices through memory of the host
  kGpuAware,   // the same between memory of devices
  kRma,        // packed into a mailbox, fetched by the receiver, unpacked
  kColocated,  // the receiver copies out of the sender's interior, in shared memory; between devices packed,
               // copied into the receiver's memory, unpacked
};

// A box of one storage; of a colocated receive also where it begins in the sender's storage.
struct Part {
  uint32_t storage;
  Index lo, hi;
  Index from{};
};

// What goes to, or comes from, one subdomain: its parts one after the other.
struct Message {
  Method method;
  int peer;  // rank; colocated on the host: number of the neighbour
  int tag;  // colocated on the host: the direction, as the sender sees it; rma: that, and 27 times the number
            // of the subdomain at the other end
  std::vector<Part> parts;
  std::shared_ptr<device::Link> link{};  // this end of a colocated message between devices
  bool packed = true;  // mpi, gpu_aware: else MPI takes the cells out of the field and puts them there, and
                       // devices copy them row by row
};

// What has happened to messages since the last look: bits as in Exchange.
struct News {
  uint32_t landed = 0;  // receives that can be unpacked
  uint32_t closed = 0;  // receives that need no more progress
  uint64_t sent = 0;    // sends whose cells may be overwritten
};

// The messages of one exchange that travel by one method. Its calls come from one thread at a time, but for
// taken().
class Transfer {
 public:
  Transfer() = default;
  virtual ~Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Begins an execution.
  virtual void start() = 0;
  // Sends what is packed, bit by bit, and looks for what has come.
  virtual News progress(uint64_t packed) = 0;
  // Where a send is packed in this execution.
  virtual char* buffer(size_t) { return nullptr; }
  // Receive m is unpacked; any thread.
  virtual void taken(size_t) {}
  // Whether it calls MPI.
  virtual bool uses_mpi() const = 0;
};

// A message with its number among the sends or receives of the exchange, and its packed bytes.
struct Numbered {
  size_t number;
  const Message* message;
  char* buffer;
  size_t bytes;
};

std::unique_ptr<Transfer> mpi_transfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives);
// Of messages that are not packed.
std::unique_ptr<Transfer> strided_transfer(const Communicator& communicator, const Subdomain& subdomain,
                                           const std::vector<Numbered>& sends,
                                           const std::vector<Numbered>& receives);
std::unique_ptr<Transfer> rma_transfer(const Rank& rank, const Subdomain& subdomain,
                                       const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives);
std::unique_ptr<Transfer> colocated_transfer(const Rank& rank, const Subdomain& subdomain,
                                             const std::vector<Numbered>& sends,
                                             const std::vector<Numbered>& receives);

}  // namespace halocline
