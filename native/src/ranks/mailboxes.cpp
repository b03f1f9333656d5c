#include "ranks/mailboxes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "storage/memory.hpp"

namespace halocline {

namespace {

constexpr size_t kLine = 64, kPage = 4096;

size_t in_lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Mailboxes of all communicators, in the order of their creation, which is the same on all ranks.
std::vector<Mailboxes*>& all() {
  static std::vector<Mailboxes*> mailboxes;
  return mailboxes;
}

int release_one(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<Mailboxes> mailboxes(static_cast<Mailboxes*>(value));
  mailboxes->release();
  std::erase(all(), mailboxes.get());
  return MPI_SUCCESS;
}

// Delete callback of an attribute of MPI_COMM_SELF. MPI_Finalize begins with these callbacks, so the windows
// are freed before MPI is finalized.
int release_all(MPI_Comm, int, void*, void*) {
  for (Mailboxes* mailboxes : all()) mailboxes->release();
  return MPI_SUCCESS;
}

int make_key(MPI_Comm_delete_attr_function* release) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release, &key, nullptr);
  return key;
}

}  // namespace

size_t MailboxPlan::payload(size_t entry, size_t box) const {
  size_t offset = 0;
  for (size_t n = 0; n < entry; ++n) offset += boxes * in_lines(capacity[n]);
  return offset + box * in_lines(capacity[entry]);
}

size_t MailboxPlan::bytes() const {
  size_t sum = 0;
  for (const size_t message_bytes : capacity) sum += boxes * in_lines(message_bytes);
  return sum;
}

Mailboxes& Mailboxes::of(const Communicator& communicator) {
  static const int key = [] {
    MPI_Comm_set_attr(MPI_COMM_SELF, make_key(release_all), nullptr);
    return make_key(release_one);
  }();
  void* value = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(communicator.handle(), key, static_cast<void*>(&value), &is_set);
  if (is_set != 0) return *static_cast<Mailboxes*>(value);
  auto mailboxes = std::make_unique<Mailboxes>(communicator);
  MPI_Comm_set_attr(communicator.handle(), key, mailboxes.get());
  all().push_back(mailboxes.get());
  return *mailboxes.release();
}

bool Mailboxes::unified(const Communicator& communicator) {
  MPI_Win window = MPI_WIN_NULL;
  void* data = nullptr;
  if (MPI_Win_allocate(kLine, 1, MPI_INFO_NULL, communicator.handle(), static_cast<void*>(&data), &window) !=
      MPI_SUCCESS) {
    return false;
  }
  int* model = nullptr;
  int is_set = 0;
  MPI_Win_get_attr(window, MPI_WIN_MODEL, static_cast<void*>(&model), &is_set);
  const bool one = is_set != 0 && *model == MPI_WIN_UNIFIED;
  MPI_Win_free(&window);
  return one;
}

size_t Mailboxes::payloads() const { return in_lines(2 * entries_ * boxes_ * sizeof(uint64_t)); }

void Mailboxes::reserve(size_t subdomains, const MailboxPlan& plan) {
  constexpr size_t kDirections = 27;
  // Sender and receiver compute offsets from the number of entries. This number must therefore be equal on
  // all ranks: it is determined by the rank with the most subdomains.
  uint64_t most = subdomains;
  communicator_.check(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, communicator_.handle()),
                      "MPI_Allreduce");
  const size_t entries = most * kDirections;
  const bool same = window_ != MPI_WIN_NULL && entries_ == entries && boxes_ == plan.boxes;
  int enough = same && room_ >= plan.bytes() ? 1 : 0;
  communicator_.check(MPI_Allreduce(MPI_IN_PLACE, &enough, 1, MPI_INT, MPI_MIN, communicator_.handle()),
                      "MPI_Allreduce");
  if (enough == 0) {
    release();
    ++generation_;
    entries_ = entries;
    boxes_ = plan.boxes;
    const size_t room = std::max(room_, plan.bytes());
    check_room(payloads() + room);
    room_ = room;
    void* data = nullptr;
    communicator_.check(MPI_Win_allocate(static_cast<MPI_Aint>(payloads() + room_), 1, MPI_INFO_NULL,
                                         communicator_.handle(), static_cast<void*>(&data), &window_),
                        "MPI_Win_allocate");
    data_ = static_cast<char*>(data);
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    communicator_.check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  }
}

void Mailboxes::check_room(size_t bytes) const {
  MPI_Comm node = MPI_COMM_NULL;
  communicator_.check(MPI_Comm_split_type(communicator_.handle(), MPI_COMM_TYPE_SHARED, communicator_.rank(),
                                          MPI_INFO_NULL, &node),
                      "MPI_Comm_split_type");
  uint64_t required = (bytes + kPage - 1) / kPage * kPage;
  communicator_.check(MPI_Allreduce(MPI_IN_PLACE, &required, 1, MPI_UINT64_T, MPI_SUM, node),
                      "MPI_Allreduce");
  MPI_Comm_free(&node);
  // Maxima over the nodes that lack memory: the required bytes, and the complement of the available bytes.
  const uint64_t available = available_shared_memory();
  const bool lacking = required > available;
  std::array<uint64_t, 2> most{lacking ? required : 0, lacking ? ~available : 0};
  communicator_.check(
      MPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_UINT64_T, MPI_MAX, communicator_.handle()),
      "MPI_Allreduce");
  if (most[0] == 0) return;
  throw OutOfMemory("the method rma in /dev/shm of a node", most[0], ~most[1],
                    "make /dev/shm larger (mount -o remount,size=1G /dev/shm, docker run --shm-size=1g) or "
                    "remove rma from the transfer methods");
}

void Mailboxes::reset() {
  // The neighbours have no messages in transit, and start new messages only after all ranks have returned
  // from this function.
  for (size_t entry = 0; entry < entries_; ++entry) {
    for (size_t box = 0; box < boxes_; ++box) {
      store(ready(entry, box), 0);
      store(taken(entry, box), 0);
    }
  }
  communicator_.check(MPI_Win_sync(window_), "MPI_Win_sync");
  sent.assign(entries_, 0);
  received.assign(entries_, 0);
}

void Mailboxes::release() {
  if (window_ == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
  data_ = nullptr;
}

bool Mailboxes::is_taken(size_t entry, size_t count) const {
  return load(taken(entry, count % boxes_)) == count + 1;
}

bool Mailboxes::has_free(size_t entry) const {
  return sent[entry] < boxes_ || is_taken(entry, sent[entry] - boxes_);
}

bool Mailboxes::empty() const {
  int flag = 0;
  communicator_.check(
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_.handle(), &flag, MPI_STATUS_IGNORE),
      "MPI_Iprobe");
  communicator_.check(MPI_Win_sync(window_), "MPI_Win_sync");
  for (size_t entry = 0; entry < entries_; ++entry) {
    for (size_t count = sent[entry] - std::min(sent[entry], boxes_); count < sent[entry]; ++count) {
      if (!is_taken(entry, count)) return false;
    }
  }
  return true;
}

uint64_t Mailboxes::load(size_t offset) const {
  return __atomic_load_n(reinterpret_cast<uint64_t*>(data_ + offset), __ATOMIC_ACQUIRE);
}

void Mailboxes::store(size_t offset, uint64_t value) const {
  __atomic_store_n(reinterpret_cast<uint64_t*>(data_ + offset), value, __ATOMIC_RELEASE);
}

}  // namespace halocline
