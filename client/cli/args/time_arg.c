#include "client/cli/args/time_arg.h"

#include <time.h>

#include "common/sys/when.h"

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

static void warn_if_ambiguous(FILE *notes, const char *text, int64_t now_ns, bool latest,
                              const char *what)
{
    int64_t first_ns = 0, second_ns = 0;
    if (when_parse(&first_ns, text, now_ns, false, what, NULL) != STATUS_OK ||
        when_parse(&second_ns, text, now_ns, true, what, NULL) != STATUS_OK ||
        first_ns == second_ns)
        return;
    char taken[TIME_SIZE], other[TIME_SIZE];
    (void)fprintf(
        notes,
        "inferstat: WARNING: %s: the clocks show %s twice: %s is meant (give the other as "
        "%s)\n",
        what, text, zoned(taken, latest ? second_ns : first_ns),
        zoned(other, latest ? first_ns : second_ns));
}

enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text, int64_t now_ns,
                           bool latest, const char *what, struct error *err)
{
    enum status status = when_parse(out_ns, text, now_ns, latest, what, err);
    if (status == STATUS_OK)
        warn_if_ambiguous(notes, text, now_ns, latest, what);
    return status;
}
