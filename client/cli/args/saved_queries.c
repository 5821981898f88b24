#include "client/cli/args/saved_queries.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/args/value_args.h"
#include "common/core/base/glyph.h"
#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/store/read/answer_cells.h"
#include "common/sys/config.h"

enum { NAME_SIZE = 64, NAMES_MAX = 1000 };

// ---- The file ----------------------------------------------------------------------

static int find(const struct result *list, const char *name)
{
    for (size_t row = 0; row < result_row_count(list); row++)
        if (strcmp(result_cell(list, row, 0).text.bytes, name) == 0)
            return (int)row;
    return -1;
}

// The file being read.
struct naming {
    struct result *list;
    FILE *notes;
};

// Adds a line of the file; its text is parsed when the query is used.
static enum status add_line(void *context, const char *name, const char *text, struct error *err)
{
    struct result *list = ((struct naming *)context)->list;
    if (strlen(name) >= NAME_SIZE || name[strspn(name, TEXT_NAME_CHARACTERS)] != '\0')
        return error_set(err, STATUS_INVALID,
                         "invalid name \"%.60s\": 1 to %d characters of a-z A-Z 0-9 . _ -", name,
                         NAME_SIZE - 1);
    if (query_verb_find(name))
        return error_set(err, STATUS_INVALID,
                         "\"%s\" is a verb of the query language and cannot be a name", name);
    if (find(list, name) >= 0)
        return error_set(err, STATUS_INVALID, "\"%s\" is given twice", name);
    if (result_row_count(list) == NAMES_MAX)
        return error_set(err, STATUS_INVALID, "more than %d queries", NAMES_MAX);
    (void)result_add_row(list);
    (void)result_set_text(list, 0, name, strlen(name));
    (void)result_set_text(list, 1, text, strlen(text));
    return result_status(list) == STATUS_OK ? STATUS_OK : error_no_memory(err, "saved queries");
}

static void complain(void *context, const struct error *why)
{
    const struct naming *naming = context;
    char text[4 * ERROR_TEXT_SIZE];
    (void)fprintf(naming->notes, "inferstat: WARNING: %s\n",
                  text_escape(text, sizeof text, why->text, strlen(why->text)));
}

static enum status read_file(struct result *list, FILE *notes, struct error *err)
{
    struct naming naming = {.list = list, .notes = notes};
    char path[KEYS_PATH_SIZE];
    if (keys_default_path(path, sizeof path, "queries", NULL) != STATUS_OK)
        return STATUS_OK; // no home, no file
    enum status status = config_read(path, add_line, complain, &naming, err);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status saved_queries_list(const struct cli *cli, struct result **out, struct error *err)
{
    static const struct answer_column columns[] = {{"name", UNIT_NONE}, {"text", UNIT_NONE}};
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    status = read_file(*out, cli->env.notes, err);
    if (status != STATUS_OK)
        result_free(*out);
    return status;
}

// ---- Reading -----------------------------------------------------------------------

// Prints the line, escaped for the terminal, with marks under the place.
static void point(FILE *notes, const char *line, struct query_place place)
{
    char *all = text_escape_new(line, strlen(line));
    char *before = text_escape_new(line, place.at);
    char *marked = text_escape_new(line + place.at, place.size);
    if (all && before && marked) {
        (void)fprintf(notes, "  %s\n  %*s^", all, glyph_text_width(before), "");
        for (int i = 1; i < glyph_text_width(marked); i++)
            (void)fputc('~', notes);
        (void)fputc('\n', notes);
    }
    free(all);
    free(before);
    free(marked);
}

static enum status read_text(struct cli *cli, const char *text, struct query *out,
                             struct error *err)
{
    struct query_place place = {0};
    enum status status = query_text_read(out, text, time_arg_read, cli, &place, err);
    if (status != STATUS_OK)
        point(cli->env.notes, text, place);
    return status;
}

// STATUS_INVALID if a saved query has a similar name.
static enum status unknown_name(const struct result *list, const char *name, struct error *err)
{
    const char *names[NAMES_MAX];
    const size_t count = result_row_count(list);
    for (size_t row = 0; row < count; row++)
        names[row] = result_cell(list, row, 0).text.bytes;
    const char *nearest = parse_nearest(name, names, (unsigned)count);
    return nearest ? error_set(err, STATUS_INVALID, "%s: unknown query (did you mean %s?)", name,
                               nearest)
                   : STATUS_OK;
}

static enum status read_word(struct cli *cli, const char *word, struct query *out,
                             struct error *err)
{
    struct result *list = NULL;
    enum status status = saved_queries_list(cli, &list, err);
    if (status != STATUS_OK)
        return status;
    const int row = find(list, word);
    if (row >= 0) {
        status = read_text(cli, result_cell(list, (size_t)row, 1).text.bytes, out, err);
        if (status != STATUS_OK)
            (void)error_prefix(err, status, "%s", word);
    } else {
        status = unknown_name(list, word, err);
        if (status == STATUS_OK)
            status = read_text(cli, word, out, err);
    }
    result_free(list);
    return status;
}

enum status saved_queries_read(struct cli *cli, const char *text, struct query *out,
                               struct error *err)
{
    // Only a single word can be a name: for other text the file is not read.
    const bool may_be_name = text[0] != '\0' && text[strspn(text, TEXT_NAME_CHARACTERS)] == '\0';
    enum status status = may_be_name && !query_verb_find(text) ? read_word(cli, text, out, err)
                                                               : read_text(cli, text, out, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "%s", cli->command->name);
}
