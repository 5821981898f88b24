// inferstat authorize | revoke | keys: changes and lists a collector's authorized keys through
// its admin socket.
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/value_args.h"
#include "common/core/base/parse.h"
#include "common/core/base/saturate.h"

static const struct column columns[] = {
    {"name", "name", COLUMN_LEFT(0)},
    {"roles", "roles", COLUMN_LEFT(0)},
    {"key", "key", COLUMN_LEFT(0)},
    {"expires_ns", "expires", COLUMN_LEFT(1)},
    {"replaces", "replaces", COLUMN_LEFT(2)},
    {"lost_roles", "no longer", COLUMN_LEFT(0), .is_optional = true},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

static const char no_keys[] = "no data: there are no keys yet (see inferstat authorize --help)";

static enum status copy_text(char out[QUERY_KEY_SIZE], const char *text, const char *what,
                             struct error *err)
{
    const size_t size = strlen(text);
    if (size == 0 || size >= QUERY_KEY_SIZE)
        return error_set(err, STATUS_INVALID, "%s: 1 to %d characters", what, QUERY_KEY_SIZE - 1);
    memcpy(out, text, size + 1);
    return STATUS_OK;
}

// A period from now, or a time to come.
static enum status parse_expires(int64_t *out_ns, struct cli *cli, struct error *err)
{
    const char *text = cli->options.expires;
    const size_t size = strlen(text);
    const int64_t now_ns = cli->env.now_ns;
    int64_t period_ns = 0;
    if (size > 0 && strchr("smhdw", text[size - 1])) {
        enum status status = parse_duration(&period_ns, text, "--expires", err);
        *out_ns = saturate_add(now_ns, period_ns);
        return status == STATUS_OK && period_ns == 0
                   ? error_set(err, STATUS_INVALID, "--expires: 0 would end it at once")
                   : status;
    }
    enum status status = time_arg_parse(cli, out_ns, text, false, "--expires", err);
    if (status == STATUS_OK && *out_ns <= now_ns)
        status = error_set(err, STATUS_INVALID, "--expires: %.60s is in the past", text);
    return status;
}

enum status command_authorize(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    char key[WIRE_KEY_TEXT_SIZE], replaces[WIRE_KEY_TEXT_SIZE] = "";
    if (!options->roles || !options->name)
        return error_set(err, STATUS_INVALID,
                         "authorize: --%s is missing (give --role producer, reader or admin, and "
                         "--name, such as that of the host)",
                         options->roles ? "name" : "role");
    enum status status = key_arg_parse(key, options->arguments[0], "authorize", err);
    if (status == STATUS_OK && options->replaces)
        status = key_arg_parse(replaces, options->replaces, "--replaces", err);
    struct query query = {.kind = QUERY_AUTHORIZE, .key.roles = options->roles};
    if (status == STATUS_OK && options->expires)
        status = parse_expires(&query.key.expires_ns, cli, err);
    if (status != STATUS_OK)
        return status;
    memcpy(query.key.text, key, sizeof key);
    memcpy(query.key.replaces, replaces, sizeof replaces);
    status = copy_text(query.key.name, options->name, "--name", err);
    return status == STATUS_OK ? cli_show(cli, &query, &view, no_keys, err) : status;
}

// "revoked gpu07 (rq:rM>}U...)": what is gone is no row of a list.
static void print_revoked(FILE *out, const struct result *result)
{
    for (size_t row = 0; row < result_row_count(result); row++) {
        char name[QUERY_KEY_SIZE], key[QUERY_KEY_SIZE];
        (void)fprintf(out, "revoked %s (%.8s...)\n",
                      result_text(name, sizeof name, result, row, "name"),
                      result_text(key, sizeof key, result, row, "key"));
    }
}

// The argument is a key, a file of one, or the name of an authorized key.
enum status command_revoke(struct cli *cli, struct error *err)
{
    const char *word = cli->options.arguments[0];
    char key[WIRE_KEY_TEXT_SIZE];
    struct query query = {.kind = QUERY_REVOKE};
    struct result *result = NULL;
    struct error ignored;
    const bool is_key = key_arg_parse(key, word, "revoke", &ignored) == STATUS_OK;
    enum status status = copy_text(query.key.text, is_key ? key : word, "revoke", err);
    if (status == STATUS_OK)
        status = cli_ask(cli, &query, &result, err);
    if (status == STATUS_OK && cli->options.format == FORMAT_TEXT)
        print_revoked(cli->env.out, result);
    else if (status == STATUS_OK)
        status = cli_print(cli, &view, result, err);
    result_free(result);
    return status;
}

enum status command_keys(struct cli *cli, struct error *err)
{
    return cli_show(cli, &(struct query){.kind = QUERY_KEYS}, &view, no_keys, err);
}
