#include "common/store/compare/model_facts.h"

#include <sqlite3.h>

#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

static enum status on_facts(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct model_facts *facts = context;
    facts->parameters = sqlite3_column_int64(row, 0);
    facts->file_bytes = sqlite3_column_int64(row, 1);
    reader_copy_text(facts->quantisation, sizeof facts->quantisation, row, 2);
    return STATUS_OK;
}

// A fact, unless the model's runs have several.
#define FACT(name)                                                                                 \
    "(SELECT json_extract(value, '$[0]') FROM json_each(m.value) WHERE key = '" name               \
    "' AND json_array_length(value) = 1)"

enum status model_facts_read(struct model_facts *out, struct store *store,
                             const struct environment *environment, const char *model,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    *out = (struct model_facts){0};
    sqlite3_str_appendf(sql,
                        "SELECT " FACT("parameters") ", " FACT("file_bytes") ", " FACT(
                            "quantisation") " FROM json_each(%Q, '$.model') m WHERE m.key = %Q",
                        environment->json, model);
    return reader_scan(store, sql, NULL, on_facts, out, err);
}

void model_facts_answer(struct result *answer, const struct model_facts facts[2])
{
    static const char *const keys[][3] = {
        {"before_parameters", "after_parameters", "parameters_ratio"},
        {"before_file_bytes", "after_file_bytes", "file_bytes_ratio"}};
    static const char *const quantisations[] = {"before_quantisation", "after_quantisation"};
    const int64_t numbers[][2] = {{facts[0].parameters, facts[1].parameters},
                                  {facts[0].file_bytes, facts[1].file_bytes}};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned side = 0; side < 2; side++)
            if (numbers[i][side] > 0)
                answer_int(answer, keys[i][side], numbers[i][side]);
        if (numbers[i][0] > 0 && numbers[i][1] > 0)
            answer_real(answer, keys[i][2], (double)numbers[i][1] / (double)numbers[i][0]);
        if (facts[i].quantisation[0])
            answer_text(answer, quantisations[i], facts[i].quantisation);
    }
}
