#include "common/store/compare/model_facts.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

static enum status on_fact(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct model_facts *facts = context;
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const char *text = (const char *)sqlite3_column_text(row, 1);
    if (!name || !text)
        return STATUS_OK;
    if (strcmp(name, "parameters") == 0)
        facts->parameters = sqlite3_column_int64(row, 1);
    else if (strcmp(name, "file_bytes") == 0)
        facts->file_bytes = sqlite3_column_int64(row, 1);
    else if (strcmp(name, "quantisation") == 0)
        (void)snprintf(facts->quantisation, sizeof facts->quantisation, "%s", text);
    return STATUS_OK;
}

enum status model_facts_read(struct model_facts *out, struct store *store,
                             const struct environment *environment, const char *model,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    *out = (struct model_facts){0};
    sqlite3_str_appendf(sql,
                        "SELECT p.key, json_extract(p.value, '$[0]') FROM json_each(%Q, '$.model')"
                        " m, json_each(m.value) p WHERE m.key = %Q"
                        " AND json_array_length(p.value) = 1",
                        environment->json, model);
    return reader_scan(store, sql, NULL, on_fact, out, err);
}

static void answer_numbers(struct result *answer, const char *const keys[3], int64_t before,
                           int64_t after)
{
    if (before > 0)
        answer_int(answer, keys[0], before);
    if (after > 0)
        answer_int(answer, keys[1], after);
    if (before > 0 && after > 0)
        answer_real(answer, keys[2], (double)after / (double)before);
}

void model_facts_answer(struct result *answer, const struct model_facts facts[2])
{
    static const char *const parameters[] = {"before_parameters", "after_parameters",
                                             "parameters_ratio"};
    static const char *const file_bytes[] = {"before_file_bytes", "after_file_bytes",
                                             "file_bytes_ratio"};
    static const char *const quantisations[] = {"before_quantisation", "after_quantisation"};
    answer_numbers(answer, parameters, facts[0].parameters, facts[1].parameters);
    answer_numbers(answer, file_bytes, facts[0].file_bytes, facts[1].file_bytes);
    for (unsigned i = 0; i < 2; i++)
        if (facts[i].quantisation[0])
            answer_text(answer, quantisations[i], facts[i].quantisation);
}
