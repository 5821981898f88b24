#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>
#include <wordexp.h>

#include "client/cli/cli.h"
#include "client/cli/output/columns.h"
#include "client/tui/tui.h"
#include "common/core/record/record.h"

enum { WORDS_MAX = 16 };

// In the dashboard's place: remembers what it was given.
static struct tui_options shown;
static char shown_db[16];

enum status tui_run(const struct tui_options *options, struct error *err)
{
    (void)err;
    shown = *options;
    (void)snprintf(shown_db, sizeof shown_db, "%s", options->target->db ? options->target->db : "");
    return STATUS_OK;
}

static char *out_text;
static char *notes_text;

// Runs "inferstat LINE"; what it wrote is in out_text and notes_text.
static enum status run(const char *line, bool terminal, struct error *err)
{
    static char copy[4096];
    char program[] = "inferstat";
    char *words[WORDS_MAX] = {program};
    int count = 1;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
        words[count++] = word;

    free(out_text);
    free(notes_text);
    size_t out_size, notes_size;
    struct cli_environment env = {
        .in = fopen("/dev/null", "r"),
        .out = open_memstream(&out_text, &out_size),
        .notes = open_memstream(&notes_text, &notes_size),
        .in_is_terminal = terminal,
        .out_is_terminal = terminal,
        .now_ns = INT64_C(1774785600000000000),
    };
    *err = (struct error){0};
    enum status status = cli_run(&env, count, words, err);
    (void)fclose(env.in);
    (void)fclose(env.out);
    (void)fclose(env.notes);
    return status;
}

// Names and letters once, every option of use to a command.
TEST_CASE(test_tables)
{
    bool used[OPTION_COUNT] = {false};
    const struct cli_command *commands = cli_commands;
    for (unsigned i = 0; commands[i].name; i++) {
        for (int o = 0; o < OPTION_COUNT; o++)
            used[o] = used[o] || options_contain(commands[i].options, (enum cli_option)o);
        assert_true(commands[i].arguments_min <= commands[i].arguments_max);
        assert_int_equal(commands[i].arguments != NULL, commands[i].arguments_max > 0);
        for (unsigned other = 0; other < i; other++)
            assert_string_not_equal(commands[other].name, commands[i].name);
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *info = option_row((enum cli_option)i);
        assert_true(used[i]);
        for (int other = 0; other < i; other++) {
            const struct option *before = option_row((enum cli_option)other);
            assert_string_not_equal(before->name, info->name);
            assert_true(info->letter == 0 || before->letter != info->letter);
        }
    }
}

static bool derived_exists(enum record_kind kind, const char *key)
{
    unsigned count;
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count; i++) {
        if (derived[i].kind == kind && strcmp(derived[i].name, key) == 0)
            return true;
    }
    return false;
}

// Every key of every view is one that answers have.
TEST_CASE(test_views)
{
    static const char *const common[] = {"run",    "host",       "stream",
                                         "number", "started_ns", "received_ns"};
    static const char *const of_runs[] = {"lost", "coverage_ratio", "in_flight", "balanced"};
    for (int i = 0; i < (int)RECORD_KIND_COUNT; i++) {
        enum record_kind kind = (enum record_kind)i;
        const struct columns *view = columns_of(kind);
        assert_true(view->count > 1);
        assert_string_equal(view->columns[0].key, "started_ns"); // tail counts on it
        for (unsigned c = 0; c < view->count; c++) {
            const char *key = view->columns[c].key;
            bool known = record_column_find(kind, key) >= 0 || derived_exists(kind, key);
            for (size_t k = 0; k < COUNT_OF(common); k++)
                known = known || strcmp(common[k], key) == 0;
            for (size_t k = 0; k < COUNT_OF(of_runs) && kind == RECORD_KIND_RUN; k++)
                known = known || strcmp(of_runs[k], key) == 0;
            if (kind == RECORD_KIND_LOAD)
                known = known || strcmp(key, QUERY_METRIC_FLOOR) == 0; // of what was measured
            if (kind == RECORD_KIND_DEVICE)
                known = known || strcmp(key, "runs") == 0; // of a listing by device
            if (kind == RECORD_KIND_LOAD_STAGE)
                known = known || strcmp(key, "model") == 0; // of the parent
            if (!known)
                fail_msg("%s has no %s", record_kind_info(kind)->name, key);
        }
    }
}

