#include "common/sys/when.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/core/base/parse.h"

enum { YEAR_FIRST = 1970, YEAR_LAST = 2261 };

static const int64_t second_ns = INT64_C(1000000000);

// Numbers below this are no unix seconds but a forgotten unit.
static const int64_t unix_seconds_least = 100000000;

// What a calendar time says, before any zone.
struct calendar {
    struct tm parts;
    int64_t fraction_ns;
    bool zoned; // an offset was given
    int offset_seconds;
};

static enum status refuse(const char *text, const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "%s: cannot read the time '%s' (give 1h, 14:30, today, 2026-03-29 14:30, "
                     "2026-03-29T14:30:00Z or unix seconds)",
                     what, text);
}

// Reads a text as `pattern` has it: each row of zeroes is a number of so many digits, all else is
// itself.  Moves `*text` behind it; leaves it where it was if it differs.
static bool read_pattern(const char **text, const char *pattern, int *numbers)
{
    const char *at = *text;
    unsigned count = 0;
    for (; *pattern; pattern++, at++) {
        if (*pattern != '0') {
            if (*at != *pattern)
                return false;
            continue;
        }
        if (!isdigit((unsigned char)*at))
            return false;
        const bool is_first = at == *text || pattern[-1] != '0';
        numbers[count] = (is_first ? 0 : numbers[count] * 10) + (*at - '0');
        count += pattern[1] != '0';
    }
    *text = at;
    return true;
}

// Reads ".5" as 500000000; digits beyond nanoseconds are passed over.
static bool read_fraction(const char **text, int64_t *out_ns)
{
    if (!read_pattern(text, ".", NULL))
        return true;
    if (!isdigit((unsigned char)**text))
        return false;
    int64_t weight = second_ns / 10;
    for (; isdigit((unsigned char)**text); (*text)++, weight /= 10)
        *out_ns += weight * (**text - '0');
    return true;
}

// Reads "Z", "+02:00", "-0530" or nothing.
static bool read_offset(const char **text, struct calendar *calendar)
{
    int offset[2];
    const char sign = **text;
    calendar->zoned = sign != '\0';
    if (read_pattern(text, "Z", NULL) || read_pattern(text, "z", NULL) || sign == '\0')
        return true;
    if (!read_pattern(text, "+", NULL) && !read_pattern(text, "-", NULL))
        return false;
    if (!read_pattern(text, "00:00", offset) &&
        !(read_pattern(text, "00", offset) && read_pattern(text, "00", offset + 1)))
        return false;
    calendar->offset_seconds = (sign == '-' ? -1 : 1) * (offset[0] * 3600 + offset[1] * 60);
    return offset[0] <= 23 && offset[1] <= 59;
}

static bool read_calendar(const char **text, struct calendar *calendar)
{
    int date[3], clock[3] = {0};
    if (!read_pattern(text, "0000-00-00", date))
        return false;
    const bool has_clock = read_pattern(text, "T00:00", clock) ||
                           read_pattern(text, "t00:00", clock) ||
                           read_pattern(text, " 00:00", clock); // else midnight
    if (has_clock && read_pattern(text, ":00", clock + 2) &&
        !read_fraction(text, &calendar->fraction_ns))
        return false;
    calendar->parts = (struct tm){.tm_year = date[0] - 1900,
                                  .tm_mon = date[1] - 1,
                                  .tm_mday = date[2],
                                  .tm_hour = clock[0],
                                  .tm_min = clock[1],
                                  .tm_sec = clock[2]};
    return !has_clock || read_offset(text, calendar);
}

