// The built-in rules on a simulated fleet of 10 hosts with 3 models and 2 devices each, evaluated
// every 15 s: 10 hours of it, INFERSTAT_TEST_VOLUME times that.
//
// Noise of the healthy fleet:
//   load        by the time of day, between 0.2 and 1.8 times its mean; each host has its own hour
//   requests    Poisson, 8, 2 and 0.5 in 15 s (by model); TTFT 0.4 s and speed 40 t/s in the
//   median,
//               each request by a log-normal factor (sigma 0.5), all of a host by one that is
//               correlated in time (log-normal, sigma 0.15, 12 minutes), 15 % slower at the highest
//               load; one in 500 takes ten times as long
//   devices     68 to 74 C by load, and correlated noise (sigma 2 K), 90 C slow them down; memory
//   60
//               to 85 %, sigma 1.5 %; clocks held back for 5 s about every 20 minutes
//   hosts       memory 50 to 75 %, sigma 1.5 %; a message every 2 s, about every 2 hours none for 5
//               to 20 s; clocks off by 5 ms (sigma)
#include <math.h>

#include "common/core/alert/alert_file.h"
#include "common/core/alert/alert_state.h"
#include "tests/support/test.h"

#define SECOND_NS INT64_C(1000000000)
#define START_NS  (INT64_C(1774785600) * SECOND_NS)

enum {
    HOSTS = 10,
    MODELS = 3,
    DEVICES = 2,
    STEP_S = 15,
    STEPS_AN_HOUR = 3600 / STEP_S,
    WINDOW = 300 / STEP_S, // longest window of these rules, in steps
    REQUESTS_MAX = 64,     // of a model and host in a step
};

// The rules, and what is injected for each: from `low` to `high`, found within `within_s`.
enum {
    TTFT_P50,
    TTFT_P95,
    SPEED,
    HOST_MEMORY,
    HOT,
    THROTTLED,
    DEVICE_MEMORY,
    SILENT,
    CLOCK,
    RULES
};
static const struct {
    const char *name;
    int series; // of a host
    double low, high;
    int within_s;
} kinds[RULES] = {
    [TTFT_P50] = {"slow_first_token", MODELS, 12, 40, 450},     // all take so many times as long
    [TTFT_P95] = {"slow_first_tokens", MODELS, 0.15, 0.4, 450}, // of this share
    [SPEED] = {"slow_tokens", MODELS, 8, 40, 450},
    [HOST_MEMORY] = {"host_memory", 1, 0.93, 0.99, 450},
    [HOT] = {"device_hot", DEVICES, 88, 100, 150}, // degrees Celsius
    [THROTTLED] = {"device_throttled", DEVICES, 0.3, 1, 240},
    [DEVICE_MEMORY] = {"device_memory", DEVICES, 0.97, 1, 450},
    [SILENT] = {"host_silent", 1, 0, 0, 90},
    [CLOCK] = {"clock_off", 1, 1.2, 14400, 120}, // seconds
};

struct requests {
    double ttft[WINDOW][REQUESTS_MAX], seconds_a_token[WINDOW][REQUESTS_MAX];
    int count[WINDOW];
};

struct host {
    double slow, memory; // states of correlated noise
    double device_memory[DEVICES], heat[DEVICES];
    double throttled[DEVICES][WINDOW], temperature[DEVICES][WINDOW], used[DEVICES][WINDOW];
    double host_used[WINDOW];
    struct requests models[MODELS];
    int silent_s;
    bool is_away; // its clock has jumped: its records are in no window
};

struct fleet {
    uint64_t random;
    struct alert_rule rules[RULES];
    struct host hosts[HOSTS];
    struct alert_series series[RULES][HOSTS][MODELS];
    int at; // steps since the start
    // What is injected: for a rule (RULES: nothing) and one of its series.
    int fault, fault_host, fault_place;
    double fault_size;
    int fired; // alerts that fired and were not injected
    bool was_found;
};