// Each example is a command line that its command takes.
TEST_CASE(test_examples)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        for (size_t i = 0; i < COUNT_OF(command->examples); i++) {
            char line[256];
            struct cli_options options;
            struct error err = {0};
            wordexp_t words;
            assert_non_null(command->examples[i]);
            (void)snprintf(line, sizeof line, "inferstat %s", command->examples[i]);
            assert_int_equal(wordexp(line, &words, WRDE_NOCMD), 0);
            enum status status =
                options_parse(&options, (int)words.we_wordc, words.we_wordv, NULL, &err);
            if (status == STATUS_OK && !option_given(&options, OPTION_HELP))
                status = options_check(&options, command->options, command->name, &err);
            if (status != STATUS_OK)
                fail_msg("%s: %s", line, err.text);
            assert_string_equal(options.command, command->name);
            assert_in_range(options.argument_count, command->arguments_min, command->arguments_max);
            wordfree(&words);
        }
}

TEST_CASE(test_help)
{
    struct error err;
    assert_int_equal(run("--help", false, &err), STATUS_OK);
    char *all = strdup(out_text);
    const struct cli_command *commands = cli_commands;
    for (unsigned i = 0; commands[i].name; i++) {
        assert_non_null(strstr(all, commands[i].name));
        char line[64];
        assert_int_equal(run(format_text("%s --help", commands[i].name), false, &err), STATUS_OK);
        char *by_option = strdup(out_text);
        for (int o = 0; o < OPTION_COUNT; o++) {
            if (options_contain(commands[i].options, (enum cli_option)o))
                assert_non_null(
                    strstr(by_option, format_text("--%s", option_row((enum cli_option)o)->name)));
        }
        (void)snprintf(line, sizeof line, "help %s", commands[i].name);
        assert_int_equal(run(line, false, &err), STATUS_OK);
        assert_string_equal(out_text, by_option);
        free(by_option);
    }
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 80);
    free(all);
}

TEST_CASE(test_version)
{
    struct error err;
    assert_int_equal(run("--version", false, &err), STATUS_OK);
    assert_string_equal(out_text, "inferstat " INFERSTAT_VERSION "\n");
}

TEST_CASE(test_completion)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    struct error err;
    for (size_t i = 0; i < COUNT_OF(shells); i++) {
        assert_int_equal(run(format_text("completion %s", shells[i]), false, &err), STATUS_OK);
        assert_non_null(strstr(out_text, "inferstat completion typed -- "));
    }
    assert_int_equal(run("completion typed -- hel", false, &err), STATUS_OK);
    for (const struct cli_command *command = cli_commands; command->name; command++)
        assert_non_null(strstr(out_text, format_text("%s\t", command->name)));
    assert_int_equal(run("completion typed -- --", false, &err), STATUS_OK);
    for (int o = 0; o < OPTION_COUNT; o++)
        assert_non_null(strstr(out_text, option_row((enum cli_option)o)->name));
    assert_int_equal(run("completion typed -- avg --since 1d i", false, &err), STATUS_OK);
    assert_non_null(strstr(out_text, "inference.ttft_ns\n"));
    assert_non_null(strstr(out_text, "\nttft_ns\n")); // as it is typed
    assert_null(strstr(out_text, "\nduration_ns\n")); // which several kinds have
    assert_int_equal(run("completion typed -- avg --w", false, &err), STATUS_OK);
    assert_non_null(strstr(out_text, "--wide\t"));
    assert_null(strstr(out_text, "--slowest")); // of another command
    assert_int_equal(run("completion typed -- tail x", false, &err), STATUS_OK);
    assert_non_null(strstr(out_text, "device_sample\n"));
    assert_int_equal(run("completion typed -- backup x", false, &err), STATUS_OK);
    assert_string_equal(out_text, "/\n");
    assert_int_equal(run("completion typed -- export --format=", false, &err), STATUS_OK);
    assert_string_equal(out_text, "--format=csv\n--format=json\n--format=jsonl\n");
}

