// Reports the program's state to the service manager (the sd_notify protocol): a datagram to
// the socket named by NOTIFY_SOCKET.
#ifndef INFERSTAT_COLLECTOR_THREADS_NOTIFY_H
#define INFERSTAT_COLLECTOR_THREADS_NOTIFY_H

// Sends `state` ("READY=1", "STOPPING=1") to `socket_path` (a path, or an
// abstract name that begins with '@'; NULL or empty: no service manager).  Errors
// are ignored.
void notify_send(const char *socket_path, const char *state);

#endif
