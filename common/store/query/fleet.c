#include "common/store/query/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/core/record/throttle.h"
#include "common/core/stats/stats.h"

#define REQUESTS (1U << FLEET_OF_REQUESTS)
#define LOADS    (1U << FLEET_OF_LOADS)

// How a number is told, when it is otherwise than with the peers, and which way is bad.
static const struct {
    const char *what;
    const char *mark; // before each value
    enum unit unit;
    bool less_is_worse;
    bool relative;   // whether `least` is a share of the peers' value
    double least;    // a smaller difference is none
    unsigned matter; // for which subjects: bits of enum fleet_subject
} numbers[FLEET_NUMBERS] = {
    [FLEET_PCIE_WIDTH] = {"PCIe ", "x", UNIT_NONE, true, true, 0.01, REQUESTS | LOADS},
    [FLEET_PCIE_GENERATION] = {"PCIe ", "gen ", UNIT_NONE, true, false, 0.5, REQUESTS | LOADS},
    [FLEET_THROTTLED] = {"throttled ", "", UNIT_RATIO, false, false, 0.1, REQUESTS},
    [FLEET_SM_CLOCK] = {"clock ", "", UNIT_HERTZ, true, true, 0.03, REQUESTS},
    [FLEET_MEMORY_CLOCK] = {"memory clock ", "", UNIT_HERTZ, true, true, 0.03, REQUESTS},
    [FLEET_TEMPERATURE] = {"temperature ", "", UNIT_CELSIUS, false, false, 10, REQUESTS},
    [FLEET_H2D] = {"copies to the device ", "", UNIT_BYTES_PER_SECOND, true, true, 0.1,
                   REQUESTS | LOADS},
    [FLEET_BANDWIDTH] = {"device memory ", "", UNIT_BYTES_PER_SECOND, true, true, 0.05, REQUESTS},
    [FLEET_CONCURRENT] = {"requests at once ", "", UNIT_COUNT, false, true, 0.2, REQUESTS},
    [FLEET_PROMPT] = {"prompts of ", "", UNIT_TOKENS, false, true, 0.2, REQUESTS},
    [FLEET_PAGE_CACHE] = {"page cache ", "", UNIT_RATIO, true, false, 0.2, LOADS},
    [FLEET_DEVICE_MEMORY] = {"device memory in use ", "", UNIT_BYTES, false, true, 0.2, REQUESTS},
    [FLEET_HOST_MEMORY] = {"host memory ", "", UNIT_BYTES, true, true, 0.1, REQUESTS | LOADS},
    [FLEET_CPU_COUNT] = {"processors ", "", UNIT_COUNT, true, true, 0.1, REQUESTS | LOADS},
};

static const char *const texts[FLEET_TEXTS] = {
    [FLEET_GOVERNOR] = "governor ", [FLEET_DRIVER] = "driver ", [FLEET_CUDA] = "CUDA ",
    [FLEET_KERNEL] = "kernel ",     [FLEET_CPU] = "processor ", [FLEET_VERSION] = "version ",
};

void fleet_facts_init(struct fleet_facts *facts)
{
    *facts =
        (struct fleet_facts){.pcie_width_max = (double)NAN, .pcie_generation_max = (double)NAN};
    for (unsigned i = 0; i < FLEET_NUMBERS; i++)
        facts->numbers[i] = (double)NAN;
}

// A reason being written.  What does not fit is left out.
struct reason {
    char *text;
    size_t used;
};

static void append(struct reason *reason, const char *what)
{
    const size_t room = FLEET_REASON_SIZE - reason->used;
    const int n =
        snprintf(reason->text + reason->used, room, "%s%s", reason->used ? ", " : "", what);
    if (n > 0 && (size_t)n < room)
        reason->used += (size_t)n;
    else
        reason->text[reason->used] = '\0';
}

// ---- Numbers ------------------------------------------------------------------------

// The median of what is known of the others; NaN where nothing is.
static double usual_number(enum fleet_number number, const struct fleet_facts *const *others,
                           size_t count, double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(others[i]->numbers[number]))
            scratch[known++] = others[i]->numbers[number];
    stats_sort(scratch, known);
    return stats_median(scratch, known);
}

