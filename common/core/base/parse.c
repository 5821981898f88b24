#include "common/core/base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static enum status not_a_number(const char *text, const char *what, const char *kind,
                                struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s: \"%.40s\" is not %s", what, text, kind);
}

// strtol and its kin skip white space before a number; we do not.
static int starts_like_number(const char *text)
{
    return text[0] == '-' || text[0] == '+' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
}

enum status parse_int(int64_t *out, const char *text, int64_t minimum, int64_t maximum,
                      const char *what, struct error *err)
{
    char *end = NULL;
    errno = 0;
    const long long value = starts_like_number(text) ? strtoll(text, &end, 10) : 0;
    if (!end || end == text || *end != '\0')
        return not_a_number(text, what, "a whole number", err);
    if (errno == ERANGE || value < minimum || value > maximum)
        return error_set(err, STATUS_INVALID, "%s: %.40s is outside %lld to %lld", what, text,
                         (long long)minimum, (long long)maximum);
    *out = value;
    return STATUS_OK;
}

enum status parse_real(double *out, const char *text, double minimum, double maximum,
                       const char *what, struct error *err)
{
    char *end = NULL;
    const double value = starts_like_number(text) ? strtod(text, &end) : 0;
    if (!end || end == text || *end != '\0' || !isfinite(value))
        return not_a_number(text, what, "a number", err);
    if (value < minimum || value > maximum)
        return error_set(err, STATUS_INVALID, "%s: %.40s is outside %g to %g", what, text, minimum,
                         maximum);
    *out = value;
    return STATUS_OK;
}

struct suffix {
    const char *text;
    int64_t factor;
};

// Reads a number of decimal digits and at most a point, followed by one of `count` suffixes.  What
// strtod knows besides, such as 1e3 and 0x10, is no number here.  Whole numbers are exact, however
// long; what is too large is INT64_MAX.  False if the text is something else.
static bool read_quantity(int64_t *out, const char *text, const struct suffix *suffixes,
                          size_t count)
{
    char *end = NULL;
    const size_t digits = strspn(text, "0123456789.");
    const double value = digits > 0 ? strtod(text, &end) : 0;
    size_t i = 0;
    while (i < count && end && strcmp(end, suffixes[i].text) != 0)
        i++;
    if (end != text + digits || i == count)
        return false;
    const double product = round(value * (double)suffixes[i].factor);
    if (!(product < 9.2e18))
        *out = INT64_MAX;
    else if (strspn(text, "0123456789") == digits)
        *out = strtoll(text, NULL, 10) * suffixes[i].factor;
    else
        *out = (int64_t)product;
    return true;
}

enum status parse_duration(int64_t *out_ns, const char *text, const char *what, struct error *err)
{
    static const struct suffix units[] = {
        {"", INT64_C(1000000000)},      {"ns", 1},
        {"us", INT64_C(1000)},          {"ms", INT64_C(1000000)},
        {"s", INT64_C(1000000000)},     {"m", INT64_C(60000000000)},
        {"min", INT64_C(60000000000)},  {"h", INT64_C(3600000000000)},
        {"d", INT64_C(86400000000000)}, {"w", INT64_C(604800000000000)},
    };
    int64_t ns;
    if (!read_quantity(&ns, text, units, sizeof units / sizeof *units))
        return not_a_number(text, what, "a duration (such as 250ms, 1.5s, 15m, 1h, 7d)", err);
    if (ns == INT64_MAX)
        return error_set(err, STATUS_INVALID, "%s: %.40s is too long", what, text);
    *out_ns = ns;
    return STATUS_OK;
}

enum status parse_size(int64_t *out_bytes, const char *text, int64_t minimum, const char *what,
                       struct error *err)
{
    static const struct suffix units[] = {
        {"", 1},
        {"B", 1},
        {"KB", INT64_C(1) << 10},
        {"MB", INT64_C(1) << 20},
        {"GB", INT64_C(1) << 30},
        {"TB", INT64_C(1) << 40},
    };
    int64_t bytes;
    if (strcmp(text, "unlimited") == 0) {
        *out_bytes = 0;
        return STATUS_OK;
    }
    if (!read_quantity(&bytes, text, units, sizeof units / sizeof *units))
        return not_a_number(text, what, "a size (such as 512MB, 50GB, unlimited)", err);
    if (bytes < minimum)
        return error_set(err, STATUS_INVALID, "%s: %.40s is less than %lld bytes", what, text,
                         (long long)minimum);
    if (bytes == INT64_MAX)
        return error_set(err, STATUS_INVALID, "%s: %.40s is too much", what, text);
    *out_bytes = bytes;
    return STATUS_OK;
}

enum status parse_ratio(double *out, const char *text, const char *what, struct error *err)
{
    char number[32];
    const size_t size = strlen(text);
    if (size == 0 || size >= sizeof number)
        return not_a_number(text, what, "a ratio (such as 3% or 0.03)", err);
    const bool percent = text[size - 1] == '%';
    memcpy(number, text, size + 1);
    number[percent ? size - 1 : size] = '\0';
    double value = 0;
    enum status status = parse_real(&value, number, 0, percent ? 100 : 1, what, err);
    if (status == STATUS_OK)
        *out = percent ? value / 100 : value;
    return status;
}

enum { WORD_MAX = 64 };

// The edit distance of two words of at most WORD_MAX bytes; a swap of neighbours is one edit
// (optimal string alignment).
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1]; // of the last three beginnings of `a`, by turns
    const size_t height = strlen(a), width = strlen(b);
    for (size_t i = 0; i <= height; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        for (size_t j = 0; j <= width; j++) {
            size_t best = i > 0 ? above[j] + 1 : j;
            if (i > 0 && j > 0 && above[j - 1] + (a[i - 1] != b[j - 1]) < best)
                best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = j > 0 && row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return rows[height % 3][width];
}

// The shortest word that begins with `text`; NULL where none does, or it is too little to say.
static const char *shortest_longer(const char *text, size_t size, const char *const *words,
                                   unsigned count)
{
    const char *shortest = NULL;
    for (unsigned i = 0; i < count && size >= 3; i++)
        if (strncmp(words[i], text, size) == 0 &&
            (!shortest || strlen(words[i]) < strlen(shortest)))
            shortest = words[i];
    return shortest;
}

const char *parse_nearest(const char *text, const char *const *words, unsigned count)
{
    const size_t size = strnlen(text, WORD_MAX + 1);
    if (size == 0 || size > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t least = size < 5 ? 2 : size / 3 + 2; // more than a third of it wrong is another word
    for (unsigned i = 0; i < count; i++) {
        if (strlen(words[i]) > WORD_MAX)
            continue;
        const size_t distance = edit_distance(text, words[i]);
        if (distance < least) {
            least = distance;
            nearest = words[i];
        }
    }
    return nearest ? nearest : shortest_longer(text, size, words, count);
}
