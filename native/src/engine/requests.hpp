// What a process is asked from outside: to stop, and by which signals.
#pragma once

namespace halocline {

// Asks every engine of this process to stop; may be called from a signal handler.
void request_stop() noexcept;
// Requests a stop because of a signal; may be a signal handler.
void stop_on_signal(int number) noexcept;
// 0 where no stop is requested, 1 where a caller requests it, and 1 + the number of a signal.
int stop_requested() noexcept;
// Notes the request that all ranks follow, as `stop_requested` counts, and forgets the one of this process.
void follow_stop(int request) noexcept;
// The signal of the last request that was followed or forgotten; 0 where it came from no signal.
int stopping_signal() noexcept;
// Forgets the request; returns whether there was one that no run has followed.
bool forget_stop() noexcept;
// Notes a signal, for whoever asks; may be a signal handler.
void note_signal(int number) noexcept;
// The last signal that was noted; 0 where none was.
int noted_signal() noexcept;
void forget_signal() noexcept;

}  // namespace halocline
