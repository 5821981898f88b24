// make_pages <TEMPLATE: prints a manual page: the template with each @WORD@ replaced by what the
// tables of records and metrics say.  The build makes inferstat-schema(7) and inferstat-metrics(7)
// with it.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"
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

__attribute__((format(printf, 1, 2))) static void roff_text(const char *format, ...)
{
    char line[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_escaped(line);
    putchar('\n');
}

static void roff_section(const char *prefix, const char *name)
{
    printf(".SS \"%s", prefix);
    put_escaped(name);
    printf("\"\n");
}

// A tagged paragraph: `tag` in bold, followed by `behind` in roman.
static void roff_tag(const char *tag, const char *behind)
{
    printf(".TP\n.BR \"");
    put_escaped(tag);
    printf("\" \"");
    put_escaped(behind);
    printf("\"\n");
}

// ---- Parts ----------------------------------------------------------------------------

static void put_kind(enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    roff_section("", info->name);
    roff_text("A row is %s (kind %d).", info->meaning, (int)kind);
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *column = &info->columns[i];
        const char *unit = unit_name(column->unit);
        char behind[TEXT_SIZE];
        (void)snprintf(behind, sizeof behind, "  %s%s%s%s", column_type_name(column->type),
                       *unit ? ", " : "", unit, column->maybe ? ", may be NULL" : "");
        roff_tag(column->name, behind);
        roff_text("%s", column->meaning);
    }
}

static void put_run(void)
{
    put_kind(RECORD_KIND_RUN);
}

static void put_kinds(void)
{
    for (int kind = RECORD_KIND_RUN + 1; kind < (int)RECORD_KIND_COUNT; kind++)
        put_kind((enum record_kind)kind);
}

// The views of kinds, with the metrics that only they have.
static void put_views(void)
{
    unsigned count;
    const struct record_derived *derived = record_derived(&count);
    for (int kind = RECORD_KIND_RUN + 1; kind < (int)RECORD_KIND_COUNT; kind++) {
        roff_section("v_", record_kind_info((enum record_kind)kind)->name);
        roff_text("The table %s%s.", record_kind_info((enum record_kind)kind)->name,
                  kind == RECORD_KIND_LOAD         ? ", and floor_ns: the minimum duration of the "
                                                     "load, its bytes / the device's measured rate "
                                                     "of copies from the host"
                  : kind == RECORD_KIND_LOAD_STAGE ? ", and model and device of the load"
                                                   : "");
        for (unsigned i = 0; i < count; i++) {
            char behind[TEXT_SIZE];
            if (derived[i].kind != (enum record_kind)kind)
                continue;
            (void)snprintf(behind, sizeof behind, "  real, %s, may be NULL",
                           unit_name(derived[i].unit));
            roff_tag(derived[i].name, behind);
            roff_text("%s", derived[i].meaning);
        }
    }
}

// Every metric that can be averaged.
static void put_metrics(void)
{
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        const struct query_metric *metric = &metrics[i];
        char unit[TEXT_SIZE];
        if (i == 0 || metric->kind != metrics[i - 1].kind) {
            roff_section("", record_kind_info(metric->kind)->name);
            roff_text("%s.", record_kind_info(metric->kind)->meaning);
        }
        (void)snprintf(unit, sizeof unit, "  %s", unit_name(metric->unit));
        roff_tag(metric->name, unit);
        roff_text("%s.", metric->meaning);
        if (metric->derived)
            roff_text("Derived: %s / (%s).", metric->derived->numerator,
                      metric->derived->denominator);
    }
}

// The values of all enumerations that columns have.
static void put_enumerations(void)
{
    static const struct {
        enum column_type type;
        const char *name;
    } types[] = {{COLUMN_STATUS, "status"},
                 {COLUMN_FINISH, "finish"},
                 {COLUMN_RUN_END, "end"},
                 {COLUMN_SYNC, "sync"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *text;
        roff_tag(types[i].name, "");
        for (int64_t n = 0; (text = column_enum_text(types[i].type, n)); n++)
            printf("%s%lld %s", n ? ", " : "", (long long)n, text);
        printf(".\n");
    }
}

static void put_application(void)
{
    printf("%#x", (unsigned)SCHEMA_APPLICATION_ID);
}

static const struct {
    const char *word;
    void (*put)(void); // NULL: prints `number`
    int number;
} parts[] = {
    {"@run@\n", put_run, 0},
    {"@kinds@\n", put_kinds, 0},
    {"@views@\n", put_views, 0},
    {"@metrics@\n", put_metrics, 0},
    {"@enumerations@\n", put_enumerations, 0},
    {"@version@", NULL, SCHEMA_VERSION},
    {"@application@", put_application, 0},
    {"@buckets@", NULL, SKETCH_PER_OCTAVE},
};

static void put_line(const char *line)
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
        if (parts[part].put)
            parts[part].put();
        else
            printf("%d", parts[part].number);
        line += strlen(parts[part].word) - 1;
    }
}

int main(void)
{
    char line[TEXT_SIZE];
    while (fgets(line, sizeof line, stdin))
        put_line(line);
    if (!ferror(stdin) && fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    (void)fputs("make_pages: cannot read or write\n", stderr);
    return 1;
}
