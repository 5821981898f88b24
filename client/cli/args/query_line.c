#include "client/cli/args/query_line.h"

#include <inttypes.h>
#include <string.h>

#include "client/cli/args/value_args.h"
#include "common/core/query/query_text.h"

enum { PARTS_MAX = 40 };

// A line being written, with the option (or argument) that each part comes from.
struct line {
    char text[QUERY_LINE_SIZE];
    size_t used;
    bool full;
    struct {
        size_t end; // of the part in `text`
        const char *what;
    } parts[PARTS_MAX];
    unsigned part_count;
};

static void put(struct line *line, const char *text)
{
    const size_t size = strlen(text);
    line->full = line->full || size >= sizeof line->text - line->used;
    if (line->full)
        return;
    memcpy(line->text + line->used, text, size + 1);
    line->used += size;
}

static void put_quoted(struct line *line, const char *text)
{
    line->full =
        line->full || !query_word_write(line->text, sizeof line->text, &line->used, text, true);
}

// Ends a part that comes from `what`: "--by", or the command.
static void end_part(struct line *line, const char *what)
{
    put(line, " ");
    line->parts[line->part_count].end = line->used;
    line->parts[line->part_count++].what = what;
}

static void put_clause(struct line *line, enum query_clause clause, const char *value,
                       const char *what)
{
    put(line, query_clause_word(clause));
    put(line, " ");
    if (value)
        put_quoted(line, value);
    end_part(line, what);
}

static void put_count(struct line *line, uint32_t count, const char *what)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%" PRIu32, count);
    put_clause(line, QUERY_CLAUSE_LIMIT, text, what);
}

// "model,host" as words in quotes, so that nothing else is read from it.
static void put_groups(struct line *line, const char *list)
{
    put(line, query_clause_word(QUERY_CLAUSE_BY));
    for (const char *separator = " ";; separator = ",", list++) {
        char name[QUERY_TEXT_SIZE];
        const size_t size = strcspn(list, ",");
        (void)snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 0, list);
        put(line, separator);
        put_quoted(line, name);
        list += size;
        if (*list == '\0')
            break;
    }
    end_part(line, "--by");
}

static void put_filter(struct line *line, const struct cli_options *options)
{
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++) {
        static const char *const what[QUERY_DIMENSION_COUNT] = {
#define QUERY_LINE_OPTION(name, text) [QUERY_BY_##name] = "--" text,
            QUERY_DIMENSIONS(QUERY_LINE_OPTION)
#undef QUERY_LINE_OPTION
        };
        if (!options->where[i])
            continue;
        put(line, query_clause_word(QUERY_CLAUSE_WHERE));
        put(line, " ");
        put(line, query_dimension_name((enum query_dimension)i));
        put(line, "=");
        put_quoted(line, options->where[i]);
        end_part(line, i == QUERY_BY_CHUNK_BYTES                ? "--chunk-bytes"
                       : i == QUERY_BY_POOL_SIZE                ? "--pool-size"
                       : i == QUERY_BY_MODEL && options->models ? "--models"
                                                                : what[i]);
    }
    if (options->since)
        put_clause(line, QUERY_CLAUSE_SINCE, options->since, "--since");
    if (options->until)
        put_clause(line, QUERY_CLAUSE_UNTIL, options->until, "--until");
}

