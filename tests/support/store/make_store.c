// make_store FILE: writes the store of tests/golden/store.sql.
#include <stdio.h>
#include <unistd.h>

#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"

int main(int argc, char **argv)
{
    static char sql[65536];
    struct sqlite3 *db = NULL;
    struct error err = {.text = "give the path of a file that is not there yet"};
    FILE *file = fopen(STORE_SQL, "r");
    const size_t size = file ? fread(sql, 1, sizeof sql - 1, file) : 0;
    enum status status = STATUS_INVALID;
    if (file)
        (void)fclose(file);
    if (argc == 2 && size > 0 && access(argv[1], F_OK) != 0)
        status = database_open_writer(&db, argv[1], &err);
    if (status == STATUS_OK)
        status = database_exec(db, sql, &err);
    database_close(db);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "make_store: %s\n", err.text);
    return status == STATUS_OK ? 0 : 1;
}
