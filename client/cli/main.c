// inferstat: the client.  Sets up streams and terminal for cli_run.
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/sys/log.h"

int main(int argc, char **argv)
{
    files_open_standard();
    (void)signal(SIGXFSZ, SIG_IGN); // writing past the file size limit fails like a full disk
    log_open("inferstat", LOG_LEVEL_WARNING);
    struct winsize size = {0};
    struct cli_environment env = {
        .in = stdin,
        .out = stdout,
        .notes = stderr,
        .in_is_terminal = isatty(STDIN_FILENO) == 1,
        .out_is_terminal = isatty(STDOUT_FILENO) == 1,
        .now_ns = clock_wall_ns(),
    };
    if (env.out_is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        env.width = size.ws_col;
    struct error err = {0};
    enum status status = cli_run(&env, argc, argv, &err);
    bool failed = ferror(stdout) != 0;
    if ((fflush(stdout) != 0 || failed) && status == STATUS_OK)
        status =
            error_set(&err, STATUS_IO, "standard output: cannot be written: %s", strerror(errno));
    int code = cli_exit_code(status);
    if (code != 0)
        log_write(LOG_LEVEL_ERROR, "%s", err.text);
    return code;
}
