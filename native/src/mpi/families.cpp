// Functions of the MPI standard's ABI that call a library with the ABI of MPICH or of Open MPI.
#include "mpi/families.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi/standard.hpp"

namespace halocline::mpi {

namespace {

// --- families: constants have the values of mpi.h of MPICH 3.1 to 5, and of Open MPI 4 and 5 ---

using Predefined = std::pair<uintptr_t, uintptr_t>;  // handle of the standard, handle of the library

template <typename Handle>
uintptr_t number(Handle handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

// MPICH, and libraries that follow its ABI initiative, such as Intel MPI. Handles are numbers.
struct Mpich {
  using Handle = int;
  struct Status {
    int count_low, count_high_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
  };
  static constexpr intptr_t kInPlace = -1, kStatusIgnore = 1;
  static constexpr int kAnySource = -2, kAnyTag = -1, kErrInStatus = 17, kCommTypeShared = 1, kNoCheck = 1024;
  static constexpr int kTagUb = 0x64400001, kWinModel = 0x66000009, kUnified = 2;

  static Handle handle(uintptr_t number) { return static_cast<int>(number); }
  static uintptr_t number_of(Handle handle) { return static_cast<unsigned>(handle); }

  static std::vector<Predefined> predefined(const Library&) {
    return {
        {number(MPI_COMM_NULL), 0x04000000},    {number(MPI_COMM_WORLD), 0x44000000},
        {number(MPI_COMM_SELF), 0x44000001},    {number(MPI_WIN_NULL), 0x20000000},
        {number(MPI_MESSAGE_NULL), 0x2c000000}, {number(MPI_INFO_NULL), 0x1c000000},
        {number(MPI_REQUEST_NULL), 0x2c000000}, {number(MPI_ERRORS_RETURN), 0x54000001},
        {number(MPI_OP_NULL), 0x18000000},      {number(MPI_MAX), 0x58000001},
        {number(MPI_MIN), 0x58000002},          {number(MPI_SUM), 0x58000003},
        {number(MPI_REPLACE), 0x5800000d},      {number(MPI_DATATYPE_NULL), 0x0c000000},
        {number(MPI_INT), 0x4c000405},          {number(MPI_FLOAT), 0x4c00040a},
        {number(MPI_DOUBLE), 0x4c00080b},       {number(MPI_CHAR), 0x4c000101},
        {number(MPI_BYTE), 0x4c00010d},         {number(MPI_UINT64_T), 0x4c00083e},
    };
  }

  static MPI_Comm_copy_attr_function* no_copy(const Library&) { return nullptr; }

  static void read(const Status& status, MPI_Status& result) {
    result.MPI_SOURCE = status.MPI_SOURCE;
    result.MPI_TAG = status.MPI_TAG;
    result.MPI_ERROR = status.MPI_ERROR;
    result.MPI_internal[0] = status.count_low;
    result.MPI_internal[1] = status.count_high_and_cancelled;
  }
  static Status written(const MPI_Status& status) {
    return {status.MPI_internal[0], status.MPI_internal[1], status.MPI_SOURCE, status.MPI_TAG,
            status.MPI_ERROR};
  }
};

// Open MPI. Handles are addresses, and those of predefined objects are addresses of variables.
struct OpenMpi {
  using Handle = void*;
  struct Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, cancelled;
    size_t count;
  };
  static constexpr intptr_t kInPlace = 1, kStatusIgnore = 0;
  static constexpr int kAnySource = -1, kAnyTag = -1, kErrInStatus = 18, kCommTypeShared = 0, kNoCheck = 1;
  static constexpr int kTagUb = 0, kWinModel = 11, kUnified = 0;

  static Handle handle(uintptr_t number) { return mpi::predefined<void*>(number); }
  static uintptr_t number_of(Handle handle) { return number(handle); }

  static std::vector<Predefined> predefined(const Library& library) {
    const auto variable = [&library](const char* name) { return number(library.symbol(name)); };
    return {
        {number(MPI_COMM_NULL), variable("ompi_mpi_comm_null")},
        {number(MPI_COMM_WORLD), variable("ompi_mpi_comm_world")},
        {number(MPI_COMM_SELF), variable("ompi_mpi_comm_self")},
        {number(MPI_WIN_NULL), variable("ompi_mpi_win_null")},
        {number(MPI_MESSAGE_NULL), variable("ompi_message_null")},
        {number(MPI_INFO_NULL), variable("ompi_mpi_info_null")},
        {number(MPI_REQUEST_NULL), variable("ompi_request_null")},
        {number(MPI_ERRORS_RETURN), variable("ompi_mpi_errors_return")},
        {number(MPI_OP_NULL), variable("ompi_mpi_op_null")},
        {number(MPI_MAX), variable("ompi_mpi_op_max")},
        {number(MPI_MIN), variable("ompi_mpi_op_min")},
        {number(MPI_SUM), variable("ompi_mpi_op_sum")},
        {number(MPI_REPLACE), variable("ompi_mpi_op_replace")},
        {number(MPI_DATATYPE_NULL), variable("ompi_mpi_datatype_null")},
        {number(MPI_INT), variable("ompi_mpi_int")},
        {number(MPI_FLOAT), variable("ompi_mpi_float")},
        {number(MPI_DOUBLE), variable("ompi_mpi_double")},
        {number(MPI_CHAR), variable("ompi_mpi_char")},
        {number(MPI_BYTE), variable("ompi_mpi_byte")},
        {number(MPI_UINT64_T), variable("ompi_mpi_uint64_t")},
    };
  }

  static MPI_Comm_copy_attr_function* no_copy(const Library& library) {
    return library.function<MPI_Comm_copy_attr_function>("OMPI_C_MPI_COMM_NULL_COPY_FN");
  }

  static void read(const Status& status, MPI_Status& result) {
    result.MPI_SOURCE = status.MPI_SOURCE;
    result.MPI_TAG = status.MPI_TAG;
    result.MPI_ERROR = status.MPI_ERROR;
    result.MPI_internal[0] = status.cancelled;
    std::memcpy(&result.MPI_internal[1], &status.count, sizeof status.count);
  }
  static Status written(const MPI_Status& status) {
    Status result{status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR, status.MPI_internal[0], 0};
    std::memcpy(&result.count, &status.MPI_internal[1], sizeof result.count);
    return result;
  }
};

// --- conversion of arguments ---

MPI_Comm null_of(MPI_Comm) { return MPI_COMM_NULL; }
MPI_Datatype null_of(MPI_Datatype) { return MPI_DATATYPE_NULL; }
MPI_Errhandler null_of(MPI_Errhandler) { return nullptr; }
MPI_Info null_of(MPI_Info) { return MPI_INFO_NULL; }
MPI_Message null_of(MPI_Message) { return MPI_MESSAGE_NULL; }
MPI_Op null_of(MPI_Op) { return MPI_OP_NULL; }
MPI_Request null_of(MPI_Request) { return MPI_REQUEST_NULL; }
MPI_Win null_of(MPI_Win) { return MPI_WIN_NULL; }

template <typename T>
concept Handle = requires(T handle) { null_of(handle); };

// Library's handles of predefined objects, by the handle of the standard. The standard limits the latter.
template <typename Family>
std::array<typename Family::Handle, 0x260>& predefined_handles() {
  static std::array<typename Family::Handle, 0x260> handles{};
  return handles;
}

template <typename Family>
typename Family::Handle to_library(uintptr_t handle) {
  const auto& handles = predefined_handles<Family>();
  return handle < handles.size() ? handles[handle] : Family::handle(handle);
}

// A library returns no predefined handle except the null handle and those of communicators, which the engine
// only passes back.
template <typename Family, Handle T>
T from_library(typename Family::Handle handle) {
  const T null = null_of(T{});
  return handle == to_library<Family>(number(null)) ? null : predefined<T>(Family::number_of(handle));
}

// Argument of a call: `Type` is its type in the library, and a conversion operator returns its value. The
// destructor converts results, after the call.
template <typename Family, typename T>
struct Argument {
  using Type = T;
  T value;
  operator Type() const { return value; }
};

template <typename Family, Handle T>
struct Argument<Family, T> {
  using Type = typename Family::Handle;
  T value;
  operator Type() const { return to_library<Family>(number(value)); }
};

template <typename Family, Handle T>
struct Argument<Family, T*> {
  using Type = typename Family::Handle*;
  explicit Argument(T* argument) : result(argument), value(to_library<Family>(number(*argument))) {}
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  ~Argument() { *result = from_library<Family, T>(value); }
  operator Type() { return &value; }

