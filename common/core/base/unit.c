#include "common/core/base/unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[UNIT_COUNT_OF] = {
#define UNIT_NAME(name, text) [UNIT_##name] = text,
    UNIT_TABLE(UNIT_NAME)};

const char *unit_name(enum unit unit)
{
    return (size_t)unit < UNIT_COUNT_OF ? names[unit] : "";
}

// "12.3 MB": divides by `base` until the value is below it as shown, so that 1023.96 MB is 1.0 GB.
// Each division moves on to the next of `prefixes`; ' ' is none.
static void format_scaled(char *text, const char *sign, double value, double base,
                          const char *prefixes, const char *space, const char *unit)
{
    for (; prefixes[1] && round(value * 10) / 10 >= base; prefixes++)
        value /= base;
    (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.1f%s%.*s%s", sign, value, space, *prefixes != ' ',
                   prefixes, unit);
}

static void format_duration(char *text, double ns, const char *sign)
{
    const double seconds = round(ns / 1e9), minutes = round(ns / 6e10);
    if (round(ns) < 1000)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fns", sign, ns);
    else if (ns < 59.95e9) // 59.95 s would show as 60.0 s
        format_scaled(text, sign, ns / 1e3, 1000, "um ", "", "s");
    else if (seconds < 3600)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fm %02.0fs", sign, floor(seconds / 60),
                       fmod(seconds, 60));
    else
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fh %02.0fm", sign, floor(minutes / 60),
                       fmod(minutes, 60));
}

static void format_bytes(char *text, double bytes, const char *sign, const char *unit)
{
    if (round(bytes) < 1024)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0f %s", sign, bytes, unit);
    else
        format_scaled(text, sign, bytes / 1024, 1024, "KMGTP", " ", unit);
}

// "2026-03-29 02:30:00" in the local zone.
static void format_time(char *text, double seconds)
{
    struct tm local;
    // Years of four digits; the rest is no time anyone wants to read.
    const time_t when = fabs(seconds) < 2.5e11 ? (time_t)floor(seconds) : 0;
    if (fabs(seconds) >= 2.5e11 || !localtime_r(&when, &local) ||
        strftime(text, UNIT_TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &local) == 0)
        (void)snprintf(text, UNIT_TEXT_SIZE, "-");
}

static void format_number(char *text, double value)
{
    if (value == rint(value) && fabs(value) < 0x1p53)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.0f", value);
    else
        (void)snprintf(text, UNIT_TEXT_SIZE, fabs(value) < 1e15 ? "%.2f" : "%.6g", value);
}

char *unit_separate(char *text)
{
    char *digits = text + (*text == '-');
    size_t place = strspn(digits, "0123456789");
    const size_t size = strlen(digits), commas = place > 0 ? (place - 1) / 3 : 0;
    if (strchr(text, 'e') || (size_t)(digits - text) + size + commas >= UNIT_TEXT_SIZE)
        return text;
    for (; place > 3; place -= 3) {
        char *before = digits + place - 3;
        memmove(before + 1, before, strlen(before) + 1);
        *before = ',';
    }
    return text;
}

// Two decimals, or of what these would show as next to none, two digits that count (per joule, of
// which a token takes many: three).
static void format_rate(char *text, enum unit unit, double rate)
{
    static const char *const per[UNIT_COUNT_OF] = {[UNIT_TOKENS_PER_SECOND] = "t/s",
                                                   [UNIT_ITEMS_PER_SECOND] = "/s",
                                                   [UNIT_REQUEST_RATE] = "req/s",
                                                   [UNIT_TOKEN_RATE] = "tok/s",
                                                   [UNIT_TOKENS_PER_JOULE] = "t/J"};
    const int digits = unit == UNIT_TOKENS_PER_JOULE ? 3 : 2;
    const bool small = rate != 0 && fabs(rate) < (digits == 3 ? 0.0995 : 0.01);
    (void)snprintf(text, UNIT_TEXT_SIZE, small ? "%#.*g %s" : "%.*f %s", small ? digits : 2, rate,
                   per[unit]);
}

char *unit_format(char *text, enum unit unit, double value)
{
    if (!isfinite(value)) {
        (void)snprintf(text, UNIT_TEXT_SIZE, "-");
        return text;
    }
    const char *sign = value < 0 ? "-" : "";
    const double size = fabs(value);
    switch (unit) {
    case UNIT_DURATION:
        format_duration(text, size, sign);
        break;
    case UNIT_TIME:
        format_time(text, value / 1e9);
        break;
    case UNIT_BYTES:
    case UNIT_BYTES_PER_SECOND:
        format_bytes(text, size, sign, unit == UNIT_BYTES ? "B" : "B/s");
        break;
    case UNIT_RATIO:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.1f %%", value > 0 && value < 0.0005 ? "<" : "",
                       value > 0 ? fmax(value * 100, 0.1) : value * 100);
        break;
    case UNIT_TOKENS_PER_SECOND:
    case UNIT_ITEMS_PER_SECOND:
    case UNIT_REQUEST_RATE:
    case UNIT_TOKEN_RATE:
    case UNIT_TOKENS_PER_JOULE:
        format_rate(text, unit, value);
        break;
    case UNIT_CELSIUS:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.0f C", value);
        break;
    case UNIT_WATTS:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.1f W", value);
        break;
    case UNIT_JOULES:
        if (size > 0 && size < 0.95)
            format_scaled(text, sign, size * 1e3, 1000, "m", " ", "J");
        else
            format_scaled(text, sign, size, 1000, " kMG", " ", "J");
        break;
    case UNIT_HERTZ:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0f MHz", sign, size / 1e6); // as others show it
        break;
    case UNIT_FLOPS:
        format_scaled(text, sign, size, 1000, " kMGT", " ", "flop/s");
        break;
    case UNIT_COUNT:
    case UNIT_TOKENS:
    case UNIT_NONE:
    case UNIT_COUNT_OF:
        format_number(text, value);
        if (unit == UNIT_COUNT || unit == UNIT_TOKENS)
            (void)unit_separate(text);
        break;
    }
    return text;
}

char *unit_format_int(char *text, enum unit unit, int64_t value)
{
    const bool plain = unit == UNIT_NONE || unit == UNIT_COUNT || unit == UNIT_TOKENS;
    if (plain) {
        (void)snprintf(text, UNIT_TEXT_SIZE, "%lld", (long long)value);
        if (unit != UNIT_NONE)
            (void)unit_separate(text);
    } else if (unit == UNIT_TIME) {
        // Whole seconds first: a double would round a time up across a second.
        format_time(text, (double)(value / 1000000000 - (value % 1000000000 < 0)));
    } else {
        unit_format(text, unit, (double)value);
    }
    return text;
}

char *unit_format_rough(char *text, enum unit unit, double value)
{
    enum { DIGITS = 3 };
    const double place = value != 0 ? pow(10, floor(log10(fabs(value))) - DIGITS + 1) : 1;
    (void)unit_format(text, unit, round(value / place) * place);
    const size_t point = strcspn(text, ".");
    if (point >= DIGITS && text[point] == '.') // its one decimal is 0
        memmove(text + point, text + point + 2, strlen(text + point + 2) + 1);
    return text;
}

char *unit_format_change(char *text, double ratio)
{
    const double percent = (ratio - 1) * 100;
    if (!isfinite(ratio))
        (void)snprintf(text, UNIT_TEXT_SIZE, "-");
    else if (fabs(percent) < 1000)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%+.1f %%", fabs(percent) < 0.05 ? 0.0 : percent);
    else
        (void)snprintf(text, UNIT_TEXT_SIZE, "x%.4g", ratio);
    return text;
}
