// inferstat top
#include <signal.h>

#include "client/cli/cli.h"
#include "client/cli/output/rows.h"
#include "client/tui/tui.h"
#include "common/sys/stop.h"
#include "common/wire/keys.h"

static enum status write_rows(FILE *out, const struct export_list *list, bool is_json,
                              struct error *err)
{
    struct rows rows = {.out = out, .format = is_json ? FORMAT_JSON : FORMAT_CSV};
    for (size_t i = 0; i < list->count; i++)
        rows_write(&rows, list->result, list->rows[i], list->rows[i] + 1);
    return rows_end(&rows, STATUS_OK, err);
}

enum status command_top(struct cli *cli, struct error *err)
{
    if (!cli->env.in_is_terminal || !cli->env.out_is_terminal)
        return error_set(err, STATUS_INVALID,
                         "top: the dashboard needs a terminal (use inferstat summary, or "
                         "inferstat tail)");
    const char *source; // connection errors and warnings are printed before the dashboard starts
    enum status status = cli->options.db ? STATUS_OK : cli_source(cli, &source, err);
    if (status == STATUS_OK)
        status = stop_install(err);
    if (status != STATUS_OK)
        return status;
    stop_on(SIGQUIT); // Ctrl-\ would not restore the terminal
    struct remote_target target = cli_target(cli);
    char path[KEYS_PATH_SIZE];
    const char *settings =
        keys_default_path(path, sizeof path, "top.conf", NULL) == STATUS_OK ? path : NULL;
    struct tui_options options = {
        .target = &target,
        .filter = &cli->query.filter,
        .interval_seconds = (double)cli->options.interval_ns / 1e9,
        .ascii = option_given(&cli->options, OPTION_ASCII),
        .no_mouse = option_given(&cli->options, OPTION_NO_MOUSE),
        .no_color = !cli_has_colours(cli),
        .readonly = option_given(&cli->options, OPTION_READONLY),
        .compact = option_given(&cli->options, OPTION_COMPACT),
        .rows = write_rows,
        .settings = settings,
    };
    return tui_run(&options, err);
}
