// The part of the MPI 5.0 standard ABI that the engine uses: types, constants, and functions of a library
// that is loaded at run time. Values are those of the MPI standard 5.0, Appendix A.
#pragma once

#include <cstdint>
#include <string>

namespace halocline {

// Handles. Small values are predefined objects; all other values belong to the library.
using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
using MPI_Info = struct MPI_ABI_Info*;
using MPI_Message = struct MPI_ABI_Message*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Request = struct MPI_ABI_Request*;
using MPI_Win = struct MPI_ABI_Win*;
using MPI_Aint = intptr_t;

struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
};

using MPI_User_function = void(void*, void*, int*, MPI_Datatype*);
using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);

namespace mpi {

template <typename Handle>
Handle predefined(uintptr_t value) noexcept {
  return reinterpret_cast<Handle>(value);  // NOLINT(performance-no-int-to-ptr): the standard defines them so
}

}  // namespace mpi

inline const MPI_Op MPI_OP_NULL = mpi::predefined<MPI_Op>(0x20);
inline const MPI_Op MPI_SUM = mpi::predefined<MPI_Op>(0x21);
inline const MPI_Op MPI_MIN = mpi::predefined<MPI_Op>(0x22);
inline const MPI_Op MPI_MAX = mpi::predefined<MPI_Op>(0x23);
inline const MPI_Op MPI_REPLACE = mpi::predefined<MPI_Op>(0x3c);
inline const MPI_Comm MPI_COMM_NULL = mpi::predefined<MPI_Comm>(0x100);
inline const MPI_Comm MPI_COMM_WORLD = mpi::predefined<MPI_Comm>(0x101);
inline const MPI_Comm MPI_COMM_SELF = mpi::predefined<MPI_Comm>(0x102);
inline const MPI_Win MPI_WIN_NULL = mpi::predefined<MPI_Win>(0x110);
inline const MPI_Message MPI_MESSAGE_NULL = mpi::predefined<MPI_Message>(0x128);
inline const MPI_Info MPI_INFO_NULL = mpi::predefined<MPI_Info>(0x130);
inline const MPI_Errhandler MPI_ERRORS_RETURN = mpi::predefined<MPI_Errhandler>(0x143);
inline const MPI_Request MPI_REQUEST_NULL = mpi::predefined<MPI_Request>(0x180);
inline const MPI_Datatype MPI_DATATYPE_NULL = mpi::predefined<MPI_Datatype>(0x200);
inline const MPI_Datatype MPI_INT = mpi::predefined<MPI_Datatype>(0x209);
inline const MPI_Datatype MPI_FLOAT = mpi::predefined<MPI_Datatype>(0x210);
inline const MPI_Datatype MPI_DOUBLE = mpi::predefined<MPI_Datatype>(0x214);
inline const MPI_Datatype MPI_CHAR = mpi::predefined<MPI_Datatype>(0x243);
inline const MPI_Datatype MPI_BYTE = mpi::predefined<MPI_Datatype>(0x247);
inline const MPI_Datatype MPI_UINT64_T = mpi::predefined<MPI_Datatype>(0x259);

inline void* const MPI_BOTTOM = nullptr;
inline void* const MPI_IN_PLACE = mpi::predefined<void*>(1);
inline MPI_Status* const MPI_STATUS_IGNORE = nullptr;
inline MPI_Status* const MPI_STATUSES_IGNORE = nullptr;
inline MPI_Comm_copy_attr_function* const MPI_COMM_NULL_COPY_FN = nullptr;

constexpr int MPI_SUCCESS = 0, MPI_ERR_IN_STATUS = 19;
constexpr int MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -2, MPI_UNDEFINED = -32766;
constexpr int MPI_THREAD_SINGLE = 0, MPI_THREAD_FUNNELED = 1024;
constexpr int MPI_THREAD_SERIALIZED = 2048, MPI_THREAD_MULTIPLE = 4096;
constexpr int MPI_KEYVAL_INVALID = 0, MPI_TAG_UB = 501, MPI_WIN_MODEL = 605;
constexpr int MPI_WIN_SEPARATE = 322, MPI_WIN_UNIFIED = 321;
constexpr int MPI_COMM_TYPE_SHARED = 221, MPI_MODE_NOCHECK = 1024, MPI_MAX_ERROR_STRING = 512;

