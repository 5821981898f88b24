#include "common/store/sqlite/admin_log.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"

#define DAY_NS INT64_C(86400000000000)

void admin_act_set_user(char actor[ADMIN_ACTOR_SIZE], uint32_t uid, const char *place)
{
    struct passwd entry, *found = NULL;
    char room[4096], number[16];
    // The host's own users: a directory on the network could keep a thread waiting.
    FILE *users = fopen("/etc/passwd", "re");
    while (users && fgetpwent_r(users, &entry, room, sizeof room, &found) == 0 &&
           entry.pw_uid != uid)
        ;
    if (users)
        (void)fclose(users);
    (void)snprintf(number, sizeof number, "%u", (unsigned)uid);
    (void)snprintf(actor, ADMIN_ACTOR_SIZE, "user %.40s%s", found ? entry.pw_name : number, place);
}

void admin_act_set(struct admin_act *act, const char *action, const char *detail)
{
    act->action = action;
    (void)text_copy(act->detail, sizeof act->detail, detail);
}

static void describe_filter(struct admin_act *act, const struct query_filter *filter)
{
    char line[QUERY_LINE_SIZE] = "";
    struct error ignored;
    if (query_text_write_filter(line, sizeof line, filter, &ignored) != STATUS_OK)
        (void)snprintf(line, sizeof line, "a window that has no text");
    (void)text_copy(act->detail, sizeof act->detail, query_filter_narrows(filter) ? line : "all");
}

static void describe_alert(struct admin_act *act, const struct query *query)
{
    static const char *const actions[QUERY_ALERT_EDIT_COUNT] = {
        [QUERY_ALERT_ACK] = "alert acknowledge",
        [QUERY_ALERT_UNACK] = "alert unacknowledge",
        [QUERY_ALERT_SILENCE] = "alert silence",
        [QUERY_ALERT_UNSILENCE] = "alert unsilence",
    };
    char line[QUERY_LINE_SIZE] = "", detail[sizeof line + QUERY_KEY_SIZE + QUERY_RULE_SIZE + 8];
    struct error ignored;
    act->action = actions[query->alert.edit];
    if (query_text_write_filter(line, sizeof line, &query->filter, &ignored) != STATUS_OK)
        line[0] = '\0';
    if (query->alert.edit == QUERY_ALERT_SILENCE)
        (void)snprintf(detail, sizeof detail, "%s %s: %s",
                       query->alert.rule[0] ? query->alert.rule : "all", line, query->alert.text);
    else
        (void)snprintf(detail, sizeof detail, "%lld: %s", (long long)query->alert.id,
                       query->alert.text);
    (void)text_copy(act->detail, sizeof act->detail, detail);
}

void admin_act_of_query(struct admin_act *act, const struct query *query)
{
    static const char *const actions[QUERY_KIND_COUNT] = {
        [QUERY_CLEAR] = "clear",
        [QUERY_AUTHORIZE] = "authorize",
        [QUERY_REVOKE] = "revoke",
        [QUERY_BASELINE_SAVE] = "baseline save",
        [QUERY_BASELINE_DELETE] = "baseline delete",
        [QUERY_COPY] = "backup",
        [QUERY_IMPORT] = "import",
        [QUERY_FORGET] = "forget",
    };
    act->action = actions[query->kind];
    if (query->kind == QUERY_CLEAR ||
        (query->kind == QUERY_FORGET && query_filter_narrows(&query->filter)))
        describe_filter(act, &query->filter);
    else if (query->kind == QUERY_AUTHORIZE || query->kind == QUERY_REVOKE ||
             query->kind == QUERY_FORGET)
        (void)snprintf(act->detail, sizeof act->detail, "%s%s%s", query->key.name,
                       query->key.name[0] && query->key.text[0] ? " " : "", query->key.text);
    else if (query->kind == QUERY_COPY || query->kind == QUERY_IMPORT)
        (void)text_copy(act->detail, sizeof act->detail, query->file.path);
    else if (query->kind == QUERY_ALERT_EDIT)
        describe_alert(act, query);
    else
        (void)text_copy(act->detail, sizeof act->detail, query->baseline.name);
    if (query->kind == QUERY_COPY && query->file.bundle)
        act->action = "bundle";
}

void admin_act_end(struct admin_act *act, enum status status, const struct error *why, int64_t rows)
{
    (void)text_copy(act->outcome, sizeof act->outcome, status == STATUS_OK ? "ok" : why->text);
    act->rows = rows;
}

static enum status add_row(sqlite3 *db, const struct admin_act *act, struct error *err)
{
    return database_execf(db, err,
                          "INSERT INTO admin(at_ns, actor, action, detail, outcome, rows)"
                          " VALUES(%lld, %Q, %Q, %Q, %Q, %lld);"
                          "DELETE FROM admin WHERE id <= (SELECT max(id) FROM admin) - %d",
                          (long long)clock_wall_ns(), act->actor, act->action, act->detail,
                          act->outcome, (long long)act->rows, ADMIN_LOG_ROWS);
}

void admin_log_add(sqlite3 *db, const struct admin_act *act)
{
    struct error err;
    char detail[2 * ADMIN_DETAIL_SIZE];
    log_write(LOG_LEVEL_INFO, "%s: %s %s: %s, %lld rows", act->actor, act->action,
              text_escape(detail, sizeof detail, act->detail, strlen(act->detail)), act->outcome,
              (long long)act->rows);
    if (add_row(db, act, &err) != STATUS_OK)
        log_write(LOG_LEVEL_ERROR, "%s (this is not in the store's list of acts)", err.text);
}

void admin_log_add_own(sqlite3 *db, struct admin_act *act, enum status status,
                       const struct error *why, int64_t rows)
{
    admin_act_set_user(act->actor, geteuid(), ", file");
    admin_act_end(act, status, why, rows);
    admin_log_add(db, act);
}

void admin_log_retention(sqlite3 *db, const char *what, int64_t rows)
{
    struct error err;
    struct admin_act act = {.actor = "inferstatd", .action = "retention", .outcome = "ok"};
    const int64_t now_ns = clock_wall_ns();
    (void)text_copy(act.detail, sizeof act.detail, what);
    act.rows = rows;
    enum status status = database_execf(
        db, &err,
        "UPDATE admin SET rows = rows + %lld, at_ns = %lld WHERE id = (SELECT max(id) FROM admin"
        " WHERE action = 'retention' AND detail = %Q) AND at_ns / %lld = %lld",
        (long long)rows, (long long)now_ns, what, (long long)DAY_NS, (long long)(now_ns / DAY_NS));
    if (status == STATUS_OK && sqlite3_changes(db) == 0)
        status = add_row(db, &act, &err);
    if (status != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "%s (what has expired is not in the list of acts)", err.text);
}
