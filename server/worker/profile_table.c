#include "server/worker/profile_table.h"

#include <math.h>

#include "common/core/base/unit.h"
#include "server/workload/telemetry.h"

static const char *const phases[PROFILE_PHASES] = {
    [PROFILE_PREFILL] = "prefill",
    [PROFILE_DECODE] = "decode",
};

// What the rows of a table have in common.
struct heading {
    FILE *out;
    double total_ns;   // of the table
    double bandwidth;  // bytes per second of the device's memory; 0: unknown
    double peak_flops; // of the device; 0: unknown
};

static double per_second(double amount, double ns)
{
    return amount > 0.0 && ns > 0.0 ? amount * 1e9 / ns : (double)NAN;
}

static double share(double part, double whole)
{
    return whole > 0.0 ? part / whole : (double)NAN;
}

static void print_row(const struct heading *h, const char *name, struct profile_sum sum)
{
    if (sum.calls == 0)
        return;
    char text[5][UNIT_TEXT_SIZE];
    char gflops[UNIT_TEXT_SIZE] = "-";
    const double bandwidth = per_second((double)sum.bytes, sum.ns);
    const double flops = per_second(sum.flops, sum.ns);
    if (!isnan(flops))
        (void)snprintf(gflops, sizeof gflops, "%.1f", flops / 1e9);
    (void)fprintf(h->out, "%-18s %9llu %9s %8s %12s %8s %9s %8s\n", name,
                  (unsigned long long)sum.calls, unit_format(text[0], UNIT_DURATION, sum.ns),
                  unit_format(text[1], UNIT_RATIO, share(sum.ns, h->total_ns)),
                  unit_format(text[2], UNIT_BYTES_PER_SECOND, bandwidth),
                  unit_format(text[3], UNIT_RATIO, share(bandwidth, h->bandwidth)), gflops,
                  unit_format(text[4], UNIT_RATIO, share(flops, h->peak_flops)));
}

static void print_heading(struct heading *h, const char *what, const struct profile_sum *total)
{
    h->total_ns = total->ns;
    (void)fprintf(h->out, "\n%-18s %9s %9s %8s %12s %8s %9s %8s\n", what, "calls", "time", "share",
                  "bytes/s", "MBU", "GFLOP/s", "MFU");
}

static void print_operations(struct heading *h, const struct layer_profile *profile, size_t phase)
{
    const struct profile_sum total = layer_profile_sum(profile, PROFILE_ALL, PROFILE_ALL, phase);
    if (total.calls == 0)
        return;
    print_heading(h, phases[phase], &total);
    for (size_t i = 0; i < layer_profile_operations(profile); i++)
        print_row(h, layer_profile_name(profile, i),
                  layer_profile_sum(profile, i, PROFILE_ALL, phase));
    print_row(h, "all", total);
}

static void print_layers(struct heading *h, const struct layer_profile *profile)
{
    const struct profile_sum total =
        layer_profile_sum(profile, PROFILE_ALL, PROFILE_ALL, PROFILE_ALL);
    print_heading(h, "layer", &total);
    for (size_t layer = 0; layer <= layer_profile_layers(profile); layer++) {
        char name[32] = "outside layers";
        if (layer < layer_profile_layers(profile))
            (void)snprintf(name, sizeof name, "%zu", layer);
        print_row(h, name, layer_profile_sum(profile, PROFILE_ALL, layer, PROFILE_ALL));
    }
}

void profile_table_print(FILE *out, const struct layer_profile *profile,
                         const struct device *device)
{
    struct device_properties properties;
    device_look_up(device, &properties);
    struct heading heading = {
        .out = out, .bandwidth = properties.rates.memory, .peak_flops = properties.peak_flops};
    for (size_t phase = 0; phase < PROFILE_PHASES; phase++)
        print_operations(&heading, profile, phase);
    print_layers(&heading, profile);
}
