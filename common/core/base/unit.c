#include "common/core/base/unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static const char *const names[UNIT_COUNT_OF] = {
#define UNIT_NAME(name, text) [UNIT_##name] = text,
    UNIT_TABLE(UNIT_NAME)};

const char *unit_name(enum unit unit)
{
    return (size_t)unit < UNIT_COUNT_OF ? names[unit] : "";
}

// A size with one decimal moves on to the next step where rounding would show
// the next step's first value: 1023.96 MB is 1.0 GB.
struct step {
    double size; // of one, in the base unit
    double next; // how many of this make one of the next
    const char *suffix;
};

static void format_steps(char *text, double value, const char *sign, const struct step *steps,
                         unsigned count, const char *space)
{
    unsigned i = 0;
    while (i + 1 < count && round(value / steps[i].size * 10) / 10 >= steps[i].next)
        i++;
    (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.1f%s%s", sign, value / steps[i].size, space,
                   steps[i].suffix);
}

static void format_duration(char *text, double ns, const char *sign)
{
    static const struct step steps[] = {{1e3, 1000, "us"}, {1e6, 1000, "ms"}, {1e9, 60, "s"}};
    const double second = 1e9;
    const double minutes_from = 59.95 * second; // 59.95 s would show as 60.0 s
    if (round(ns) < 1000) {
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fns", sign, ns);
    } else if (ns < minutes_from) {
        format_steps(text, ns, sign, steps, 3, "");
    } else if (round(ns / second) < 3600) {
        const double seconds = round(ns / second);
        const double minutes = floor(seconds / 60);
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fm %02.0fs", sign, minutes,
                       seconds - minutes * 60);
    } else {
        const double minutes = round(ns / second / 60);
        const double hours = floor(minutes / 60);
        (void)snprintf(text, UNIT_TEXT_SIZE, "%s%.0fh %02.0fm", sign, hours, minutes - hours * 60);
    }
}

static void format_bytes(char *text, double bytes, const char *sign, const char *per)
{
    static const struct step steps[] = {{0x1p10, 1024, "KB"},
                                        {0x1p20, 1024, "MB"},
                                        {0x1p30, 1024, "GB"},
                                        {0x1p40, 1024, "TB"},
                                        {0x1p50, 1024, "PB"}};
    char number[UNIT_TEXT_SIZE];
    if (round(bytes) < 1024)
        (void)snprintf(number, sizeof number, "%s%.0f B", sign, bytes);
    else
        format_steps(number, bytes, sign, steps, 5, " ");
    (void)snprintf(text, UNIT_TEXT_SIZE, "%.40s%s", number, per);
}

static void format_hertz(char *text, double hertz, const char *sign)
{
    static const struct step steps[] = {
        {1, 1000, "Hz"}, {1e3, 1000, "kHz"}, {1e6, 1000, "MHz"}, {1e9, 1000, "GHz"}};
    format_steps(text, hertz, sign, steps, 4, " ");
}

static void format_flops(char *text, double rate, const char *sign)
{
    static const struct step steps[] = {{1, 1000, "flop/s"},
                                        {1e3, 1000, "kflop/s"},
                                        {1e6, 1000, "Mflop/s"},
                                        {1e9, 1000, "Gflop/s"},
                                        {1e12, 1000, "Tflop/s"}};
    format_steps(text, rate, sign, steps, 5, " ");
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

// Two decimals, or of what these would show as next to none, two digits that count.
static void format_rate(char *text, double rate, const char *per)
{
    const bool small = rate != 0 && fabs(rate) < 0.01;
    (void)snprintf(text, UNIT_TEXT_SIZE, small ? "%#.2g %s" : "%.2f %s", rate, per);
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
        format_bytes(text, size, sign, "");
        break;
    case UNIT_BYTES_PER_SECOND:
        format_bytes(text, size, sign, "/s");
        break;
    case UNIT_RATIO:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.1f %%", value * 100);
        break;
    case UNIT_TOKENS_PER_SECOND:
        format_rate(text, value, "t/s");
        break;
    case UNIT_ITEMS_PER_SECOND:
        format_rate(text, value, "/s");
        break;
    case UNIT_TOKENS_PER_JOULE:
        format_rate(text, value, "t/J");
        break;
    case UNIT_CELSIUS:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.0f C", value);
        break;
    case UNIT_WATTS:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.1f W", value);
        break;
    case UNIT_JOULES:
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.1f J", value);
        break;
    case UNIT_HERTZ:
        format_hertz(text, size, sign);
        break;
    case UNIT_FLOPS:
        format_flops(text, size, sign);
        break;
    case UNIT_NONE:
    case UNIT_COUNT:
    case UNIT_TOKENS:
    case UNIT_COUNT_OF:
        format_number(text, value);
        break;
    }
    return text;
}

char *unit_format_int(char *text, enum unit unit, int64_t value)
{
    const bool plain = unit == UNIT_NONE || unit == UNIT_COUNT || unit == UNIT_TOKENS;
    if (plain)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%lld", (long long)value);
    else if (unit == UNIT_TIME)
        // Whole seconds first: a double would round a time up across a second.
        format_time(text, (double)(value / 1000000000 - (value % 1000000000 < 0)));
    else
        unit_format(text, unit, (double)value);
    return text;
}