  T* result;
  typename Family::Handle value;
};

template <typename Family>
struct Argument<Family, MPI_Status*> {
  using Type = typename Family::Status*;
  explicit Argument(MPI_Status* argument) : result(argument) {}
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  ~Argument() {
    if (result != MPI_STATUS_IGNORE) Family::read(value, *result);
  }
  operator Type() { return result == MPI_STATUS_IGNORE ? predefined<Type>(Family::kStatusIgnore) : &value; }

  MPI_Status* result;
  typename Family::Status value{};
};

template <typename Family>
struct Argument<Family, const MPI_Status*> {
  using Type = const typename Family::Status*;
  explicit Argument(const MPI_Status* argument) : value(Family::written(*argument)) {}
  operator Type() const { return &value; }

  typename Family::Status value;
};

template <typename Family>
struct Argument<Family, const void*> {  // of send buffers
  using Type = const void*;
  const void* value;
  operator Type() const {
    return value == MPI_IN_PLACE ? predefined<void*>(static_cast<uintptr_t>(Family::kInPlace)) : value;
  }
};

template <typename Family>
struct Argument<Family, const MPI_Datatype*> {  // an array: type_create_struct() converts it
  using Type = const typename Family::Handle*;
  explicit Argument(const MPI_Datatype*) {}
  operator Type() const { return nullptr; }
};

// Conversion of the arguments of a function. `function` is the pointer that the engine calls.
template <typename Family, auto* function>
struct Call;

template <typename Family, typename... Arguments, int (**function)(Arguments...)>
struct Call<Family, function> {
  static inline int (*real)(typename Argument<Family, Arguments>::Type...) = nullptr;

