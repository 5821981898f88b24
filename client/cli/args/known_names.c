#include "client/cli/args/known_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/parse.h"
#include "common/core/base/text.h"

enum {
    NAMED_AT_MOST = 5, // in a note
    NEWEST = 1000,     // records that are looked at
};

// Where names are to be found: a query, and the column of its answer.
static const struct source {
    enum query_dimension dimension;
    enum query_kind query;
    enum record_kind kind; // of QUERY_RECORDS
    const char *column;
} sources[] = {
    {QUERY_BY_MODEL, QUERY_OVERVIEW, RECORD_KIND_COUNT, "model"},
    {QUERY_BY_MODEL, QUERY_RECORDS, RECORD_KIND_MODEL, "name"},
    {QUERY_BY_HOST, QUERY_OVERVIEW, RECORD_KIND_COUNT, "host"},
    {QUERY_BY_HOST, QUERY_RECORDS, RECORD_KIND_RUN, "host"},
    {QUERY_BY_DEVICE, QUERY_OVERVIEW, RECORD_KIND_COUNT, "device"},
    {QUERY_BY_DEVICE, QUERY_RECORDS, RECORD_KIND_DEVICE, "name"},
    {QUERY_BY_OPERATION, QUERY_AVERAGE, RECORD_KIND_COUNT, "operation"},
    {QUERY_BY_STAGE, QUERY_RECORDS, RECORD_KIND_LOAD_STAGE, "stage"},
    {QUERY_BY_WORKLOAD, QUERY_RECORDS, RECORD_KIND_PIPELINE, "workload"},
    {QUERY_BY_EVENT, QUERY_RECORDS, RECORD_KIND_EVENT, "event"},
};

enum status known_names_add(struct known_names *names, struct value value, struct error *err)
{
    if (value.type != VALUE_TEXT || value.text.size == 0)
        return STATUS_OK;
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->all[i]) == value.text.size &&
            memcmp(names->all[i], value.text.bytes, value.text.size) == 0)
            return STATUS_OK;
    char *name = strndup(value.text.bytes, value.text.size);
    if (!name || !ARRAY_RESERVE(&names->all, &names->room, names->count + 1)) {
        free(name);
        return error_no_memory(err, "names");
    }
    names->all[names->count++] = name;
    return STATUS_OK;
}

static enum status read_source(struct known_names *names, struct remote *remote,
                               const struct source *source, struct error *err)
{
    struct query query = {.kind = source->query};
    struct result *result = NULL;
    if (query.kind == QUERY_RECORDS) {
        query.records.kind = source->kind;
        query.limit = NEWEST;
    }
    if (query.kind == QUERY_AVERAGE) {
        (void)snprintf(query.metric, sizeof query.metric, "operation.duration_ns");
        query.group_by[query.group_count++] = source->dimension;
    }
    enum status status = remote_query(remote, &query, &result, err);
    if (status == STATUS_NO_DATA)
        return STATUS_OK;
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(result); row++)
        status = known_names_add(names, result_get(result, row, source->column), err);
    result_free(result);
    return status;
}

enum status known_names_read(struct known_names *names, struct cli *cli,
                             enum query_dimension dimension, struct error *err)
{
    const char *source = NULL;
    enum status status = cli_source(cli, &source, err); // opens it
    for (size_t i = 0; i < sizeof sources / sizeof *sources && status == STATUS_OK; i++)
        if (sources[i].dimension == dimension)
            status = read_source(names, cli->remote, &sources[i], err);
    return status;
}

void known_names_deinit(struct known_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->all[i]);
    free(names->all);
}

// ---- Filters ----------------------------------------------------------------------