static bool is_same(const struct tm *a, const struct tm *b)
{
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
           a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

// Whether a calendar has such a day, and a day such a time: timegm would carry what is too much.
static bool is_sound(const struct tm *parts)
{
    struct tm carried = *parts;
    (void)timegm(&carried);
    return parts->tm_year >= YEAR_FIRST - 1900 && parts->tm_year <= YEAR_LAST - 1900 &&
           is_same(&carried, parts);
}

// Finds the instant of a local time: the first or the last of those that the
// zone's clocks show as this time; false where they skip it.
static bool local_instant(const struct tm *parts, bool latest, time_t *out)
{
    bool found = false;
    for (int dst = -1; dst <= 1; dst++) {
        struct tm asked = *parts, shown;
        asked.tm_isdst = dst;
        time_t instant = mktime(&asked);
        if (localtime_r(&instant, &shown) && is_same(&shown, parts) &&
            (!found || (latest ? instant > *out : instant < *out))) {
            *out = instant;
            found = true;
        }
    }
    return found;
}

static enum status parse_calendar(int64_t *out_ns, const char *text, bool latest, const char *what,
                                  struct error *err)
{
    struct calendar calendar = {0};
    const char *rest = text;
    if (!read_calendar(&rest, &calendar) || *rest != '\0')
        return refuse(text, what, err);
    if (!is_sound(&calendar.parts))
        return error_set(err, STATUS_INVALID, "%s: there is no such time: '%s'", what, text);

    time_t instant = 0;
    if (calendar.zoned) {
        instant = timegm(&calendar.parts) - calendar.offset_seconds;
    } else if (!local_instant(&calendar.parts, latest, &instant)) {
        return error_set(err, STATUS_INVALID,
                         "%s: '%s' does not exist here: the clocks skip it (give an offset from "
                         "UTC, as in 2026-03-29T02:30:00+01:00)",
                         what, text);
    }
    *out_ns = (int64_t)instant * second_ns + calendar.fraction_ns;
    return STATUS_OK;
}

static enum status parse_unix(int64_t *out_ns, const char *text, const char *what,
                              struct error *err)
{
    int64_t seconds = 0;
    int64_t fraction_ns = 0;
    const char *rest = text;
    for (; isdigit((unsigned char)*rest); rest++) {
        seconds = seconds * 10 + (*rest - '0');
        if (seconds > INT64_MAX / second_ns - 1)
            return error_set(err, STATUS_INVALID, "%s: '%s' is beyond any time in seconds", what,
                             text);
    }
    if (!read_fraction(&rest, &fraction_ns) || *rest != '\0')
        return refuse(text, what, err);
    if (seconds < unix_seconds_least)
        return error_set(err, STATUS_INVALID,
                         "%s: '%s' has no unit (give %ss for seconds ago; unix seconds have 9 or "
                         "more digits)",
                         what, text, text);
    *out_ns = seconds * second_ns + fraction_ns;
    return STATUS_OK;
}

// Midnight of the local day that is `days` before that of `now_ns`.
static enum status find_midnight(int64_t *out_ns, int64_t now_ns, int days, const char *text,
                                 const char *what, struct error *err)
{
    const time_t now = (time_t)(now_ns / second_ns);
    struct tm parts;
    if (!localtime_r(&now, &parts))
        return refuse(text, what, err);
    parts = (struct tm){.tm_year = parts.tm_year,
                        .tm_mon = parts.tm_mon,
                        .tm_mday = parts.tm_mday - days,
                        .tm_isdst = -1};
    *out_ns = (int64_t)mktime(&parts) * second_ns;
    return STATUS_OK;
}

// "14:30" or "14:30:05": the last time before `now_ns` that the local clock showed that.
static enum status parse_clock(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                               const char *what, struct error *err)
{
    for (int days = 0; days <= 1; days++) {
        char whole[64];
        int64_t midnight_ns = 0;
        struct tm date;
        if (find_midnight(&midnight_ns, now_ns, days, text, what, err) != STATUS_OK)
            return STATUS_INVALID;
        const time_t midnight = (time_t)(midnight_ns / second_ns);
        if (localtime_r(&midnight, &date) &&
            snprintf(whole, sizeof whole, "%04d-%02d-%02d %s", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday, text) < (int)sizeof whole &&
            parse_calendar(out_ns, whole, latest, what, NULL) == STATUS_OK && *out_ns <= now_ns)
            return STATUS_OK;
    }
    return refuse(text, what, err);
}

enum status when_parse(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                       const char *what, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    size_t number = strspn(text, "0123456789.");
    if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0)
        return find_midnight(out_ns, now_ns, text[0] == 'y', text, what, err);
    if (digits == 0)
        return refuse(text, what, err);
    if (text[digits] == ':')
        return parse_clock(out_ns, text, now_ns, latest, what, err);
    if (text[digits] == '-')
        return parse_calendar(out_ns, text, latest, what, err);
    if (text[number] == '\0')
        return parse_unix(out_ns, text, what, err);

    int64_t ago_ns;
    if (parse_duration(&ago_ns, text, what, NULL) != STATUS_OK)
        return refuse(text, what, err);
    if (ago_ns >= now_ns)
        return error_set(err, STATUS_INVALID, "%s: '%s' ago is before 1970", what, text);
    *out_ns = now_ns - ago_ns;
    return STATUS_OK;
}