static void put_clauses(struct line *line, const struct query_verb *verb,
                        const struct cli_options *options)
{
    const unsigned takes = verb->clauses;
    if (takes >> QUERY_CLAUSE_BY & 1 && options->by)
        put_groups(line, options->by);
    put_filter(line, options);
    if (takes >> QUERY_CLAUSE_STEP & 1 && options->step)
        put_clause(line, QUERY_CLAUSE_STEP, options->step, "--step");
    if (takes >> QUERY_CLAUSE_SLO & 1 && options->slo)
        put_clause(line, QUERY_CLAUSE_SLO, options->slo, "--slo");
    if (takes >> QUERY_CLAUSE_OLDEST & 1 && option_given(options, OPTION_OLDEST))
        put_clause(line, QUERY_CLAUSE_OLDEST, NULL, "--oldest");
    if (takes >> QUERY_CLAUSE_OF & 1 && options->metric)
        put_clause(line, QUERY_CLAUSE_OF, options->metric, "--metric");
    if (takes >> QUERY_CLAUSE_MARGIN & 1 && options->margin)
        put_clause(line, QUERY_CLAUSE_MARGIN, options->margin, "--margin");
    if (takes >> QUERY_CLAUSE_FORCE & 1 && option_given(options, OPTION_FORCE))
        put_clause(line, QUERY_CLAUSE_FORCE, NULL, "--force");
    if (verb->kind == QUERY_SLOWEST)
        put_count(line, options->slowest, "--slowest");
    else if (takes >> QUERY_CLAUSE_LIMIT & 1 && option_given(options, OPTION_LIMIT))
        put_count(line, options->limit, "--limit");
}

// ---- Verbs --------------------------------------------------------------------

// True for "samples KIND", whose verb is KIND_samples.
static bool is_samples(const struct cli *cli)
{
    return strcmp(cli->command->name, "samples") == 0 && cli->options.argument_count > 0;
}

// The verb of the command with these options; NULL: it has none, or its argument is unknown.
static const struct query_verb *find_verb(const struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    const char *word = cli->command->verb ? cli->command->verb : cli->command->name;
    char kind[QUERY_TEXT_SIZE];
    if (is_samples(cli)) {
        (void)snprintf(kind, sizeof kind, "%s_samples", options->arguments[0]);
        word = kind;
    }
    if (option_given(options, OPTION_SLOWEST))
        word = "slowest";
    if (option_given(options, OPTION_AVERAGE) || option_given(options, OPTION_COMPARE))
        word = "stages";
    return query_verb_find(word);
}

// Writes the subject of the verb: a metric, or the baseline that is compared.
static void put_subject(struct line *line, const struct query_verb *verb, const struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    const char *subject = NULL, *what = cli->command->name;
    switch (verb->subject) {
    case QUERY_NO_SUBJECT:
        break;
    case QUERY_METRIC:
    case QUERY_METRIC_OR_NONE:
        subject = options->argument_count > 0 ? options->arguments[0] : options->metric;
        what = options->argument_count > 0 ? what : "--metric";
        break;
    case QUERY_BASELINE_OR_NONE:
        subject = options->argument_count > 1 ? options->arguments[1] : NULL;
        break;
    }
    if (subject)
        put_quoted(line, subject);
    end_part(line, what);
}

// The names of --models: the model that is compared with, and the one that is compared.
enum { MODEL_BEFORE, MODEL_AFTER, MODELS };
struct models {
    char names[MODELS][QUERY_TEXT_SIZE];
};

static enum status split_models(struct models *out, const struct cli_options *options,
                                struct error *err)
{
    const char *list = options->models, *comma = strchr(list, ',');
    if (options->where[QUERY_BY_MODEL])
        return error_set(err, STATUS_INVALID, "--models and --model: only one of them");
    if (!comma || comma == list || !comma[1] || strchr(comma + 1, ','))
        return error_set(err, STATUS_INVALID,
                         "--models: give two names, as in --models A,B (a name with a comma: "
                         "inferstat query \"compare model='B' against model='A'\")");
    const size_t size = (size_t)(comma - list);
    if (size >= QUERY_TEXT_SIZE || strlen(comma + 1) >= QUERY_TEXT_SIZE)
        return error_set(err, STATUS_INVALID, "--models: the name of a model is too long");
    (void)snprintf(out->names[MODEL_BEFORE], QUERY_TEXT_SIZE, "%.*s", (int)size, list);
    (void)snprintf(out->names[MODEL_AFTER], QUERY_TEXT_SIZE, "%s", comma + 1);
    if (strcmp(out->names[MODEL_BEFORE], out->names[MODEL_AFTER]) == 0)
        return error_set(err, STATUS_INVALID,
                         "--models: the same model twice (baselines compare it over time: "
                         "inferstat-compare(7))");
    return STATUS_OK;
}

