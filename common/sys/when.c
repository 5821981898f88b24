#include "common/sys/when.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "common/core/base/parse.h"

enum { YEAR_FIRST = 1970, YEAR_LAST = 2261 };

static const int64_t second_ns = INT64_C(1000000000);

// Numbers below this are no unix seconds but a forgotten unit.
static const int64_t unix_seconds_least = 100000000;

// What a calendar time says, before any zone.
struct calendar {
    int year, month, day, hour, minute, second;
    int64_t fraction_ns;
    bool zoned; // an offset was given
    int offset_seconds;
};

static enum status refuse(const char *text, const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "%s: cannot read the time '%s' (give 1h, 2026-03-29 14:30, "
                     "2026-03-29T14:30:00Z or unix seconds)",
                     what, text);
}

// Reads exactly `digits` digits; moves `*text` behind them.
static bool take_digits(const char **text, int digits, int *out)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        if (!isdigit((unsigned char)(*text)[i]))
            return false;
        value = value * 10 + ((*text)[i] - '0');
    }
    *text += digits;
    *out = value;
    return true;
}

static bool take_char(const char **text, char c)
{
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

// Reads ".5" as 500000000; digits beyond nanoseconds are passed over.
static bool take_fraction(const char **text, int64_t *out_ns)
{
    if (!take_char(text, '.'))
        return true;
    if (!isdigit((unsigned char)**text))
        return false;
    int64_t weight = second_ns / 10;
    for (; isdigit((unsigned char)**text); (*text)++, weight /= 10)
        *out_ns += weight * (**text - '0');
    return true;
}

// Reads "Z", "+02:00", "-0530" or nothing.
static bool take_offset(const char **text, struct calendar *calendar)
{
    if (take_char(text, 'Z') || take_char(text, 'z')) {
        calendar->zoned = true;
        return true;
    }
    int sign = **text == '+' ? 1 : **text == '-' ? -1 : 0;
    if (sign == 0)
        return true;
    (*text)++;
    int hours, minutes;
    if (!take_digits(text, 2, &hours))
        return false;
    (void)take_char(text, ':');
    if (!take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    calendar->zoned = true;
    calendar->offset_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool take_date(const char **text, struct calendar *calendar)
{
    return take_digits(text, 4, &calendar->year) && take_char(text, '-') &&
           take_digits(text, 2, &calendar->month) && take_char(text, '-') &&
           take_digits(text, 2, &calendar->day);
}

static bool take_clock(const char **text, struct calendar *calendar)
{
    if (!take_char(text, 'T') && !take_char(text, 't') && !take_char(text, ' '))
        return true; // the date alone: midnight
    if (!take_digits(text, 2, &calendar->hour) || !take_char(text, ':') ||
        !take_digits(text, 2, &calendar->minute))
        return false;
    if (take_char(text, ':') &&
        (!take_digits(text, 2, &calendar->second) || !take_fraction(text, &calendar->fraction_ns)))
        return false;
    return take_offset(text, calendar);
}

static bool calendar_is_sound(const struct calendar *calendar)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (calendar->year < YEAR_FIRST || calendar->year > YEAR_LAST || calendar->month < 1 ||
        calendar->month > 12)
        return false;
    int year = calendar->year;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    int last = days[calendar->month - 1] + (calendar->month == 2 && leap ? 1 : 0);
    return calendar->day >= 1 && calendar->day <= last && calendar->hour <= 23 &&
           calendar->minute <= 59 && calendar->second <= 59;
}

static struct tm calendar_tm(const struct calendar *calendar)
{
    return (struct tm){
        .tm_year = calendar->year - 1900,
        .tm_mon = calendar->month - 1,
        .tm_mday = calendar->day,
        .tm_hour = calendar->hour,
        .tm_min = calendar->minute,
        .tm_sec = calendar->second,
    };
}

// Finds the instant of a local time: the first or the last of those that the
// zone's clocks show as this time; false where they skip it.
static bool local_instant(const struct calendar *calendar, bool latest, time_t *out)
{
    bool found = false;
    for (int dst = -1; dst <= 1; dst++) {
        struct tm asked = calendar_tm(calendar);
        asked.tm_isdst = dst;
        time_t instant = mktime(&asked);
        struct tm shown;
        if (!localtime_r(&instant, &shown))
            continue;
        bool same = shown.tm_year == calendar->year - 1900 && shown.tm_mon == calendar->month - 1 &&
                    shown.tm_mday == calendar->day && shown.tm_hour == calendar->hour &&
                    shown.tm_min == calendar->minute && shown.tm_sec == calendar->second;
        if (same && (!found || (latest ? instant > *out : instant < *out))) {
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
    if (!take_date(&rest, &calendar) || !take_clock(&rest, &calendar) || *rest != '\0')
        return refuse(text, what, err);
    if (!calendar_is_sound(&calendar))
        return error_set(err, STATUS_INVALID, "%s: there is no such time: '%s'", what, text);

    time_t instant = 0;
    if (calendar.zoned) {
        struct tm utc = calendar_tm(&calendar);
        instant = timegm(&utc) - calendar.offset_seconds;
    } else if (!local_instant(&calendar, latest, &instant)) {
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
    if (!take_fraction(&rest, &fraction_ns) || *rest != '\0')
        return refuse(text, what, err);
    if (seconds < unix_seconds_least)
        return error_set(err, STATUS_INVALID,
                         "%s: '%s' has no unit (give %ss for seconds ago; unix seconds have 9 or "
                         "more digits)",
                         what, text, text);
    *out_ns = seconds * second_ns + fraction_ns;
    return STATUS_OK;
}

enum status when_parse(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                       const char *what, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    size_t number = strspn(text, "0123456789.");
    if (digits == 0)
        return refuse(text, what, err);
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
