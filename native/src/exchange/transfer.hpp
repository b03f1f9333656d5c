// Transfer methods of the messages of an exchange.
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
  kMpi,        // packed, sent by persistent MPI requests, unpacked; devices use host memory
  kGpuAware,   // like kMpi, but from device memory to device memory
  kRma,        // packed into a mailbox, read by the receiver, unpacked
  kColocated,  // in shared memory: the receiver copies from the fields of the sender; between devices:
               // packed, copied into memory of the receiver, unpacked
};

// Box of cells in one storage. For a colocated receive, `from` is the first cell of the box in the storage of
// the sender.
struct Part {
  uint32_t storage;
  Index lo, hi;
  Index from{};
};

// Message to or from one subdomain, which consists of its parts in sequence.
struct Message {
  Method method;
  int peer;  // rank; for colocated messages on the host: number of the neighbour
  int tag;   // colocated on the host: direction from the sender; rma: direction plus 27 times the number of
             // the other subdomain
  std::vector<Part> parts;
  std::shared_ptr<device::Link> link{};  // this end of a colocated message between devices
  bool packed = true;  // mpi, gpu_aware: if false, MPI accesses the cells in the fields, and devices copy the
                       // cells row by row
};

// Changes since the previous poll, as bit masks of the receives and sends of the exchange.
struct News {
  uint32_t landed = 0;  // receives that are ready to be unpacked
  uint32_t closed = 0;  // receives that need no more polling
  uint64_t sent = 0;    // sends whose cells may be overwritten
};

// Messages of one exchange that use one transfer method. Only one thread at a time calls the functions,
// except taken().
class Transfer {
 public:
  Transfer() = default;
  virtual ~Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Begin an execution.
  virtual void start() = 0;
  // Send the messages whose bit in `packed` is set, and poll for arrivals.
  virtual News progress(uint64_t packed) = 0;
  // Buffer of a send in this execution.
  virtual char* buffer(size_t) { return nullptr; }
  // Release receive m after it was unpacked. Any thread may call it.
  virtual void taken(size_t) {}
  // Return true if the transfer calls MPI.
  virtual bool uses_mpi() const = 0;
};

// Message with its number among the sends or receives of the exchange, and its packed bytes.
struct Numbered {
  size_t number;
  const Message* message;
  char* buffer;
  size_t bytes;
};

std::unique_ptr<Transfer> mpi_transfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives);
// Create the transfer of messages that are not packed.
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