TEST_CASE(test_metrics)
{
    struct error err;
    assert_int_equal(run("metrics", false, &err), STATUS_OK);
    assert_non_null(strstr(out_text, "ttft_ns"));
    assert_int_equal(run("metrics --json", false, &err), STATUS_OK);
    assert_non_null(strstr(out_text, "{\"metric\": \"tokens_per_second\", \"kind\": \"inference\", "
                                     "\"unit\": \"tokens/s\", \"source\": \"derived\", "));
    assert_int_equal(run("metrics --columns --csv", false, &err), STATUS_OK);
    assert_int_equal(
        strncmp(out_text, "kind,kind_number,index,column,type,unit,presence,meaning\n", 57), 0);
    size_t columns = 0;
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++)
        columns += record_kind_info((enum record_kind)kind)->column_count;
    size_t lines = 0;
    for (const char *c = out_text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, columns + 1);
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"", "no command, and no terminal"},
        {"top", "top: the dashboard needs a terminal"},
        {"lods", "lods: unknown command (did you mean loads?)"},
        {"qqqqqqqqqqqq", "unknown command (see inferstat --help)"},
        {"help lods", "did you mean loads?"},
        {"lods --help", "did you mean loads?"},
        {"ping --csv", "ping: unknown option --csv"},
        {"metrics --db x", "metrics: unknown option --db"},
        {"avg", "avg: give METRIC (see inferstat avg --help)"},
        {"avg a b", "avg: unexpected argument 'b'"},
        {"loads x", "loads: unexpected argument 'x'"},
        {"avg tft_ns", "avg: unknown metric"},
        {"avg pcie_narrow_ratio", "avg: pcie_narrow_ratio is known to alert rules alone"},
        {"avg duration_ns", "avg: several kinds have the metric"},
        {"export loadz", "export: unknown kind of records: loadz (did you mean load?)"},
        {"tail nonsense", "tail: unknown kind of records: nonsense"},
        {"export --csv", "export: a CSV holds one kind"},
        {"export load inference --format csv", "export: a CSV holds one kind"},
        {"export --run xyz", "run is not a UUID"},
        {"tail --run xyz", "run is not a UUID"},
        {"avg ttft_ns --step 0s", "--step: the time must be above zero"},
        {"avg ttft_ns --step soon", "--step: "},
        {"avg ttft_ns --by model,,host", "--by: unknown dimension \"\""},
        {"avg ttft_ns --by modl", "--by: unknown dimension \"modl\" (did you mean model?)"},
        {"avg ttft_ns --by host,host", "--by: host is given twice"},
        {"avg ttft_ns --by model,", "--by: unknown dimension \"\""},
        {"avg ttft_ns --by model=x", "--by: unknown dimension \"model=x\""},
        {"compare a b --margin 101%", "--margin: 101 is outside"},
        {"compare a b --margin 1.5", "--margin: "},
        {"compare a b --metric ttf", "--metric: unknown metric \"ttf\" (did you mean ttft_ns?)"},
        {"compare a/b c", "compare: the name of a baseline has other characters"},
        {"compare --against a/b", "--against: the name of a baseline has other characters"},
        {"compare a", "compare: give two baselines"},
        {"compare a b --host x", "compare: filters do not apply to two baselines"},
        {"compare --models a", "compare: --models: give two names, as in --models A,B"},
        {"compare --models a,b,c", "compare: --models: give two names"},
        {"compare --models ,b", "compare: --models: give two names"},
        {"compare --models a,", "compare: --models: give two names"},
        {"compare --models a,a", "compare: --models: the same model twice"},
        {"compare --models a,b --model a", "compare: --models and --model: only one of them"},
        {"compare --models a,b --against c", "not baselines: leave out --against c"},
        {"compare --models a,b c", "not baselines: leave out c"},
        {"compare --models a,\xff", "--models: the name is not UTF-8"},
        {"compare --models a,b --since tomorrow", "--since: cannot read the time 'tomorrow'"},
        {"inferences --models a,b", "inferences: unknown option --models"},
        {"inferences --slowest 2 --metric ttf", "--metric: unknown metric \"ttf\""},
        {"fleet ttf", "fleet: unknown metric \"ttf\""},
        {"summary --since tomorrow", "--since: cannot read the time 'tomorrow'"},
        {"summary --until tomorrow", "--until: cannot read the time 'tomorrow'"},
        {"summary --since 1m --until 1h", "--until: the window ends before it begins"},
        {"summary --model=", "--model: the name of a model is empty"},
        {"summary --status eror", "--status: unknown status \"eror\" (did you mean error?)"},
        {"tail --model=\xff", "--model: the name is not UTF-8"},
        {"clear", "clear: refused: there is no terminal"},
        {"completion tcsh", "unknown shell"},
        {"authorize x --role reader", "authorize: --name is missing"},
        {"authorize x --name y", "authorize: --role is missing"},
        {"authorize x --name y --role reader,boss",
         "--role: 'boss' is none of producer, reader, admin"},
        {"authorize /nonexistent --name y --role reader", "authorize: neither a public key"},
        {"keys --db x", "keys: unknown option --db"},
        {"revoke", "revoke: give KEY (see"},
        {"trust tcp://host", "trust: give ADDRESS KEY (see"},
        {"baseline", "baseline: give save NAME|list|delete NAME (see inferstat baseline --help)"},
        {"trust ipc:///x /nonexistent", "trust: an ipc:// address takes no key"},
        {"trust tcp://host:0 /nonexistent", "port"},
        {"trust tcp://host /nonexistent", "trust: neither a public key"},
        {"keygen a b", "keygen: unexpected argument 'b'"},
        {"baseline save a/b", "baseline: 'a/b': a name has 1 to 63 characters of a-z A-Z 0-9"},
        {"summary --line --json", "--line and --json: only one of them"},
        {"summary --line --csv", "--line and --csv: only one of them"},
        {"summary --json --csv", "only one of"},
        {"ping --collector nowhere", "nowhere"},
        {"ping --collector tcp://192.0.2.1:99999", "port"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err;
        enum status status = run(cases[i].line, false, &err);
        assert_true(status == STATUS_INVALID || status == STATUS_DENIED);
        assert_string_equal(out_text, "");
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s': '%s' lacks '%s'", cases[i].line, err.text, cases[i].why);
    }
}

