#include "ranks/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "ranks/roll_call.hpp"

namespace halocline {

namespace {

int free_duplicate(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<MPI_Comm> duplicate(static_cast<MPI_Comm*>(value));
  return MPI_Comm_free(duplicate.get());
}

// MPI_COMM_NULL_COPY_FN: a duplicate of a communicator does not inherit the attribute.
int duplicate_key() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_duplicate, &created, nullptr);
    return created;
  }();
  return key;
}

MPI_Comm duplicate_of(MPI_Comm parent) {
  void* value = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(parent, duplicate_key(), static_cast<void*>(&value), &is_set);
  if (is_set != 0) return *static_cast<MPI_Comm*>(value);
  auto duplicate = std::make_unique<MPI_Comm>();
  if (MPI_Comm_dup(parent, duplicate.get()) != MPI_SUCCESS) {
    throw std::runtime_error("the communicator cannot be duplicated");
  }
  MPI_Comm_set_errhandler(*duplicate, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(parent, duplicate_key(), static_cast<void*>(duplicate.get()));
  return *duplicate.release();
}

}  // namespace

bool mpi_running() {
  if (mpi::library().empty()) return false;
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

Communicator::Communicator(int parent) {
  if (!mpi_running())
    throw std::runtime_error("MPI is not initialized, but the engine received a communicator");
  const MPI_Comm user = MPI_Comm_fromint(parent);
  if (user == MPI_COMM_NULL) throw std::runtime_error("the communicator is MPI_COMM_NULL");
  handle_ = duplicate_of(user);
  MPI_Comm_rank(handle_, &rank_);
  MPI_Comm_size(handle_, &size_);
  int is_set = 0;
  level_ = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level_);
  int* bound = nullptr;
  MPI_Comm_get_attr(handle_, MPI_TAG_UB, static_cast<void*>(&bound), &is_set);
  largest_tag_ = (is_set != 0 ? *bound : 32767) - 1;  // 32767 is the minimum of the MPI standard
}

Communicator::MpiPermission Communicator::mpi_permission(int thread) const {
  static std::mutex one_at_a_time;  // shared by all communicators
  MpiPermission permission(false);
  if (level_ >= MPI_THREAD_MULTIPLE) {
    permission.granted_ = true;
  } else if (level_ == MPI_THREAD_SERIALIZED) {
    permission.lock_ = std::unique_lock(one_at_a_time, std::try_to_lock);
    permission.granted_ = permission.lock_.owns_lock();
  } else {
    permission.granted_ = thread == 0;
  }
  return permission;
}

void Communicator::abort(const std::string& reason) const {
  std::fprintf(stderr, "halocline: rank %d: %s\n", rank_, reason.c_str());
  std::fflush(stderr);
  // The delay is necessary, since mpiexec discards unread output of a rank that aborts.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  MPI_Abort(MPI_COMM_WORLD, 1);  // with a duplicate communicator, MPI_Abort of MPICH 4.0 hangs
  std::_Exit(1);
}

void Communicator::abort_after_wait(double seconds, const std::string& something) const {
  // The limits of other ranks may expire later, since these ranks may begin to wait some sweeps later.
  const double patience = std::max(3.0, 0.1 * seconds);
  RollCall roll(*this, something);
  roll.receive_reports(patience);
  if (!roll.is_reporter()) roll.receive_reports(patience);  // meanwhile, another rank ends the run
  abort("waited " + std::to_string(std::lround(seconds)) + " s in vain for " + something + roll.diagnosis() +
        " (HALOCLINE_TIMEOUT sets the limit)");
}

void Communicator::fail(int code, const char* call) const {
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, words, &length);
  abort(std::string(call) + " failed: " + words);
}

}  // namespace halocline