  static int call(Arguments... arguments) { return real(Argument<Family, Arguments>{arguments}...); }
};

// --- functions with arguments that have no type of their own, or with arrays ---

// Array that needs no allocation if it is short, since polls convert their requests.
template <typename T>
class Buffer {
 public:
  explicit Buffer(int count) {
    if (static_cast<size_t>(count) > fixed_.size()) longer_.resize(static_cast<size_t>(count));
  }
  T* data() { return longer_.empty() ? fixed_.data() : longer_.data(); }

 private:
  std::array<T, 64> fixed_;
  std::vector<T> longer_;
};

template <typename Family>
struct Functions {
  template <auto* function>
  using To = Call<Family, function>;

  static int source_of(int rank) { return rank == MPI_ANY_SOURCE ? Family::kAnySource : rank; }
  static int tag_of(int tag) { return tag == MPI_ANY_TAG ? Family::kAnyTag : tag; }

  static int level_of(int level) {
    constexpr std::array levels{MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                MPI_THREAD_MULTIPLE};
    return levels.at(static_cast<size_t>(level));
  }

  // Handles of some requests, in the order of the requests. No request but the null handle is predefined.
  // Without the table of predefined handles, the conversion is a vector loop.
  class Requests {
   public:
    Requests(int count, MPI_Request* requests) : requests_(requests), handles_(count) {
      std::transform(requests, requests + count, data(),
                     [null = to_library<Family>(number(MPI_REQUEST_NULL))](MPI_Request request) {
                       return request == MPI_REQUEST_NULL ? null : Family::handle(number(request));
                     });
    }
    typename Family::Handle* data() { return handles_.data(); }
    // Update a request whose handle has changed.
    void update(int n) { requests_[n] = from_library<Family, MPI_Request>(data()[n]); }

   private:
    MPI_Request* requests_;
    Buffer<typename Family::Handle> handles_;
  };

  static int startall(int count, MPI_Request* requests) {
    Requests converted(count, requests);
    const int code = To<&MPI_Startall>::real(count, converted.data());
    for (int n = 0; n < count; ++n) converted.update(n);
    return code;
  }

  // The engine ignores the statuses.
  static int testall(int count, MPI_Request* requests, int* flag, MPI_Status*) {
    Requests converted(count, requests);
    const int code = To<&MPI_Testall>::real(count, converted.data(), flag,
                                            predefined<typename Family::Status*>(Family::kStatusIgnore));
    for (int n = 0; *flag != 0 && n < count; ++n) converted.update(n);
    return code;
  }

  // Only the requests that have completed change.
  static int testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
    Requests converted(count, requests);
    Buffer<typename Family::Status> results(count);
    const int code = To<&MPI_Testsome>::real(count, converted.data(), done, indices, results.data());
    for (int n = 0; n < *done; ++n) {  // MPI_UNDEFINED is negative
      converted.update(indices[n]);
      Family::read(results.data()[n], statuses[n]);
    }
    return code == Family::kErrInStatus ? MPI_ERR_IN_STATUS : code;
  }

  static int type_create_struct(int count, const int* lengths, const MPI_Aint* places,
                                const MPI_Datatype* types, MPI_Datatype* result) {
    Buffer<typename Family::Handle> handles(count);
    std::transform(types, types + count, handles.data(),
                   [](MPI_Datatype type) { return to_library<Family>(number(type)); });
    return To<&MPI_Type_create_struct>::real(count, lengths, places, handles.data(),
                                             Argument<Family, MPI_Datatype*>{result});
  }

