// Operations and reductions on arrays, bit-for-bit identical to generated kernels, for evaluation in Python.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/bindings.hpp"
#include "halocline/elementary.hpp"
#include "halocline/random.hpp"
#include "halocline/reduce.hpp"
#include "storage/clones.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using Result = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Operand = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Operands = std::vector<Operand>;

enum class Op { kSqrt, kAbs, kSign, kExp, kLog, kSin, kCos, kMin, kMax, kPow, kFma, kRandom };
struct Operation {
  std::string_view name;
  size_t operands;
  Op op;
};
constexpr Operation kOperations[] = {
    {"sqrt", 1, Op::kSqrt}, {"abs", 1, Op::kAbs}, {"sign", 1, Op::kSign}, {"exp", 1, Op::kExp},
    {"log", 1, Op::kLog},   {"sin", 1, Op::kSin}, {"cos", 1, Op::kCos},   {"min", 2, Op::kMin},
    {"max", 2, Op::kMax},   {"pow", 2, Op::kPow}, {"fma", 3, Op::kFma},   {"random", 3, Op::kRandom},
};

template <typename F>
[[gnu::always_inline]] inline void each(double* to, const double* a, const double* b, const double* c,
                                        int64_t n, F f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i], c[i]);
}

HALOCLINE_CLONES void apply_op(Op op, double* to, const double* a, const double* b, const double* c,
                               int64_t n) {
  switch (op) {
    case Op::kSqrt:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_sqrt(a); });
    case Op::kAbs:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_abs(a); });
    case Op::kSign:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_sign(a); });
    case Op::kExp:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_exp(a); });
    case Op::kLog:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_log(a); });
    case Op::kSin:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_sin(a); });
    case Op::kCos:
      return each(to, a, b, c, n, [](double a, double, double) { return hc_cos(a); });
    case Op::kMin:
      return each(to, a, b, c, n, [](double a, double b, double) { return hc_min(a, b); });
    case Op::kMax:
      return each(to, a, b, c, n, [](double a, double b, double) { return hc_max(a, b); });
    case Op::kPow:
      return each(to, a, b, c, n, [](double a, double b, double) { return hc_pow(a, b); });
    case Op::kFma:
      return each(to, a, b, c, n, [](double a, double b, double c) { return hc_fma(a, b, c); });
    case Op::kRandom:
      return each(to, a, b, c, n, [](double a, double b, double c) { return hc_random(a, b, c); });
  }
}

// All operands have the length of the result.
void apply(const std::string& name, const Result& out, const Operands& x) {
  const auto* const known = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [&](const Operation& o) { return o.name == name; });
  if (known == std::end(kOperations)) throw std::invalid_argument("unknown operation " + name);
  const size_t count = known->operands;
  if (x.size() != count) throw std::invalid_argument("wrong number of operands");
  for (const Operand& operand : x)
    if (operand.shape(0) != out.shape(0))
      throw std::invalid_argument("operands and result have different lengths");
  apply_op(known->op, out.data(), x[0].data(), x[count > 1 ? 1 : 0].data(), x[count > 2 ? 2 : 0].data(),
           static_cast<int64_t>(out.shape(0)));
}

// Accumulator of one reduction.
class Accumulator {
 public:
  explicit Accumulator(const std::string& kind) { hc_reset(&accumulator_, kind_of(kind)); }

  void deposit(const Operand& x) {
    constexpr int64_t most = 1 << 20;  // a sum accepts fewer than 2^24 summands at once
    const int64_t n = static_cast<int64_t>(x.shape(0));
    for (int64_t i = 0; i < n; i += most) deposit_row(x.data() + i, n - i < most ? n - i : most);
  }

  nb::bytes state() const { return nb::bytes(&accumulator_, sizeof accumulator_); }

  void merge(const nb::bytes& other) {
    if (other.size() != sizeof accumulator_)
      throw std::invalid_argument("the state of an accumulator has another size");
    hc_accumulator from;
    std::memcpy(&from, other.data(), sizeof from);
    hc_merge(&accumulator_, &from);
  }

  double result() const { return hc_result(&accumulator_); }

 private:
  void deposit_row(const double* x, int64_t n) {
    switch (accumulator_.kind) {
      case HC_SUM:
        return hc_sum_deposit(&accumulator_, x, n);
      case HC_MIN:
        return hc_min_deposit(&accumulator_, x, n);
      case HC_MAX:
        return hc_max_deposit(&accumulator_, x, n);
      case HC_COUNT:
        return hc_count_deposit(&accumulator_, x, n);
      default:
        return hc_value_deposit(&accumulator_, x, n);
    }
  }

  hc_accumulator accumulator_;
};

}  // namespace

void bind_points(nb::module_& m) {
  m.def("apply", &apply, "op"_a, "out"_a, "operands"_a,
        "Apply an operation of generated kernels to each element of arrays of equal length.");
  nb::class_<Accumulator>(m, "Accumulator", "Accumulator of one reduction, as in generated kernels.")
      .def(nb::init<const std::string&>(), "kind"_a)
      .def("deposit", &Accumulator::deposit, "values"_a, "Add the values of an array.")
      .def("state", &Accumulator::state, "Return the state, for `merge` on another rank.")
      .def("merge", &Accumulator::merge, "state"_a, "Merge the state of another accumulator into this one.")
      .def("result", &Accumulator::result, "Return the reduced number.");
}

}  // namespace halocline
