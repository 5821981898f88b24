// inferstatd: collects records from workers, keeps them, answers queries.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/log.h"
#include "common/sys/stop.h"
#include "server/collector/collector.h"
#include "server/collector/notify.h"
#include "server/collector/options.h"

enum { EXIT_USAGE = 2, EXIT_UNREACHABLE = 4 };

static int fail(const struct error *err, int code)
{
    log_write(LOG_LEVEL_ERROR, "%s", err->text);
    return code;
}

static void say_ready(const struct options *options)
{
    char addresses[1024] = "";
    size_t used = 0;
    for (unsigned i = 0; i < options->listen_count && used < sizeof addresses; i++) {
        char text[ADDRESS_TEXT_SIZE];
        const int n = snprintf(addresses + used, sizeof addresses - used, "%s%s", i ? " " : "",
                               address_text(text, &options->listen[i]));
        used += n > 0 ? (size_t)n : 0;
    }
    log_write(LOG_LEVEL_INFO, "ready: listening on %s, store %s", addresses, options->db);
}

static int serve(const struct options *options)
{
    struct error err = {0};
    struct collector *collector = NULL;
    struct collector_config config = {.listen_count = options->listen_count,
                                      .db = options->db,
                                      .db_is_default = options->db_is_default};
    memcpy(config.listen, options->listen, sizeof config.listen);
    if (stop_install(&err) != STATUS_OK || collector_start(&collector, &config, &err) != STATUS_OK)
        return fail(&err, EXIT_UNREACHABLE);

    const char *manager = getenv("NOTIFY_SOCKET");
    say_ready(options);
    notify_send(manager, "READY=1");
    struct pollfd wish = {.fd = stop_fd(), .events = POLLIN};
    while (!stop_requested())
        (void)poll(&wish, 1, -1);
    notify_send(manager, "STOPPING=1");
    collector_stop(collector);
    log_write(LOG_LEVEL_INFO, "stopped");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct options options;
    const struct options_environment environment = {.collector = getenv("INFERSTAT_COLLECTOR"),
                                                    .runtime_dir = getenv("XDG_RUNTIME_DIR")};
    log_open("inferstatd", LOG_LEVEL_INFO);
    const enum status status = options_read(&options, argc, argv, &environment, &err);
    if (status != STATUS_OK)
        return fail(&err, EXIT_USAGE);
    if (options.help)
        return fputs(options_help(), stdout) < 0 ? EXIT_UNREACHABLE : EXIT_SUCCESS;
    if (options.version)
        return printf("inferstatd %s\n", INFERSTAT_VERSION) < 0 ? EXIT_UNREACHABLE : EXIT_SUCCESS;
    log_open("inferstatd", options.log_level);
    if (options.check_config)
        return EXIT_SUCCESS;
    return serve(&options);
}