// The longest names there may be, of all dimensions at once, and one byte more.
TEST_CASE(test_names_at_their_limit)
{
    struct error err;
    char name[QUERY_TEXT_SIZE + 1];
    memset(name, 'm', sizeof name);
    name[QUERY_TEXT_SIZE - 1] = '\0';
    assert_int_equal(
        run(format_text("tail --db /nonexistent --model %s --host %s --device %s --operation %s "
                        "--stage %s --workload %s",
                        name, name, name, name, name, name),
            false, &err),
        STATUS_NOT_FOUND);
    name[QUERY_TEXT_SIZE - 1] = 'm';
    name[QUERY_TEXT_SIZE] = '\0';
    assert_int_equal(
        run(format_text("tail --db /nonexistent --host x --model %s", name), false, &err),
        STATUS_INVALID);
    assert_string_equal(err.text, "--model: the name is too long (at most 255 bytes)");
}

TEST_CASE(test_missing_file)
{
    struct error err;
    enum status status = run("loads --db /nonexistent/inferstat.db", false, &err);
    assert_int_equal(status, STATUS_NOT_FOUND);
    assert_int_equal(cli_exit_code(status), 4);
    assert_non_null(strstr(err.text, "/nonexistent/inferstat.db"));
}

// Where there is no answer, what `export --output` would replace stays, and nothing
// lies beside it.
TEST_CASE(test_export_keeps_old_file)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE], line[3 * FOLDER_PATH_SIZE];
    folder_make(folder);
    (void)write_text(folder_path(path, folder, "old.jsonl"), "precious");

    (void)snprintf(line, sizeof line, "export --collector ipc://%s --timeout 50ms --output %s",
                   folder, path);
    struct error err;
    assert_int_equal(run(line, false, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "already exists"));

    char *text = read_file(path, NULL);
    assert_string_equal(text, "precious");
    free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); // empty
}

