#include "device/moves.hpp"

#include <algorithm>

namespace halocline::device {

namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kPiece = 4096;  // approximate cells per thread block

hc_layout shifted(hc_layout layout, const Index& by) {
  layout.at += by[0] * layout.s0 + by[1] * layout.s1 + by[2];
  return layout;
}

}  // namespace

hc_layout Moves::cells(const Subdomain& domain, size_t storage, const Index& lo, const Index& extent) const {
  const Index hi{lo[0] + extent[0], lo[1] + extent[1], lo[2] + extent[2]};
  if (storage >= fields_ || !domain.storages()[storage]->holds(lo, hi)) {
    throw std::invalid_argument("cells from " + text(lo) + " to " + text(hi) + " are not within storage " +
                                std::to_string(storage));
  }
  return shifted(domain.storages()[storage]->layout(), lo);
}

hc_layout Moves::dense(const Index& extent, size_t offset, size_t itemsize) const {
  if (offset % itemsize != 0) throw std::logic_error("a message is not aligned to its cells");
  return {static_cast<int64_t>(offset / itemsize), extent[1] * extent[2], extent[2]};
}

void Moves::pack(size_t storage, const Index& lo, const Index& extent, size_t offset) {
  const hc_layout source = cells(subdomain_, storage, lo, extent);
  add(Side::kOwn, source, Side::kMessages, dense(extent, offset, subdomain_.storages()[storage]->itemsize()),
      storage, extent);
}

void Moves::unpack(size_t storage, const Index& lo, const Index& extent, size_t offset) {
  const hc_layout target = cells(subdomain_, storage, lo, extent);
  add(Side::kMessages, dense(extent, offset, subdomain_.storages()[storage]->itemsize()), Side::kOwn, target,
      storage, extent);
}

void Moves::copy(const Subdomain& from, size_t storage, const Index& source, const Index& target,
                 const Index& extent) {
  const hc_layout source_layout = cells(from, storage, source, extent);
  add(Side::kOther, source_layout, Side::kOwn, cells(subdomain_, storage, target, extent), storage, extent);
}

void Moves::add(Side from, const hc_layout& source, Side to, const hc_layout& target, size_t storage,
                const Index& extent) {
  const auto number = [&](Side side) {
    return static_cast<int64_t>(side == Side::kOwn     ? storage
                                : side == Side::kOther ? fields_ + storage
                                                       : 2 * fields_);
  };
  const auto itemsize = static_cast<int64_t>(subdomain_.storages()[storage]->itemsize());
  // The pieces are whole planes, rows, or parts of rows.
  Index step = extent;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t rest = step[0] * step[1] * step[2] / step[axis];
    step[axis] = std::clamp<int64_t>(kPiece / std::max<int64_t>(rest, 1), 1, extent[axis]);
    if (step[0] * step[1] * step[2] <= kPiece) break;
  }
  Index at{};
  for (at[0] = 0; at[0] < extent[0]; at[0] += step[0]) {
    for (at[1] = 0; at[1] < extent[1]; at[1] += step[1]) {
      for (at[2] = 0; at[2] < extent[2]; at[2] += step[2]) {
        hc_piece piece{number(from), number(to), shifted(source, at), shifted(target, at), {}, itemsize};
        for (size_t axis = 0; axis < 3; ++axis)
          piece.extent[axis] = std::min(step[axis], extent[axis] - at[axis]);
        pieces_.push_back(piece);
      }
    }
  }
}

size_t Moves::close() {
  const size_t begin = launches_.empty() ? 0 : launches_.back().end;
  launches_.push_back({begin, pieces_.size()});
  return launches_.size() - 1;
}

void Moves::upload() {
  if (pieces_.empty()) return;
  kernel_ = subdomain_.kernel("hc_move_pieces", kThreads);
  const size_t bytes = pieces_.size() * sizeof(hc_piece);
  table_ = subdomain_.device().allocate(bytes);
  const auto queue = subdomain_.device().queue(false);
  queue->upload(*table_, 0, pieces_.data(), bytes);
  queue->finish();
}

void Moves::operator()(Queue& queue, size_t launch, const Subdomain* other, const Buffer* messages) const {
  const Range& range = launches_[launch];
  if (range.begin == range.end) return;
  const auto first = static_cast<int64_t>(range.begin);
  std::vector<Argument> arguments;
  arguments.reserve(2 * fields_ + 4);
  for (const auto& storage : subdomain_.storages()) arguments.emplace_back(&storage->buffer());
  // Unused arguments must be valid arrays, too.
  for (const auto& storage : (other == nullptr ? subdomain_ : *other).storages())
    arguments.emplace_back(&storage->buffer());
  arguments.emplace_back(messages == nullptr ? table_.get() : messages);
  arguments.emplace_back(table_.get());
  arguments.emplace_back(value(first));
  arguments.emplace_back(&subdomain_.control());
  queue.launch(*kernel_, {static_cast<uint32_t>(range.end - range.begin), 1, 1}, {kThreads, 1, 1}, arguments);
}

}  // namespace halocline::device
