// Service manager notification (the sd_notify protocol of systemd): reports the program's state
// in a datagram to the service manager's socket.
#ifndef INFERSTAT_COLLECTOR_THREADS_NOTIFY_H
#define INFERSTAT_COLLECTOR_THREADS_NOTIFY_H

// Sends `state` ("READY=1", "STOPPING=1") to `socket_path`, the value of the environment variable
// NOTIFY_SOCKET: a path, or an abstract name that begins with '@'; NULL or empty: no service
// manager.  Errors are ignored.
void notify_send(const char *socket_path, const char *state);

#endif