// Writes the names that have `part`, as many as are to be named; returns how many have it.
static size_t find_part(const struct known_names *names, const char *part, char *out, size_t size)
{
    size_t found = 0, used = 0;
    for (size_t i = 0; i < names->count; i++) {
        char shown[QUERY_TEXT_SIZE];
        if (!strcasestr(names->all[i], part))
            continue;
        (void)text_escape(shown, sizeof shown, names->all[i], strlen(names->all[i]));
        if (found++ < NAMED_AT_MOST && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", found > 1 ? ", " : "", shown);
    }
    if (found > NAMED_AT_MOST && used < size)
        (void)snprintf(out + used, size - used, " and %zu more", found - NAMED_AT_MOST);
    return found;
}

// Writes `part` as a pattern of the names that have it, whatever their case; false if it is long.
static bool make_pattern(char out[QUERY_TEXT_SIZE], const char *part)
{
    size_t used = 0;
    out[used++] = '*';
    for (; *part; part++) {
        const bool is_letter = (*part | 32) >= 'a' && (*part | 32) <= 'z';
        if (used + 6 > QUERY_TEXT_SIZE)
            return false;
        if (is_letter)
            used += (size_t)snprintf(out + used, 5, "[%c%c]", *part & ~32, *part | 32);
        else
            out[used++] = *part;
    }
    out[used++] = '*';
    out[used] = '\0';
    return true;
}

static void say_unknown(struct cli *cli, const struct known_names *names, const char *what,
                        const char *name)
{
    char shown[QUERY_TEXT_SIZE], near[QUERY_TEXT_SIZE], all[QUERY_TEXT_SIZE] = "";
    if (cli->nothing[0]) // records that expired may have had it
        return;
    (void)text_escape(shown, sizeof shown, name, strlen(name));
    const char *nearest =
        parse_nearest(name, (const char *const *)names->all, (unsigned)names->count);
    for (size_t i = 0; i < names->count && !nearest; i++)
        nearest = strcasestr(names->all[i], name) ? names->all[i] : NULL;
    (void)snprintf(cli->nothing, sizeof cli->nothing, "no %s '%.200s'", what, shown);
    if (nearest)
        (void)text_append(cli->nothing, sizeof cli->nothing, "; ", "did you mean '%.200s'?",
                          text_escape(near, sizeof near, nearest, strlen(nearest)));
    else if (find_part(names, "", all, sizeof all) > 0)
        (void)text_append(cli->nothing, sizeof cli->nothing, "; ", "known: %s", all);
}

static bool is_known(const struct known_names *names, const char *wanted)
{
    bool found = false;
    for (size_t i = 0; i < names->count && !found; i++)
        found = query_name_matches(wanted, names->all[i]);
    return found;
}

static bool widen(struct cli *cli, enum query_dimension dimension, char name[QUERY_TEXT_SIZE])
{
    struct known_names names = {0};
    const char *what = query_dimension_name(dimension);
    char list[512] = "", pattern[QUERY_TEXT_SIZE];
    bool is_wider = false;
    if (known_names_read(&names, cli, dimension, NULL) == STATUS_OK && names.count > 0 &&
        !is_known(&names, name)) {
        const size_t found = find_part(&names, name, list, sizeof list);
        // What a program reads is of the names that it gave.
        is_wider = cli->options.format == FORMAT_TEXT && found > 0 &&
                   !option_given(&cli->options, OPTION_CHECK) && make_pattern(pattern, name);
        if (is_wider && !cli->has_widened)
            (void)fprintf(cli->env.notes, "inferstat: %s%s with '%s': %s\n", what,
                          cli_plural((int64_t)found), name, list);
        else
            say_unknown(cli, &names, what, name);
        if (is_wider)
            (void)snprintf(name, QUERY_TEXT_SIZE, "%s", pattern);
    }
    known_names_deinit(&names);
    return is_wider;
}

bool known_names_widen(struct cli *cli, struct query_filter *filter)
{
    static const enum query_dimension dimensions[] = {
        QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_OPERATION, QUERY_BY_EVENT};
    bool is_wider = false;
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
        if (filter->by[dimensions[i]][0])
            is_wider = widen(cli, dimensions[i], filter->by[dimensions[i]]) || is_wider;
    cli->has_widened = cli->has_widened || is_wider;
    return is_wider;
}
