// inferstatd: collects and stores records from workers and answers queries.
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/stop.h"
#include "server/collector/collector.h"
#include "server/collector/options.h"

enum { EXIT_USAGE = 2, EXIT_UNREACHABLE = 4 };
enum { TURN_MS = 1000, ADDRESSES_SIZE = 1024 };

static int fail(const struct error *err, int code)
{
    log_write(LOG_LEVEL_ERROR, "%s", err->text);
    return code;
}

static const char *addresses_text(char out[ADDRESSES_SIZE], const struct options *options)
{
    char text[ADDRESS_TEXT_SIZE];
    out[0] = '\0';
    for (unsigned i = 0; i < options->listen_count; i++)
        (void)text_append(out, ADDRESSES_SIZE, " ", "%s", address_text(text, &options->listen[i]));
    return out;
}

static void log_ready(const struct options *options)
{
    char addresses[ADDRESSES_SIZE];
    log_write(LOG_LEVEL_INFO, "ready: listening on %s, store %s",
              addresses_text(addresses, options), options->db);
}

// Prints the result of a successful --check-config.
static int print_valid(const struct options *options)
{
    char addresses[ADDRESSES_SIZE];
    const int n = printf("inferstatd: the options and files are right: listens on %s, store %s\n",
                         addresses_text(addresses, options), options->db);
    return n < 0 || fflush(stdout) != 0 ? EXIT_UNREACHABLE : EXIT_SUCCESS;
}

// Set by SIGHUP: reload the keys, the alert rules and the secrets of the metrics.
static volatile sig_atomic_t reload_wanted;

static void on_reload(int number)
{
    (void)number;
    reload_wanted = 1;
}

static void warn_of_insecure(const struct options *options)
{
    char text[ADDRESS_TEXT_SIZE];
    for (unsigned i = 0; i < options->listen_count; i++)
        if (options->insecure && !address_is_local(&options->listen[i]))
            log_write(LOG_LEVEL_WARNING,
                      "%s: NOT SECURE: whoever gets there can read all records and send false "
                      "ones, and nothing is encrypted (--insecure)",
                      address_text(text, &options->listen[i]));
}

static void log_keys(const struct options *options, const struct wire_keypair *keys)
{
    char text[WIRE_KEY_TEXT_SIZE];
    if (options->key[0])
        log_write(LOG_LEVEL_INFO, "TCP is for the keys in %s; the collector's own public key is %s",
                  options->authorized_keys, wire_key_text(text, keys->public_key));
}

static void reload(struct collector *collector)
{
    struct error err = {0};
    reload_wanted = 0;
    if (collector_reload(collector, &err) == STATUS_OK)
        log_write(
            LOG_LEVEL_INFO,
            "the authorized keys, the alert rules and the secrets of the metrics were read again");
    else
        log_write(LOG_LEVEL_ERROR, "%s (the previous ones stay)", err.text);
}

// Sends `state` ("READY=1") to the service manager (the sd_notify protocol of systemd), whose
// socket is a path, or an abstract name that begins with '@'; NULL or empty: none.  Errors are
// ignored.
static void notify(const char *socket_path, const char *state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (!socket_path || (socket_path[0] != '/' && socket_path[0] != '@'))
        return;
    const size_t size = strlen(socket_path);
    if (size >= sizeof name.sun_path)
        return;
    memcpy(name.sun_path, socket_path, size);
    if (name.sun_path[0] == '@')
        name.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&name, length);
    (void)close(fd);
}

// The service manager's watchdog timeout; 0: none.
static uint64_t watchdog_ns(void)
{
    int64_t microseconds = 0;
    const char *text = getenv("WATCHDOG_USEC");
    if (!text ||
        parse_int(&microseconds, text, 1, INT64_C(86400000000), "WATCHDOG_USEC", NULL) != STATUS_OK)
        return 0;
    return (uint64_t)microseconds * 1000;
}

static void wait_for_stop(struct collector *collector, const char *manager)
{
    const uint64_t watchdog = watchdog_ns();
    struct pollfd event = {.fd = stop_fd(), .events = POLLIN};
    while (!stop_requested()) {
        (void)poll(&event, 1, TURN_MS);
        if (reload_wanted)
            reload(collector);
        collector_poll(collector);
        // Not while a thread hangs: the service manager then restarts the collector without
        // loss of records.
        if (watchdog && collector_is_alive(collector, watchdog / 2))
            notify(manager, "WATCHDOG=1");
    }
}

static int serve(const struct options *options, const struct wire_keypair *keys)
{
    struct error err = {0};
    struct collector *collector = NULL;
    const struct sigaction again = {.sa_handler = on_reload};
    warn_of_insecure(options);
    if (stop_install(&err) != STATUS_OK || sigaction(SIGHUP, &again, NULL) != 0 ||
        collector_start(&collector, options, keys, &err) != STATUS_OK)
        return fail(&err, EXIT_UNREACHABLE);

    const char *manager = getenv("NOTIFY_SOCKET");
    log_keys(options, keys);
    log_ready(options);
    notify(manager, "READY=1");
    wait_for_stop(collector, manager);
    notify(manager, "STOPPING=1");
    collector_stop(collector);
    log_write(LOG_LEVEL_INFO, "stopped");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    files_open_standard();
    struct error err = {0};
    struct options options;
    const struct options_environment environment = {.collector = getenv("INFERSTAT_COLLECTOR"),
                                                    .runtime_dir = getenv("XDG_RUNTIME_DIR"),
                                                    .system_folder = "/etc/inferstat"};
    log_open("inferstatd", LOG_LEVEL_INFO);
    struct wire_keypair keys = {0};
    enum status status = options_read(&options, argc, argv, &environment, &err);
    if (status != STATUS_OK)
        return fail(&err, EXIT_USAGE);
    if (options.help) {
        options_help(stdout);
        return fflush(stdout) != 0 ? EXIT_UNREACHABLE : EXIT_SUCCESS;
    }
    if (options.version)
        return printf("inferstatd %s\n", INFERSTAT_VERSION) < 0 ? EXIT_UNREACHABLE : EXIT_SUCCESS;
    log_open("inferstatd", options.log_level);
    status = options_check(&options, &keys, &err);
    if (status != STATUS_OK)
        return fail(&err, EXIT_USAGE);
    const int code = options.check_config ? print_valid(&options) : serve(&options, &keys);
    explicit_bzero(&keys, sizeof keys);
    return code;
}
