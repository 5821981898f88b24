// Posts BYTES bytes to a URL by the collector's HTTP client, for test_http_client.py: prints the
// status, the answer's code and how many milliseconds it took.  STOP_MS: it is stopped after that.
//   http_post URL BYTES [STOP_MS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "common/sys/clock.h"
#include "server/http/http_client.h"

int main(int argc, char **argv)
{
    struct error err = {.text = ""};
    long code = 0;
    if (argc < 3)
        return 2;
    const size_t size = strtoul(argv[2], NULL, 10);
    char *body = malloc(size + 1);
    const int stop_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (!body || stop_fd < 0 || http_client_begin(&err) != STATUS_OK)
        return 1;
    if (argc > 3)
        (void)timerfd_settime(
            stop_fd, 0, &(struct itimerspec){.it_value.tv_nsec = 1000000 * atol(argv[3])}, NULL);
    memset(body, 'x', size);
    const uint64_t began_ns = clock_monotonic_ns();
    const enum status status = http_client_post(argv[1], body, size, stop_fd, &code, &err);
    printf("%s|%ld|%llu|%s\n", status_text(status), code,
           (unsigned long long)((clock_monotonic_ns() - began_ns) / 1000000),
           status == STATUS_OK ? "" : err.text);
    free(body);
    http_client_end();
    return 0;
}