// Two sides with the same clauses, but each of one model.
static void put_models(struct line *line, const struct query_verb *verb,
                       const struct cli_options *options, const struct models *models)
{
    struct cli_options side = *options;
    side.where[QUERY_BY_MODEL] = models->names[MODEL_AFTER];
    put_clauses(line, verb, &side);
    put_clause(line, QUERY_CLAUSE_AGAINST, NULL, "--models");
    side.where[QUERY_BY_MODEL] = models->names[MODEL_BEFORE];
    put_filter(line, &side);
}

static void put_line(struct line *line, const struct query_verb *verb, const struct cli *cli,
                     const struct models *models)
{
    const struct cli_options *options = &cli->options;
    if (!verb) {
        put_filter(line, options);
        return;
    }
    put(line, verb->word);
    put(line, " ");
    put_subject(line, verb, cli);
    if (options->models) {
        put_models(line, verb, options, models);
        return;
    }
    put_clauses(line, verb, options);
    if (verb->kind != QUERY_COMPARE)
        return;
    if (options->against)
        put_clause(line, QUERY_CLAUSE_AGAINST, options->against, "--against");
    else if (options->argument_count > 0)
        put_clause(line, QUERY_CLAUSE_AGAINST, options->arguments[0], cli->command->name);
}

// ---- Reading ------------------------------------------------------------------

static enum status when(void *context, int64_t *out_ns, const char *text, bool latest,
                        struct error *err)
{
    return time_arg_parse(context, out_ns, text, latest, latest ? "--until" : "--since", err);
}

// Removes `prefix` and ": " from the beginning of the message.
static void cut_prefix(struct error *err, const char *prefix, size_t size)
{
    char *text = err->text;
    if (strncmp(text, prefix, size) == 0 && strncmp(text + size, ": ", 2) == 0)
        memmove(text, text + size + 2, strlen(text + size + 2) + 1);
}

// Names the option instead of the column: the user did not write the line.
static enum status blame(const struct line *line, struct query_place place, struct error *err)
{
    unsigned part = 0;
    cut_prefix(err, err->text, strcspn(err->text, ":")); // "column N"
    while (part < line->part_count && place.at >= line->parts[part].end)
        part++;
    if (part == line->part_count)
        return STATUS_INVALID;
    const char *what = line->parts[part].what;
    if (what[0] == '-') {
        cut_prefix(err, what, strlen(what));
        cut_prefix(err, what + 2, strlen(what + 2)); // "step: ..." of --step
    }
    return error_prefix(err, STATUS_INVALID, "%s", what);
}

enum status query_line_read(struct cli *cli, struct error *err)
{
    struct line line = {.used = 0};
    struct query_place place = {0};
    struct query *out = &cli->query;
    const struct query_verb *verb = find_verb(cli);
    struct models models = {0};
    if (cli->options.models && split_models(&models, &cli->options, err) != STATUS_OK)
        return error_prefix(err, STATUS_INVALID, "%s", cli->command->name);
    if (!verb && is_samples(cli))
        return error_set(err, STATUS_INVALID,
                         "samples: unknown kind of samples: %s (process, device or host)",
                         cli->options.arguments[0]);
    put_line(&line, verb, cli, &models);
    if (line.full)
        return error_set(err, STATUS_INVALID, "%s: the options are too long", cli->command->name);
    *out = (struct query){.kind = QUERY_SUMMARY};
    enum status status =
        verb ? query_text_read(out, line.text, when, cli, &place, err)
             : query_text_read_filter(&out->filter, line.text, when, cli, &place, err);
    return status == STATUS_OK ? status : blame(&line, place, err);
}