static double uniform(struct fleet *fleet)
{
    return ((double)(test_random(&fleet->random) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct fleet *fleet)
{
    return sqrt(-2 * log(uniform(fleet))) * cos(2 * acos(-1) * uniform(fleet));
}

static int poisson(struct fleet *fleet, double mean)
{
    int count = 0;
    for (double product = uniform(fleet); product > exp(-mean) && count < REQUESTS_MAX; count++)
        product *= uniform(fleet);
    return count;
}

// Noise with deviation 1, correlated over 12 minutes.
static void drift(struct fleet *fleet, double *state)
{
    const double keep = exp(-STEP_S / 720.0);
    *state = keep * *state + sqrt(1 - keep * keep) * normal(fleet);
}

static double load_of(const struct fleet *fleet, int host)
{
    const double hour = (double)fleet->at / STEPS_AN_HOUR + 2.4 * host;
    return 1 + 0.8 * sin(hour * acos(-1) / 12);
}

static bool has_fault(const struct fleet *fleet, int rule, int host, int place)
{
    return fleet->fault == rule && fleet->fault_host == host && fleet->fault_place == place;
}

static void make_requests(struct fleet *fleet, int at, int host_at, int model)
{
    static const double rates[MODELS] = {8, 2, 0.5};
    struct host *host = &fleet->hosts[host_at];
    struct requests *requests = &host->models[model];
    const int slot = at % WINDOW;
    const double load = load_of(fleet, host_at);
    const int count = host->is_away ? 0 : poisson(fleet, rates[model] * load);
    const double slow = exp(0.15 * host->slow) * (1 + 0.15 * (load - 1) / 0.8);
    requests->count[slot] = count;
    for (int i = 0; i < count; i++) {
        double ttft = 0.4 * slow * exp(0.5 * normal(fleet));
        double token = slow * exp(0.5 * normal(fleet)) / 40;
        if (uniform(fleet) < 0.002) {
            ttft *= 10;
            token *= 10;
        }
        if (has_fault(fleet, TTFT_P50, host_at, model) ||
            (has_fault(fleet, TTFT_P95, host_at, model) && uniform(fleet) < fleet->fault_size))
            ttft *= fleet->fault == TTFT_P50 ? fleet->fault_size : 25;
        if (has_fault(fleet, SPEED, host_at, model))
            token *= fleet->fault_size;
        requests->ttft[slot][i] = ttft * 1e9;
        requests->seconds_a_token[slot][i] = token;
    }
}

static void make_host(struct fleet *fleet, int at)
{
    struct host *host = &fleet->hosts[at];
    const int slot = fleet->at % WINDOW;
    const double load = load_of(fleet, at), share = (load - 0.2) / 1.6;
    drift(fleet, &host->slow);
    drift(fleet, &host->memory);
    host->is_away = has_fault(fleet, CLOCK, at, 0) && fabs(fleet->fault_size) > 300;
    host->silent_s = 2 + (int)(5 * uniform(fleet)); // saved every 5 s
    if (uniform(fleet) < 1.0 / (2 * STEPS_AN_HOUR))
        host->silent_s += 5 + (int)(15 * uniform(fleet));
    host->host_used[slot] = 0.5 + 0.25 * share + 0.015 * host->memory;
    if (has_fault(fleet, HOST_MEMORY, at, 0))
        host->host_used[slot] = fleet->fault_size;
    for (int i = 0; i < DEVICES; i++) {
        drift(fleet, &host->heat[i]);
        drift(fleet, &host->device_memory[i]);
        host->temperature[i][slot] = 68 + 6 * share + 2 * host->heat[i];
        host->used[i][slot] = 0.6 + 0.25 * share + 0.015 * host->device_memory[i];
        host->throttled[i][slot] = uniform(fleet) < STEP_S / 1200.0 ? 5.0 / STEP_S : 0;
        if (has_fault(fleet, HOT, at, i))
            host->temperature[i][slot] = fleet->fault_size;
        if (has_fault(fleet, DEVICE_MEMORY, at, i))
            host->used[i][slot] = fleet->fault_size;
        if (has_fault(fleet, THROTTLED, at, i))
            host->throttled[i][slot] = fleet->fault_size;
    }
    for (int i = 0; i < MODELS; i++)
        make_requests(fleet, fleet->at, at, i);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct alert_reading quantile(const struct requests *requests,
                                     const double values[WINDOW][REQUESTS_MAX], double q)
{
    double all[WINDOW * REQUESTS_MAX];
    size_t count = 0;
    for (int i = 0; i < WINDOW; i++)
        for (int k = 0; k < requests->count[i]; k++)
            all[count++] = values[i][k];
    if (count == 0)
        return (struct alert_reading){0};
    qsort(all, count, sizeof *all, by_value);
    return (struct alert_reading){
        .has_data = true, .value = all[(size_t)(q * (double)(count - 1) + 0.5)], .count = count};
}

// The mean of the last `steps` steps.
static struct alert_reading mean(const struct fleet *fleet, const struct host *host,
                                 const double values[WINDOW], int steps)
{
    double sum = 0;
    for (int i = 0; i < steps; i++)
        sum += values[(fleet->at + WINDOW - i) % WINDOW];
    return (struct alert_reading){
        .has_data = !host->is_away, .value = sum / steps, .count = (uint64_t)steps * STEP_S};
}

static struct alert_reading read_value(struct fleet *fleet, int rule, int at, int place)
{
    const struct host *host = &fleet->hosts[at];
    const struct requests *requests = &host->models[place];
    struct alert_reading reading = {.has_data = true, .count = 1};
    switch (rule) {
    case TTFT_P50:
        return quantile(requests, requests->ttft, 0.5);
    case TTFT_P95:
        return quantile(requests, requests->ttft, 0.95);
    case SPEED:
        reading = quantile(requests, requests->seconds_a_token, 0.5);
        reading.value = 1 / reading.value;
        return reading;
    case HOST_MEMORY:
        return mean(fleet, host, host->host_used, WINDOW);
    case HOT:
        reading = mean(fleet, host, host->temperature[place], 60 / STEP_S);
        reading.value = 90 - reading.value;
        return reading;
    case THROTTLED:
        return mean(fleet, host, host->throttled[place], WINDOW);
    case DEVICE_MEMORY:
        return mean(fleet, host, host->used[place], WINDOW);
    case SILENT:
        reading.value = host->silent_s * 1e9;
        if (has_fault(fleet, SILENT, at, 0)) // it began with `fault_size` seconds of silence
            reading.value = (fleet->fault_size += STEP_S) * 1e9;
        return reading;
    default:
        reading.value = fabs(0.005 * normal(fleet)) * 1e9;
        if (has_fault(fleet, CLOCK, at, 0))
            reading.value = fleet->fault_size * 1e9;
        return reading;
    }
}

static void step(struct fleet *fleet)
{
    fleet->at++;
    for (int i = 0; i < HOSTS; i++)
        make_host(fleet, i);
    for (int rule = 0; rule < RULES; rule++)
        for (int i = 0; i < HOSTS * kinds[rule].series; i++) {
            const int host = i % HOSTS, place = i / HOSTS;
            const struct alert_reading reading = read_value(fleet, rule, host, place);
            if (alert_step(&fleet->series[rule][host][place], &fleet->rules[rule], &reading,
                           START_NS + (int64_t)fleet->at * STEP_S * SECOND_NS) != ALERT_FIRED)
                continue;
            // A fault of the one rule on requests' TTFT may be found by the other, too.
            const bool is_ours =
                fleet->fault != RULES && fleet->fault_host == host && fleet->fault_place == place &&
                (rule == fleet->fault || (rule == TTFT_P95 && fleet->fault == TTFT_P50));
            if (!is_ours) {
                fleet->fired++;
                print_message("%s: host %d, %d: %g at %.2f h, fault %d\n", kinds[rule].name, host,
                              place, reading.value, (double)fleet->at / STEPS_AN_HOUR,
                              fleet->fault);
            }
            fleet->was_found = fleet->was_found || rule == fleet->fault;
        }
}

static struct fleet *new_fleet(uint64_t seed)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    struct alert_file file;
    struct error err = {0};
    assert_non_null(fleet);
    fleet->random = seed;
    fleet->fault = RULES;
    expect_ok(alert_file_read(&file, "", 0, &err), &err);
    for (int i = 0; i < RULES; i++)
        for (size_t k = 0; k < file.rule_count; k++)
            if (strcmp(file.rules[k].name, kinds[i].name) == 0)
                fleet->rules[i] = file.rules[k];
    for (int i = 0; i < RULES; i++)
        assert_string_equal(fleet->rules[i].name, kinds[i].name);
    alert_file_deinit(&file);
    return fleet;
}

TEST_CASE(a_healthy_fleet)
{
    const unsigned hours = test_volume(10);
    struct fleet *fleet = new_fleet(1);
    for (unsigned i = 0; i < hours * STEPS_AN_HOUR; i++)
        step(fleet);
    print_message("%u hours: %d false alerts\n", hours, fleet->fired);
    assert_int_equal(fleet->fired, 0);
    free(fleet);
}

// Injects a fault for a rule; returns whether it was found in time.
static bool inject(struct fleet *fleet, int rule)
{
    const double scale = uniform(fleet);
    fleet->fault_host = (int)(uniform(fleet) * HOSTS);
    fleet->fault_place = (int)(uniform(fleet) * kinds[rule].series);
    // Slow requests are found where the window has enough: some 40, for the 95th percentile 160.
    if (rule <= SPEED)
        fleet->fault_place = rule == TTFT_P95 ? 0 : fleet->fault_place % 2;
    while (rule <= SPEED && load_of(fleet, fleet->fault_host) < 1)
        fleet->fault_host = (fleet->fault_host + 1) % HOSTS;
    fleet->fault_size = kinds[rule].low + scale * (kinds[rule].high - kinds[rule].low);
    if (rule == CLOCK) // from a second to hours
        fleet->fault_size = kinds[rule].low * pow(kinds[rule].high / kinds[rule].low, scale);
    fleet->fault = rule;
    fleet->was_found = false;
    for (int i = 0; i < kinds[rule].within_s / STEP_S; i++)
        step(fleet);
    const bool is_found = fleet->was_found;
    for (int i = 0; i < 300 / STEP_S; i++) // it lasts
        step(fleet);
    fleet->fault = RULES;
    for (int i = 0; i < 1800 / STEP_S; i++)
        step(fleet);
    const enum alert_state state = fleet->series[rule][fleet->fault_host][fleet->fault_place].state;
    if (state == ALERT_FIRING || state == ALERT_NO_DATA)
        fail_msg("%s: %s half an hour after its end", kinds[rule].name, alert_state_text(state));
    return is_found;
}

TEST_CASE(faults_are_found)
{
    const unsigned rounds = test_volume(4);
    unsigned found[RULES] = {0}, all = 0;
    struct fleet *fleet = new_fleet(2);
    for (int i = 0; i < WINDOW; i++)
        step(fleet);
    for (unsigned i = 0; i < rounds; i++)
        for (int rule = 0; rule < RULES; rule++)
            found[rule] += inject(fleet, rule);
    for (int rule = 0; rule < RULES; rule++) {
        print_message("%s: %u of %u within %d s\n", kinds[rule].name, found[rule], rounds,
                      kinds[rule].within_s);
        all += found[rule];
    }
    assert_true(all * 100 >= rounds * RULES * 99);
    assert_int_equal(fleet->fired, 0); // no other alert, of any host
    free(fleet);
}

TEST_MAIN(a_healthy_fleet, faults_are_found)