  static int improbe(int source, int tag, MPI_Comm communicator, int* flag, MPI_Message* message,
                     MPI_Status* status) {
    return To<&MPI_Improbe>::call(source_of(source), tag_of(tag), communicator, flag, message, status);
  }

  static int iprobe(int source, int tag, MPI_Comm communicator, int* flag, MPI_Status* status) {
    return To<&MPI_Iprobe>::call(source_of(source), tag_of(tag), communicator, flag, status);
  }

  static inline MPI_Comm_copy_attr_function* no_copy = nullptr;

  static int comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove,
                                int* key, void* state) {
    return To<&MPI_Comm_create_keyval>::call(copy == MPI_COMM_NULL_COPY_FN ? no_copy : copy, remove, key,
                                             state);
  }

  static int comm_get_attr(MPI_Comm communicator, int key, void* value, int* flag) {
    return To<&MPI_Comm_get_attr>::call(communicator, key == MPI_TAG_UB ? Family::kTagUb : key, value, flag);
  }

  static int win_get_attr(MPI_Win window, int, void* value, int* flag) {  // the engine reads only the model
    static int unified = MPI_WIN_UNIFIED, separate = MPI_WIN_SEPARATE;
    const int* model = nullptr;
    const int code = To<&MPI_Win_get_attr>::call(window, Family::kWinModel, static_cast<void*>(&model), flag);
    int* const result = model != nullptr && *model == Family::kUnified ? &unified : &separate;
    std::memcpy(value, static_cast<const void*>(&result), sizeof result);
    return code;
  }

  static int win_lock_all(int assertion, MPI_Win window) {
    return To<&MPI_Win_lock_all>::call(assertion == MPI_MODE_NOCHECK ? Family::kNoCheck : assertion, window);
  }

  static int comm_split_type(MPI_Comm communicator, int, int key, MPI_Info info, MPI_Comm* result) {
    return To<&MPI_Comm_split_type>::call(communicator, Family::kCommTypeShared, key, info, result);
  }

  static int query_thread(int* level) {
    const int code = To<&MPI_Query_thread>::call(level);
    *level = level_of(*level);
    return code;
  }
};

template <typename Family>
void bind(const Library& library) {
  for (const auto& [standard, own] : Family::predefined(library)) {
    predefined_handles<Family>().at(standard) = Family::handle(own);
  }
#define HC_BIND(name, arguments)                                                                        \
  Call<Family, &MPI_##name>::real =                                                                     \
      library.function<std::remove_pointer_t<decltype(Call<Family, &MPI_##name>::real)>>("MPI_" #name); \
  MPI_##name = &Call<Family, &MPI_##name>::call;
  HC_MPI_FUNCTIONS(HC_BIND)
#undef HC_BIND
  using F = Functions<Family>;
  MPI_Startall = &F::startall;
  MPI_Testall = &F::testall;
  MPI_Testsome = &F::testsome;
  MPI_Type_create_struct = &F::type_create_struct;
  MPI_Improbe = &F::improbe;
  MPI_Iprobe = &F::iprobe;
  F::no_copy = Family::no_copy(library);
  MPI_Comm_create_keyval = &F::comm_create_keyval;
  MPI_Comm_get_attr = &F::comm_get_attr;
  MPI_Win_get_attr = &F::win_get_attr;
  MPI_Win_lock_all = &F::win_lock_all;
  MPI_Comm_split_type = &F::comm_split_type;
  MPI_Query_thread = &F::query_thread;
}

}  // namespace

void bind_mpich(const Library& library) {
  bind<Mpich>(library);
  MPI_Comm_fromint = [](int communicator) { return from_library<Mpich, MPI_Comm>(communicator); };
  MPI_Comm_toint = [](MPI_Comm communicator) { return to_library<Mpich>(number(communicator)); };
}

void bind_open_mpi(const Library& library) {
  bind<OpenMpi>(library);
  static void* (*from_fortran)(int) = nullptr;
  static int (*to_fortran)(void*) = nullptr;
  from_fortran = library.function<void*(int)>("MPI_Comm_f2c");
  to_fortran = library.function<int(void*)>("MPI_Comm_c2f");
  MPI_Comm_fromint = [](int communicator) {
    return from_library<OpenMpi, MPI_Comm>(from_fortran(communicator));
  };
  MPI_Comm_toint = [](MPI_Comm communicator) {
    return to_fortran(to_library<OpenMpi>(number(communicator)));
  };
}

}  // namespace halocline::mpi
