#include "tests/integration/collector/collector_fixture.h"

#include <signal.h>

#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"

char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
struct daemon collector;
struct producer producer;

int collector_set_up(__attribute__((unused)) void **state)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    (void)snprintf(address, sizeof address, "ipc://%s/c", folder);
    return 0;
}

int collector_tear_down(__attribute__((unused)) void **state)
{
    const int code = daemon_end(&collector, SIGTERM);
    folder_remove(folder);
    if (code != 0) // also a sanitizer's verdict
        print_error("it ended with %d: %s\n", code, collector.output);
    return code == 0 ? 0 : -1;
}

void collector_start(const char *option, const char *value)
{
    const char *const argv[] = {INFERSTATD, "--db", path, "--listen", address, option, value, NULL};
    if (!daemon_start(&collector, argv))
        fail_msg("%s", collector.output);
}

const char *endpoint(const char *service)
{
    static _Thread_local char text[FOLDER_PATH_SIZE + 32];
    (void)snprintf(text, sizeof text, "%s/%s", address, service);
    return text;
}

int64_t integer(const char *sql)
{
    struct error err = {0};
    struct sqlite3 *db = NULL;
    int64_t value = 0;
    if (database_open_reader(&db, path, &err) != STATUS_OK ||
        database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    database_close(db);
    return value;
}
