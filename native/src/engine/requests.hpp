// What a process is asked from outside: to stop, and by which signals.
#pragma once

namespace halocline {

// Asks every engine of this process to stop; may be called from a signal handler.
void request_stop() noexcept;
// Requests a stop because of a signal; may be a signal handler.
void stop_on_signal(int number) noexcept;
// The last signal that requested a stop; 0 where none did.
int stopping_signal() noexcept;
bool stop_requested() noexcept;
// Forgets the request; returns whether there was one that no run has followed.
bool forget_stop() noexcept;
// Notes a signal, for whoever asks; may be a signal handler.
void note_signal(int number) noexcept;
// The last signal that was noted; 0 where none was.
int noted_signal() noexcept;
void forget_signal() noexcept;

}  // namespace halocline