static void write_csv(FILE *out)
{
    static const char name[] = "a\x1b[31m,b";
    struct result *result;
    struct rows rows = {.out = out, .format = FORMAT_CSV};
    assert_non_null(out);
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "n", UNIT_NONE), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    assert_int_equal(result_set_text(result, 0, name, sizeof name - 1), STATUS_OK);
    rows_write(&rows, result, 0, 1);
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
    result_free(result);
}

// What a name would do to a terminal is shown there, and left alone in a pipe.
TEST_CASE(test_csv_on_a_terminal)
{
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    const char *other = ptsname(terminal);
    assert_non_null(other);
    FILE *screen = fdopen(open(other, O_WRONLY | O_NOCTTY), "w");
    write_csv(screen);
    assert_int_equal(fflush(screen), 0);
    char seen[64] = "";
    assert_true(read(terminal, seen, sizeof seen - 1) > 0);
    if (!strchr(seen, '"')) // a terminal gives one line at a time
        assert_true(read(terminal, seen + strlen(seen), sizeof seen - 1 - strlen(seen)) > 0);
    assert_string_equal(seen, "n\r\n\"a\\x1B[31m,b\"\r\n");
    (void)fclose(screen);
    (void)close(terminal);

    char *text = NULL;
    size_t size = 0;
    FILE *piped = open_memstream(&text, &size);
    write_csv(piped);
    assert_int_equal(fclose(piped), 0);
    assert_string_equal(text, "n\n\"a\x1b[31m,b\"\n");
    free(text);
}

TEST_CASE(test_exit_codes)
{
    for (int i = 0; i < (int)STATUS_COUNT; i++) {
        int code = cli_exit_code((enum status)i);
        const bool is_done = i == STATUS_OK || i == STATUS_CANCELLED;
        assert_true(is_done ? code == 0 : i == STATUS_CHECK_FAILED ? code == 1 : code >= 2);
    }
    assert_int_equal(cli_exit_code(STATUS_INVALID), 2);
    assert_int_equal(cli_exit_code(STATUS_UNSUPPORTED), 4); // a file that cannot be read
    assert_int_equal(cli_exit_code(STATUS_NO_DATA), 3);
    assert_int_equal(cli_exit_code(STATUS_UNREACHABLE), 4);
}

TEST_CASE(test_dashboard)
{
    static const char *const lines[] = {"--db x --interval 1500ms --ascii --host h",
                                        "top --db x --interval 1500ms --ascii --host h"};
    struct error err;
    // Options of the dashboard without its name: the first word given is none.
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        shown = (struct tui_options){0};
        assert_int_equal(run(lines[i], true, &err), STATUS_OK);
        assert_string_equal(shown_db, "x");
        assert_true(shown.ascii && !shown.readonly);
        assert_true(shown.interval_seconds > 1.49 && shown.interval_seconds < 1.51);
    }
}

int main(void)
{
    const int failed = TEST_RUN(
        test_tables, test_views, test_examples, test_help, test_version, test_completion,
        test_metrics, test_refusals, test_names_at_their_limit, test_missing_file,
        test_export_keeps_old_file, test_csv_on_a_terminal, test_exit_codes, test_dashboard);
    free(out_text);
    free(notes_text);
    return failed;
}
