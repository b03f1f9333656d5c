// Time measurement of a run.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace halocline {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

enum class Activity { kCompute, kExchange, kReduction };

// Stopwatch that accumulates the time of one thread in each activity. It does nothing before start().
class Stopwatch {
 public:
  void start() {
    seconds_ = {};
    activity_ = Activity::kCompute;
    since_ = now();
    running_ = true;
  }
  void enter(Activity activity) {
    if (!running_ || activity == activity_) return;
    const double time = now();
    add(time);
    activity_ = activity;
  }
  void stop() {
    if (running_) add(now());
    running_ = false;
  }
  double seconds(Activity activity) const { return seconds_[static_cast<size_t>(activity)]; }

 private:
  void add(double time) {
    seconds_[static_cast<size_t>(activity_)] += time - since_;
    since_ = time;
  }

  std::array<double, 3> seconds_{};
  double since_ = 0;
  Activity activity_ = Activity::kCompute;
  bool running_ = false;
};

// Detector of waits that exceed a time limit. It reads the clock only at every 1024th call.
class Watchdog {
 public:
  explicit Watchdog(double limit) : limit_(limit) {}

  bool expired() {
    if (calls_++ % kInterval != 0) return false;
    const double time = now();
    if (calls_ == 1) since_ = time;
    return time - since_ > limit_;
  }
  void reset() { calls_ = 0; }

 private:
  static constexpr unsigned kInterval = 1024;

  double limit_, since_ = 0;
  unsigned calls_ = 0;
};

}  // namespace halocline
