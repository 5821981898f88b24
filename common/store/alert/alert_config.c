#include "common/store/alert/alert_config.h"

#include <sqlite3.h>

#include "common/store/read/reader.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"

enum status alert_config_save(struct sqlite3 *db, const void *file, struct error *err)
{
    const struct alert_file *saved = file;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "DELETE FROM alert_config WHERE kind <> 'hook' OR name NOT IN (''");
    for (size_t i = 0; i < saved->hook_count; i++)
        sqlite3_str_appendf(sql, ", %Q", saved->hooks[i].name);
    sqlite3_str_appendall(sql, ");DELETE FROM meta WHERE key GLOB '" ALERT_RULE_KEY "*';");
    for (size_t i = 0; i < saved->rule_count; i++)
        sqlite3_str_appendf(sql,
                            "INSERT INTO alert_config(kind, name) VALUES('rule', %Q);"
                            "INSERT INTO meta VALUES('" ALERT_RULE_KEY "%q', %Q);",
                            saved->rules[i].name, saved->rules[i].name, saved->rules[i].text);
    for (size_t i = 0; i < saved->hook_count; i++)
        sqlite3_str_appendf(sql,
                            "INSERT OR IGNORE INTO alert_config(kind, name) VALUES('hook', %Q);",
                            saved->hooks[i].name);
    sqlite3_str_appendall(sql, "DELETE FROM alert_delivery WHERE hook NOT IN"
                               " (SELECT name FROM alert_config WHERE kind = 'hook')");
    return database_exec_built(db, sql, err);
}

enum status alert_config_note_file(struct sqlite3 *db, const void *why, struct error *err)
{
    return database_execf(db, err,
                          "INSERT OR REPLACE INTO alert_config(kind, name, since_ns, error)"
                          " VALUES('file', '', %lld, %Q)",
                          (long long)clock_wall_ns(), (const char *)why);
}

enum status alert_config_save_health(struct sqlite3 *db, const struct alert_pass *pass,
                                     struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < pass->file->rule_count && status == STATUS_OK; i++) {
        const struct alert_rule_health *health = &pass->health[i];
        status = database_execf(db, err,
                                "UPDATE alert_config SET since_ns = nullif(%lld, 0),"
                                " error = nullif(%Q, '') WHERE kind = 'rule' AND name = %Q"
                                " AND coalesce(since_ns, 0) <> %lld",
                                (long long)health->since_ns, health->error,
                                pass->file->rules[i].name, (long long)health->since_ns);
    }
    return status;
}

enum status alert_config_check_rule(struct sqlite3 *db, const char *name, struct error *err)
{
    int64_t is_unknown = 0;
    enum status status = database_integerf(
        db, &is_unknown, err,
        "SELECT count(*) > 0 AND sum(name = %Q) = 0 FROM alert_config WHERE kind = 'rule'", name);
    if (status != STATUS_OK || !is_unknown)
        return status;
    return reader_unknown_name(db, "SELECT name FROM alert_config WHERE kind = 'rule'", "rule",
                               name, "inferstat alerts rules lists the built-in ones", err);
}