static bool differs(enum fleet_number number, double value, double usual, bool is_worse)
{
    const double difference = numbers[number].less_is_worse ? usual - value : value - usual;
    const double least =
        numbers[number].relative ? numbers[number].least * fabs(usual) : numbers[number].least;
    return is_worse ? difference >= least && difference > 0
                    : difference <= -least && difference < 0;
}

static void append_number(struct reason *reason, enum fleet_number number,
                          const struct fleet_facts *host, double usual)
{
    char value[UNIT_TEXT_SIZE], peers[UNIT_TEXT_SIZE], maximum[UNIT_TEXT_SIZE], line[256];
    char more[THROTTLE_TEXT_SIZE + 8] = "";
    const double limit = number == FLEET_PCIE_WIDTH        ? host->pcie_width_max
                         : number == FLEET_PCIE_GENERATION ? host->pcie_generation_max
                                                           : (double)NAN;
    if (host->numbers[number] < limit)
        (void)snprintf(more, sizeof more, " of %s%s", numbers[number].mark,
                       unit_format(maximum, numbers[number].unit, limit));
    if (number == FLEET_THROTTLED && throttle_bits(host->throttle_reasons)) {
        char why[THROTTLE_TEXT_SIZE];
        (void)snprintf(more, sizeof more, " by %s", throttle_text(why, host->throttle_reasons));
    }
    int used = snprintf(line, sizeof line, "%s%s%s%s", numbers[number].what, numbers[number].mark,
                        unit_format(value, numbers[number].unit, host->numbers[number]), more);
    if (!isnan(usual) && used > 0 && (size_t)used < sizeof line)
        (void)snprintf(line + used, sizeof line - (size_t)used, " (peers %s%s)",
                       numbers[number].mark, unit_format(peers, numbers[number].unit, usual));
    append(reason, line);
}

// What the facts say by themselves, where nothing is known of others.
static bool is_below_its_best(enum fleet_number number, const struct fleet_facts *host)
{
    if (number == FLEET_PCIE_WIDTH)
        return host->numbers[number] < host->pcie_width_max;
    if (number == FLEET_PCIE_GENERATION)
        return host->numbers[number] < host->pcie_generation_max;
    return false;
}

// ---- Texts ---------------------------------------------------------------------------

// The text of more than half of the others that have one, or NULL.
static const char *usual_text(enum fleet_text text, const struct fleet_facts *const *others,
                              size_t count)
{
    const char *candidate = NULL; // Boyer and Moore's vote
    size_t votes = 0, known = 0, same = 0;
    for (size_t i = 0; i < count; i++) {
        const char *one = others[i]->texts[text];
        if (!one[0])
            continue;
        known++;
        if (votes == 0)
            candidate = one;
        if (strcmp(candidate, one) == 0)
            votes++;
        else
            votes--;
    }
    for (size_t i = 0; candidate && i < count; i++)
        same += strcmp(candidate, others[i]->texts[text]) == 0;
    return 2 * same > known ? candidate : NULL;
}

static void append_text(struct reason *reason, enum fleet_text text, const struct fleet_facts *host,
                        const struct fleet_facts *const *others, size_t count)
{
    const char *usual = usual_text(text, others, count);
    if (!usual || !host->texts[text][0] || strcmp(usual, host->texts[text]) == 0)
        return;
    char line[2 * FLEET_TEXT_SIZE + 32];
    (void)snprintf(line, sizeof line, "%s%s (peers %s)", texts[text], host->texts[text], usual);
    append(reason, line);
}

char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count)
{
    struct reason reason = {.text = text};
    text[0] = '\0';
    double *scratch = calloc(count ? count : 1, sizeof *scratch);
    if (!scratch)
        return text;
    for (unsigned i = 0; i < FLEET_NUMBERS; i++) {
        const enum fleet_number number = (enum fleet_number)i;
        if (!(numbers[i].matter >> subject & 1) || isnan(host->numbers[i]))
            continue;
        const double usual = usual_number(number, others, count, scratch);
        if (isnan(usual) ? is_worse && is_below_its_best(number, host)
                         : differs(number, host->numbers[i], usual, is_worse))
            append_number(&reason, number, host, usual);
    }
    free(scratch);
    for (unsigned i = 0; i < FLEET_TEXTS; i++)
        append_text(&reason, (enum fleet_text)i, host, others, count);
    return text;
}
