// Requests to this process: stop requests and signals.
#pragma once

namespace halocline {

// Request a stop of every engine of this process. A signal handler may call it.
void request_stop() noexcept;
// Request a stop because of a signal. The function may be a signal handler.
void stop_on_signal(int number) noexcept;
// Return 0 if no stop is requested, 1 if request_stop() was called, and 1 + n if signal n requested a stop.
int stop_requested() noexcept;
// Record the stop request that all ranks follow, in the encoding of `stop_requested`. Clear the request of
// this process.
void follow_stop(int request) noexcept;
// Return the signal of the last request that was followed or cleared, or 0 if it was not from a signal.
int stopping_signal() noexcept;
// Clear the stop request. Return true if there was a request that no run has followed.
bool forget_stop() noexcept;
// Record a signal. The function may be a signal handler.
void note_signal(int number) noexcept;
// Return the last recorded signal, or 0 if there is none.
int noted_signal() noexcept;
void forget_signal() noexcept;

}  // namespace halocline
