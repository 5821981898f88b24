// Reports a load of a moment for each model that standard input names, one a line, until its end.
// Host, collector and folders come from the environment.
#include <stdio.h>
#include <string.h>

#include "common/monitor/inferstat.h"

int main(void)
{
    char line[256];
    struct inferstat_options options;
    struct inferstat_error err;
    struct inferstat_monitor *monitor;
    inferstat_options_init(&options);
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        struct inferstat_load *load =
            inferstat_load_begin(monitor, inferstat_name(monitor, line), 0);
        inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    }
    (void)inferstat_close(monitor, 5000000000, NULL);
    return 0;
}