// Functions of the library. They are null until load() has returned.
// clang-format off
#define HC_MPI_FUNCTIONS(FUNCTION) \
  FUNCTION(Abort, (MPI_Comm, int)) \
  FUNCTION(Allreduce, (const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm)) \
  FUNCTION(Comm_create_keyval, (MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*)) \
  FUNCTION(Comm_dup, (MPI_Comm, MPI_Comm*)) \
  FUNCTION(Comm_free, (MPI_Comm*)) \
  FUNCTION(Comm_get_attr, (MPI_Comm, int, void*, int*)) \
  FUNCTION(Comm_rank, (MPI_Comm, int*)) \
  FUNCTION(Comm_set_attr, (MPI_Comm, int, void*)) \
  FUNCTION(Comm_set_errhandler, (MPI_Comm, MPI_Errhandler)) \
  FUNCTION(Comm_size, (MPI_Comm, int*)) \
  FUNCTION(Comm_split_type, (MPI_Comm, int, int, MPI_Info, MPI_Comm*)) \
  FUNCTION(Error_string, (int, char*, int*)) \
  FUNCTION(Finalized, (int*)) \
  FUNCTION(Get_address, (const void*, MPI_Aint*)) \
  FUNCTION(Get_count, (const MPI_Status*, MPI_Datatype, int*)) \
  FUNCTION(Iallreduce, (const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*)) \
  FUNCTION(Ibarrier, (MPI_Comm, MPI_Request*)) \
  FUNCTION(Improbe, (int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*)) \
  FUNCTION(Initialized, (int*)) \
  FUNCTION(Iprobe, (int, int, MPI_Comm, int*, MPI_Status*)) \
  FUNCTION(Isend, (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) \
  FUNCTION(Mrecv, (void*, int, MPI_Datatype, MPI_Message*, MPI_Status*)) \
  FUNCTION(Op_create, (MPI_User_function*, int, MPI_Op*)) \
  FUNCTION(Op_free, (MPI_Op*)) \
  FUNCTION(Query_thread, (int*)) \
  FUNCTION(Raccumulate, (const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Op, MPI_Win, \
                         MPI_Request*)) \
  FUNCTION(Recv_init, (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) \
  FUNCTION(Request_free, (MPI_Request*)) \
  FUNCTION(Rget, (void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win, MPI_Request*)) \
  FUNCTION(Send_init, (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) \
  FUNCTION(Start, (MPI_Request*)) \
  FUNCTION(Startall, (int, MPI_Request*)) \
  FUNCTION(Test, (MPI_Request*, int*, MPI_Status*)) \
  FUNCTION(Testall, (int, MPI_Request*, int*, MPI_Status*)) \
  FUNCTION(Testsome, (int, MPI_Request*, int*, int*, MPI_Status*)) \
  FUNCTION(Type_commit, (MPI_Datatype*)) \
  FUNCTION(Type_contiguous, (int, MPI_Datatype, MPI_Datatype*)) \
  FUNCTION(Type_create_hvector, (int, int, MPI_Aint, MPI_Datatype, MPI_Datatype*)) \
  FUNCTION(Type_create_struct, (int, const int*, const MPI_Aint*, const MPI_Datatype*, MPI_Datatype*)) \
  FUNCTION(Type_free, (MPI_Datatype*)) \
  FUNCTION(Win_allocate, (MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*)) \
  FUNCTION(Win_free, (MPI_Win*)) \
  FUNCTION(Win_get_attr, (MPI_Win, int, void*, int*)) \
  FUNCTION(Win_lock_all, (int, MPI_Win)) \
  FUNCTION(Win_set_errhandler, (MPI_Win, MPI_Errhandler)) \
  FUNCTION(Win_sync, (MPI_Win)) \
  FUNCTION(Win_unlock_all, (MPI_Win))
// clang-format on

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define HC_DECLARE(name, arguments) extern int(*MPI_##name) arguments;
HC_MPI_FUNCTIONS(HC_DECLARE)
#undef HC_DECLARE

// Communicator of a Fortran handle, and the reverse.
extern MPI_Comm (*MPI_Comm_fromint)(int);
extern int (*MPI_Comm_toint)(MPI_Comm);

namespace mpi {

// Bind the functions to a library, which stays loaded. Its ABI is that of the standard, of MPICH (and Intel
// MPI) or of Open MPI. Threads must not call MPI meanwhile. Throws std::runtime_error if the file is not such
// a library, or if the functions are bound to another library.
void load(const std::string& path);
// Return the path of the loaded library; empty if none is loaded.
const std::string& library();

}  // namespace mpi

}  // namespace halocline
