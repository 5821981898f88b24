#include "common/store/query/now.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/stats/stats.h"

const char *now_state_text(enum now_state state)
{
    static const char *const texts[] = {
#define NOW_STATE_TEXT(name, text) [NOW_##name] = text,
        NOW_STATES(NOW_STATE_TEXT)
#undef NOW_STATE_TEXT
    };
    return texts[state];
}

__attribute__((format(printf, 4, 5))) static void set(struct now_verdict *out, enum now_state state,
                                                      int64_t since_ns, const char *format, ...)
{
    va_list arguments;
    out->state = state;
    out->since_ns = since_ns;
    va_start(arguments, format);
    (void)vsnprintf(out->reason, sizeof out->reason, format, arguments);
    va_end(arguments);
}

// Appends ": TEXT", if there is one.
static void add_text(struct now_verdict *out, const char *before, const char *text)
{
    const size_t used = strlen(out->reason);
    if (text && *text)
        (void)snprintf(
            out->reason + used, sizeof out->reason - used, "%s%.*s", before,
            (int)text_cut(text, strlen(text), sizeof out->reason - used - strlen(before) - 1),
            text);
}

// Sets the usual median (0: unknown) and the worst of the days; `sign` is 1 where more is worse.
static double usual(const struct now_level *level, int sign, double *worst)
{
    double sorted[NOW_DAYS];
    if (level->count < NOW_REQUESTS_LEAST || level->day_count < NOW_DAYS_LEAST)
        return 0;
    memcpy(sorted, level->days, level->day_count * sizeof *sorted);
    stats_sort(sorted, level->day_count);
    *worst = sorted[sign > 0 ? level->day_count - 1 : 0];
    return stats_median(sorted, level->day_count);
}

static void compare(struct now_verdict *out, const struct now_facts *facts,
                    const struct now_level *level, enum unit unit, double as_usual,
                    const char *what)
{
    char now[UNIT_TEXT_SIZE], before[UNIT_TEXT_SIZE];
    set(out, NOW_SLOW, facts->since_ns, "%s %s, usually %s at this hour (%u days)", what,
        unit_format(now, unit, level->now), unit_format(before, unit, as_usual), level->day_count);
}

static bool judge_usual(const struct now_facts *facts, struct now_verdict *out)
{
    double worst = 0;
    const double speed = usual(&facts->speed, -1, &worst);
    if (speed > 0 && facts->speed.now * NOW_SPEED_FACTOR < speed && facts->speed.now < worst) {
        compare(out, facts, &facts->speed, UNIT_TOKENS_PER_SECOND, speed, "speed");
        return true;
    }
    const double ttft = usual(&facts->ttft, 1, &worst);
    if (ttft > 0 && facts->ttft.now > ttft * NOW_TTFT_FACTOR && facts->ttft.now > worst) {
        compare(out, facts, &facts->ttft, UNIT_DURATION, ttft, "TTFT");
        return true;
    }
    const double e2e = usual(&facts->e2e, 1, &worst);
    if (e2e > 0 && facts->e2e.now > e2e * NOW_SPEED_FACTOR && facts->e2e.now > worst) {
        compare(out, facts, &facts->e2e, UNIT_DURATION, e2e, "time of a request");
        return true;
    }
    if (speed > 0 || ttft > 0 || e2e > 0)
        set(out, NOW_OK, facts->live_ns, "as usual");
    return false;
}

static bool judge_processes(const struct now_facts *facts, struct now_verdict *out)
{
    const unsigned all = facts->live + facts->down + facts->silent;
    const bool only_failed_to_load = facts->load_failed_ns != 0 && facts->requests == 0;
    if (facts->down > 0 && all == 1)
        set(out, NOW_DOWN, facts->down_ns, "its process ended without closing");
    else if (facts->down > 0)
        set(out, NOW_DOWN, facts->down_ns, "%u of %u processes ended without closing", facts->down,
            all);
    else if (facts->silent > 0 && all == 1)
        set(out, NOW_SILENT, facts->silent_ns,
            "nothing heard of it: stopped, or no power or network");
    else if (facts->silent > 0)
        set(out, NOW_SILENT, facts->silent_ns,
            "nothing heard of %u of %u processes: stopped, or no power or network", facts->silent,
            all);
    else if (facts->live == 0 && !only_failed_to_load)
        set(out, NOW_ENDED, facts->ended_ns,
            facts->is_imported ? "imported" : "its process closed");
    else
        return false;
    if (facts->down > 0 && facts->lost_requests > 0)
        (void)text_append(out->reason, sizeof out->reason, "; ", "%lld request%s in progress",
                          (long long)facts->lost_requests,
                          facts->lost_requests > 1 ? "s were" : " was");
    else if (facts->down > 0)
        add_text(out, "; last activity: ", facts->last);
    if (facts->live == 0 && facts->load_failed_ns != 0)
        add_text(out, "; its load failed: ", facts->load_error);
    return true;
}

static bool judge_failures(const struct now_facts *facts, struct now_verdict *out)
{
    const double least = NOW_FAILED_RATIO * (double)facts->requests;
    const bool fails = facts->failed > 0 && facts->failed == facts->requests;
    if (fails || (facts->failed >= NOW_FAILED_LEAST && (double)facts->failed >= least)) {
        set(out, NOW_ERRORS, facts->failed_ns, "%llu of %llu requests failed",
            (unsigned long long)facts->failed, (unsigned long long)facts->requests);
        add_text(out, ": ", facts->error);
        return true;
    }
    if (facts->load_failed_ns == 0 || facts->requests > 0)
        return false;
    set(out, NOW_ERRORS, facts->load_failed_ns, "its load failed");
    add_text(out, ": ", facts->load_error);
    return true;
}

static void judge_live(const struct now_facts *facts, struct now_verdict *out)
{
    char length[UNIT_TEXT_SIZE];
    if (facts->requests > 0) {
        set(out, NOW_OK, facts->live_ns, "%s", "");
        (void)judge_usual(facts, out);
    } else if (facts->is_busy) {
        set(out, NOW_OK, facts->live_ns, "in progress");
        add_text(out, ": ", facts->doing);
    } else if (facts->is_loading) {
        set(out, NOW_LOADING, 0, "%s", facts->doing);
    } else {
        set(out, NOW_IDLE, facts->idle_ns, "no request in the last %s",
            unit_format(length, UNIT_DURATION, (double)facts->window_ns));
    }
}

void now_judge(const struct now_facts *facts, struct now_verdict *out)
{
    if (judge_processes(facts, out))
        return;
    if (!judge_failures(facts, out))
        judge_live(facts, out);
    add_text(out, out->reason[0] ? "; " : "", facts->trouble);
}
