#include "tests/bench/victoria.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "tests/bench/bench.h"

enum { READY_S = 20 };

static const char program[] = "/usr/bin/victoria-metrics";

bool victoria_exists(void)
{
    return access(program, X_OK) == 0;
}

int victoria_connect(const struct victoria *victoria)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(victoria->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return fd;
    }
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static bool send_bytes(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

void victoria_post(int fd, const char *bytes, size_t bytes_size)
{
    char text[2048];
    const int size = snprintf(text, sizeof text,
                              "POST /write HTTP/1.1\r\nHost: localhost\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              bytes_size);
    size_t used = 0;
    if (!send_bytes(fd, text, (size_t)size) || !send_bytes(fd, bytes, bytes_size))
        bench_die("victoria-metrics", "it takes no more");
    do {
        const ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0)
            bench_die("victoria-metrics", "it does not answer");
        used += (size_t)got;
        text[used] = '\0';
    } while (!strstr(text, "\r\n\r\n") && used < sizeof text - 1);
    if (strncmp(text, "HTTP/1.1 204", 12) != 0)
        bench_die("victoria-metrics", text);
}

char *victoria_get(const struct victoria *victoria, const char *path)
{
    char request[2048];
    size_t used = 0, room = 1 << 20;
    const int fd = victoria_connect(victoria);
    char *answer = malloc(room);
    const int size =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (fd < 0 || !answer || !send_bytes(fd, request, (size_t)size)) {
        if (fd >= 0)
            (void)close(fd);
        free(answer);
        return NULL;
    }
    ssize_t got;
    while (used < room - 1 && (got = recv(fd, answer + used, room - 1 - used, 0)) > 0)
        used += (size_t)got;
    (void)close(fd);
    answer[used] = '\0';
    return answer;
}

static void run_program(const struct victoria *victoria)
{
    char data[FOLDER_PATH_SIZE + 32], listen[64];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(data, sizeof data, "-storageDataPath=%s", victoria->folder);
    (void)snprintf(listen, sizeof listen, "-httpListenAddr=127.0.0.1:%u", victoria->port);
    (void)execl(program, program, data, listen, "-retentionPeriod=100y", "-search.latencyOffset=0s",
                "-loggerLevel=ERROR", (char *)NULL);
    _exit(127);
}

void victoria_start(struct victoria *victoria, const char *folder)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    const uint64_t deadline = clock_monotonic_ns() + READY_S * UINT64_C(1000000000);
    (void)folder_path(victoria->folder, folder, "victoria");
    victoria->port = bench_free_ports(1);
    victoria->pid = fork();
    if (victoria->pid == 0)
        run_program(victoria);
    for (bool ready = false; !ready; (void)nanosleep(&moment, NULL)) {
        char *answer = victoria_get(victoria, "/health");
        ready = answer && strstr(answer, "200 OK") != NULL;
        free(answer);
        if (clock_monotonic_ns() > deadline)
            bench_die("victoria-metrics", "it does not start");
    }
}

void victoria_stop(const struct victoria *victoria)
{
    int status;
    (void)kill(victoria->pid, SIGTERM);
    (void)waitpid(victoria->pid, &status, 0);
    folder_remove(victoria->folder);
}
