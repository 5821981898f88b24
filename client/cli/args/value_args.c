#include "client/cli/args/value_args.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/sys/when.h"

// ---- Keys -------------------------------------------------------------------------

// A key, or the line of a FILE.pub: a key and a comment.
static bool is_key(unsigned char bytes[WIRE_KEY_SIZE], const char *word)
{
    char first[WIRE_KEY_TEXT_SIZE];
    word += strspn(word, " \t");
    const size_t size = strcspn(word, " \t\r\n");
    if (size >= sizeof first)
        return false;
    memcpy(first, word, size);
    first[size] = '\0';
    return wire_key_parse(bytes, first);
}

enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word, const char *what,
                          struct error *err)
{
    unsigned char bytes[1][WIRE_KEY_SIZE];
    // A path may look like a key: an existing file is a path.
    if (access(word, F_OK) != 0 && is_key(bytes[0], word)) {
        (void)wire_key_text(key, bytes[0]);
        return STATUS_OK;
    }
    size_t count = 0;
    enum status status = keys_read_public(bytes, 1, &count, word, err);
    if (status == STATUS_NOT_FOUND)
        return error_set(
            err, STATUS_INVALID,
            "%s: neither a public key (40 characters, or the line that begins with them) "
            "nor a file that holds one",
            what);
    if (status != STATUS_OK)
        return error_prefix(err, status, "%s", what);
    (void)wire_key_text(key, bytes[0]);
    return STATUS_OK;
}

// ---- Times ------------------------------------------------------------------------

enum { TIME_SIZE = 40 };

// The time with its offset from UTC, in a form that can be given.
static const char *zoned(char text[TIME_SIZE], int64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / INT64_C(1000000000));
    struct tm parts;
    if (!localtime_r(&seconds, &parts) || strftime(text, TIME_SIZE, "%FT%T%z", &parts) == 0)
        text[0] = '\0';
    return text;
}

static void warn_if_ambiguous(const struct cli_environment *env, const char *text, bool latest,
                              const char *what)
{
    int64_t first_ns = 0, second_ns = 0;
    if (when_parse(&first_ns, text, env->now_ns, false, what, NULL) != STATUS_OK ||
        when_parse(&second_ns, text, env->now_ns, true, what, NULL) != STATUS_OK ||
        first_ns == second_ns)
        return;
    char taken[TIME_SIZE], other[TIME_SIZE];
    (void)fprintf(
        env->notes,
        "inferstat: WARNING: %s: the clocks show %s twice: %s is meant (give the other as "
        "%s)\n",
        what, text, zoned(taken, latest ? second_ns : first_ns),
        zoned(other, latest ? first_ns : second_ns));
}

enum status time_arg_parse(struct cli *cli, int64_t *out_ns, const char *text, bool latest,
                           const char *what, struct error *err)
{
    const int64_t as_of_ns = cli_as_of(cli);
    enum status status =
        when_parse(out_ns, text, as_of_ns ? as_of_ns : cli->env.now_ns, latest, what, err);
    if (status == STATUS_OK)
        warn_if_ambiguous(&cli->env, text, latest, what);
    return status;
}

enum status time_arg_read(void *cli, int64_t *out_ns, const char *text, bool latest,
                          struct error *err)
{
    return time_arg_parse(cli, out_ns, text, latest, "time", err);
}
