// make_pages <TEMPLATE: prints a manual page, with each @WORD@ of the template replaced by what the
// tables in the code say.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/man/pages.h"
#include "common/core/query/query.h"
#include "common/core/stats/sketch.h"
#include "common/store/schema/schema.h"

enum { TEXT_SIZE = 4096 };

// ---- roff -----------------------------------------------------------------------------

static void put_escaped(const char *text)
{
    static const char *const escapes[128] = {
        ['\\'] = "\\e", ['-'] = "\\-", ['"'] = "\\(dq", ['\''] = "\\(aq"};
    if (text[0] == '.' || text[0] == '\'')
        printf("\\&");
    for (; *text; text++) {
        const char *escape = (unsigned char)*text < 128 ? escapes[(unsigned char)*text] : NULL;
        if (escape)
            printf("%s", escape);
        else
            putchar(*text);
    }
}

void roff_text(const char *format, ...)
{
    char line[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_escaped(line);
    putchar('\n');
}

void roff_section(const char *title)
{
    printf(".SS \"");
    put_escaped(title);
    printf("\"\n");
}

void roff_tag(const char *tag, const char *behind)
{
    printf(".TP\n.BR \"");
    put_escaped(tag);
    printf("\" \"");
    put_escaped(behind);
    printf("\"\n");
}

// ---- Parts ----------------------------------------------------------------------------

// Every metric that can be averaged.
static enum status put_metrics(struct error *err)
{
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    (void)err;
    for (unsigned i = 0; i < count; i++) {
        const struct query_metric *metric = &metrics[i];
        char unit[TEXT_SIZE];
        if (i == 0 || metric->kind != metrics[i - 1].kind) {
            roff_section(record_kind_info(metric->kind)->name);
            roff_text("%s.", record_kind_info(metric->kind)->meaning);
        }
        (void)snprintf(unit, sizeof unit, "  %s", unit_name(metric->unit));
        roff_tag(metric->name, unit);
        roff_text("%s.", metric->meaning);
        if (metric->derived)
            roff_text("Derived: %s / (%s).", metric->derived->numerator,
                      metric->derived->denominator);
    }
    return STATUS_OK;
}

// The values of all enumerations that columns have.
static enum status put_enumerations(struct error *err)
{
    static const struct {
        enum column_type type;
        const char *name;
    } types[] = {{COLUMN_STATUS, "status"},
                 {COLUMN_FINISH, "finish"},
                 {COLUMN_RUN_END, "end"},
                 {COLUMN_SYNC, "sync"}};
    (void)err;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *text;
        roff_tag(types[i].name, "");
        for (int64_t n = 0; (text = column_enum_text(types[i].type, n)); n++)
            printf("%s%lld %s", n ? ", " : "", (long long)n, text);
        printf(".\n");
    }
    return STATUS_OK;
}

static enum status put_application(struct error *err)
{
    (void)err;
    printf("%#x", (unsigned)SCHEMA_APPLICATION_ID);
    return STATUS_OK;
}

static const struct {
    const char *word;
    enum status (*put)(struct error *err); // NULL: prints `number`
    int number;
} parts[] = {
    {"@records@\n", page_records, 0},
    {"@tables@\n", page_tables, 0},
    {"@views@\n", page_views, 0},
    {"@metrics@\n", put_metrics, 0},
    {"@enumerations@\n", put_enumerations, 0},
    {"@version@", NULL, SCHEMA_VERSION},
    {"@application@", put_application, 0},
    {"@buckets@", NULL, SKETCH_PER_OCTAVE},
};

static enum status put_line(const char *line, struct error *err)
{
    for (; *line; line++) {
        size_t part = 0;
        while (part < sizeof parts / sizeof *parts &&
               strncmp(line, parts[part].word, strlen(parts[part].word)) != 0)
            part++;
        if (part == sizeof parts / sizeof *parts) {
            putchar(*line);
            continue;
        }
        if (!parts[part].put)
            printf("%d", parts[part].number);
        else if (parts[part].put(err) != STATUS_OK)
            return err->status;
        line += strlen(parts[part].word) - 1;
    }
    return STATUS_OK;
}

int main(void)
{
    struct error err = {0};
    char *line = NULL;
    size_t size = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && getline(&line, &size, stdin) > 0)
        status = put_line(line, &err);
    free(line);
    if (status == STATUS_OK && !ferror(stdin) && fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "make_pages: %s\n", err.text[0] ? err.text : "cannot read or write");
    return 1;
}
