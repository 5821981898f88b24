#include "client/cli/commands/device_trouble.h"

#include <string.h>

#include "common/core/base/text.h"
#include "common/core/record/throttle.h"

// A device whose newest sample is older is not sampled any more.
#define STALE_NS INT64_C(30000000000)

enum { NOTED_MAX = 3 };

static void add_events(char *text, struct value events, const char *const *said)
{
    if (events.type == VALUE_TEXT)
        record_event_words(text, TROUBLE_TEXT_SIZE, events.text.bytes, said);
}

char *device_trouble_text(char *text, const struct result *result, size_t row)
{
    char raw[TROUBLE_TEXT_SIZE] = "", words[THROTTLE_TEXT_SIZE], age[UNIT_TEXT_SIZE];
    const int64_t reasons = throttle_bits(result_integer(result, row, "throttle_reasons", 0));
    const int64_t width = result_integer(result, row, "pcie_width", 0);
    const int64_t width_max = result_integer(result, row, "pcie_width_max", 0);
    const int64_t errors = result_integer(result, row, "ecc_uncorrected", 0);
    const int64_t sampled_ns = result_integer(result, row, "sampled_ns", 0);
    const bool is_sampled = // or should be
        sampled_ns > 0 && result_get(result, row, "sampler_closed").type == VALUE_NULL;
    const int64_t ended_ns = result_integer(result, row, "sampler_ended_ns", 0);
    const int64_t age_ns = result_integer(result, row, "as_of_ns", 0) - sampled_ns;
    const char *said[4] = {NULL}; // events that the row's figures tell better
    unsigned said_count = 0;
    if (reasons) {
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "throttling: %s",
                          throttle_text(words, reasons));
        said[said_count++] = "throttling";
    }
    if (width > 0 && width < width_max) {
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "PCIe downgrade: x%lld of x%lld",
                          (long long)width, (long long)width_max);
        said[said_count++] = "pcie_downgrade";
    }
    if (errors > 0) {
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "ECC uncorrected: %lld error%s",
                          (long long)errors, cli_plural(errors));
        said[said_count++] = "ecc_uncorrected";
    }
    add_events(raw, result_get(result, row, "events"), said);
    add_events(raw, result_get(result, row, "device_events"), NULL);
    if (is_sampled && ended_ns > 0)
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "not sampled: process ended or silent");
    else if (is_sampled && age_ns > STALE_NS)
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "no sample for %s",
                          unit_format_int(age, UNIT_DURATION, age_ns));
    return text_escape(text, TROUBLE_TEXT_SIZE, raw, strlen(raw));
}

char *device_trouble_event(char *text, const struct result *result, size_t row)
{
    char raw[TROUBLE_TEXT_SIZE] = "";
    const struct value detail = result_get(result, row, "detail");
    if (result_is(result, row, "event", "xid"))
        (void)text_append(raw, TROUBLE_TEXT_SIZE, ", ", "XID %lld",
                          (long long)result_integer(result, row, "code", 0));
    else
        add_events(raw, result_get(result, row, "event"), NULL);
    if (detail.type == VALUE_TEXT)
        (void)text_append(raw, sizeof raw, "", ": %s", detail.text.bytes);
    return text_escape(text, TROUBLE_TEXT_SIZE, raw, strlen(raw));
}

void device_trouble_note(struct cli *cli, const char *title)
{
    struct query query = {.kind = QUERY_DEVICE_HEALTH};
    struct result *result = NULL;
    struct error ignored = {0};
    size_t count = 0;
    char line[(NOTED_MAX + 1) * TROUBLE_TEXT_SIZE] = "";
    static const enum query_dimension kept[] = {QUERY_BY_HOST, QUERY_BY_DEVICE};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        memcpy(query.filter.by[kept[i]], cli->query.filter.by[kept[i]], QUERY_TEXT_SIZE);
    if (cli_ask(cli, &query, &result, &ignored) != STATUS_OK)
        return;
    for (size_t row = 0; row < result_row_count(result); row++) {
        char text[TROUBLE_TEXT_SIZE], host[QUERY_TEXT_SIZE], device[QUERY_TEXT_SIZE];
        if (device_trouble_text(text, result, row)[0] && count++ < NOTED_MAX)
            (void)text_append(line, sizeof line, "; ", "%s %s: %s",
                              result_text(host, sizeof host, result, row, "host"),
                              result_text(device, sizeof device, result, row, "device"), text);
    }
    if (count > NOTED_MAX)
        (void)text_append(line, sizeof line, "; ", "%zu more device%s", count - NOTED_MAX,
                          cli_plural((int64_t)(count - NOTED_MAX)));
    (void)text_append(line, sizeof line, "", " (inferstat devices)");
    const int indent = (int)strlen(title);
    if (count > 0 && fputs(title, cli->env.out) >= 0)
        cli_print_words(cli, indent, indent, line);
    result_free(result);
}
