// Detection of events, by readings one second apart.
#include "tests/support/test.h"

#include "common/monitor/sampler/health_events.h"

enum { OWN_PID = 1000 };

static struct health_detector detector;
static char found[1024];

// "NAME@START" when an event begins, "NAME@START+SECONDS" when it ends, with "#CODE".
static void add(const void *context, const struct health_event *event, uint32_t device)
{
    (void)context, (void)device;
    size_t used = strlen(found);
    used += (size_t)snprintf(found + used, sizeof found - used, "%s%s@%lld", used ? " " : "",
                             health_kind_name(event->kind),
                             (long long)(event->started_ns / 1000000000));
    if (event->duration_ns >= 0)
        used += (size_t)snprintf(found + used, sizeof found - used, "+%lld",
                                 (long long)(event->duration_ns / 1000000000));
    if (event->code >= 0)
        (void)snprintf(found + used, sizeof found - used, "#%lld", (long long)event->code);
}

static const struct health_sink sink = {.add = add};

static void begin(void)
{
    memset(&detector, 0, sizeof detector);
    found[0] = '\0';
}

static struct gpu_reading reading_at(size_t second)
{
    struct gpu_reading reading = {.info = {.uuid = "GPU-1"}};
    record_init(&reading.sample, RECORD_KIND_DEVICE_SAMPLE, (int64_t)second * 1000000000);
    reading.info.pcie = (struct pcie_link){.generation_max = 5, .width_max = 16};
    return reading;
}

static void add_process(struct gpu_reading *reading, int64_t pid)
{
    struct gpu_process *process = &reading->processes[reading->process_count++];
    *process = (struct gpu_process){.pid = pid, .memory_bytes = -1, .name = "python"};
}

// What a letter says of the second.
static void apply(struct gpu_reading *reading, char letter)
{
    struct record *sample = &reading->sample;
    const bool is_loaded = strchr("LNGP", letter) != NULL;
    static int64_t errors;
    switch (letter) {
    case '?': // nothing is told
        return;
    case 'c': // power cap; with i: idle, which does not count
        record_set_int(sample, DEVICE_SAMPLE_THROTTLE, 0x04 | 0x01);
        return;
    case 'h': // thermal
        record_set_int(sample, DEVICE_SAMPLE_THROTTLE, 0x40);
        return;
    case 'x':
        reading->lost = true;
        return;
    case 'L': // loaded, full link
    case 'l': // idle
    case 'N': // narrow link
    case 'n':
    case 'G': // slow link
    case 'g':
        record_set_real(sample, DEVICE_SAMPLE_GPU_UTIL, is_loaded ? 0.9 : 0.1);
        record_set_int(sample, DEVICE_SAMPLE_PCIE_WIDTH, strchr("Nn", letter) ? 8 : 16);
        record_set_int(sample, DEVICE_SAMPLE_PCIE_GENERATION, strchr("Gg", letter) ? 1 : 5);
        return;
    case 'e': // three more errors
        errors += 3;
        record_set_int(sample, DEVICE_SAMPLE_ECC_UNCORRECTED, errors);
        return;
    case 'r': // the driver was loaded again
        errors = 1;
        record_set_int(sample, DEVICE_SAMPLE_ECC_UNCORRECTED, errors);
        return;
    case '0': // processes: none, our own, others
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
        reading->processes_known = true;
        if (strchr("345", letter))
            add_process(reading, letter == '3' ? 7 : 8);
        if (strchr("135", letter))
            add_process(reading, OWN_PID);
        if (strchr("2", letter))
            add_process(reading, 2000);
        return;
    default:
        record_set_int(sample, DEVICE_SAMPLE_THROTTLE, 0x03);
        record_set_int(sample, DEVICE_SAMPLE_ECC_UNCORRECTED, errors);
        return;
    }
}

TEST_CASE(test_devices)
{
    static const struct {
        const char *readings, *events;
    } cases[] = {
        {"....", ""},
        {"??????", ""},
        // One reading is enough; short pauses do not divide it; all reasons are in the code.
        {"..c......", "throttling@2#4 throttling@2+1#4"},
        {"..c.c...ch......", "throttling@2#4 throttling@2+8#68"},
        {"..c.....c......", "throttling@2#4 throttling@2+1#4 throttling@8#4 throttling@8+1#4"},
        // What is not told neither ends nor divides it.
        {"..c???c???.....", "throttling@2#4 throttling@2+8#4"},
        {"..c....", "throttling@2#4 throttling@2+1#4"}, // ended by finish
        {"..c", "throttling@2#4"},
        // A link below its maximum counts only under load, and only when it stays.
        {"LLNNNNNNLLL", "pcie_downgrade@2#8 pcie_downgrade@2+6#8"},
        {"LLGGGGGGLLL", "pcie_downgrade@2#16 pcie_downgrade@2+6#16"},
        {"LLNNNNLLNNNNLL", ""},
        {"llgggggggggggglll", ""},
        {"LGgLGgLGgLGgLGg", ""},
        {"LNNNNNnnnnnnnNNNLLL", "pcie_downgrade@1#8 pcie_downgrade@1+15#8"},
        {"LNNNNNLNLLL", "pcie_downgrade@1#8 pcie_downgrade@1+7#8"},
        // Errors count from the first reading on, and again after a reset.  They happened in the
        // period before the reading, and the event ends with the last of them.
        {"r...", ""},
        {"r.e......", "ecc_uncorrected@1#3 ecc_uncorrected@1+0#3"},
        {"r.e.e......", "ecc_uncorrected@1#3 ecc_uncorrected@1+2#6"},
        {"reer.....", "ecc_uncorrected@0#3 ecc_uncorrected@0+1#6"},
        {"r?e?.", ""},
        {"r.ex.", "ecc_uncorrected@1#3 ecc_uncorrected@1+0#3 device_lost@3 device_lost@3+1"},
        // Others on the device of this process; without one of this process the first owns it.
        {"0113111", "foreign_process@3#7 foreign_process@3+1#7"},
        {"0222", ""},
        {"444111", ""},
        {"44433331", "foreign_process@3#7 foreign_process@3+4#7"},
        {"1131311111", "foreign_process@2#7 foreign_process@2+3#7"},
        // One event while any other is there, with the code of the first.
        {"13331155111", "foreign_process@1#7 foreign_process@1+7#7"},
        {"1133551111", "foreign_process@2#7 foreign_process@2+4#7"},
        // What was about to begin before a device was lost does not begin after it.
        {"LNNNNxxNNNNNLLL", "device_lost@5 device_lost@5+2 pcie_downgrade@7#8 "
                            "pcie_downgrade@7+5#8"},
        // Losing it ends the rest.
        {"..cxxx..", "throttling@2#4 throttling@2+1#4 device_lost@3 device_lost@3+3"},
        {"..c.xxx..", "throttling@2#4 throttling@2+1#4 device_lost@4 device_lost@4+3"},
        {"r.xr..", "device_lost@2 device_lost@2+1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        for (size_t second = 0; cases[i].readings[second]; second++) {
            struct gpu_reading reading = reading_at(second);
            apply(&reading, cases[i].readings[second]);
            health_detect_device(&detector, &reading, OWN_PID, &sink);
        }
        health_detector_finish(&detector, &sink);
        if (strcmp(found, cases[i].events) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].readings, found, cases[i].events);
    }
}

TEST_CASE(test_host)
{
    static const struct {
        const char *samples, *events;
    } cases[] = {
        {"......", ""},
        {"pp.pp...", ""}, // too short
        {".ppp.....", "memory_pressure@1 memory_pressure@1+3"},
        {".pppoooooop.....", "memory_pressure@1 memory_pressure@1+10"},
        {"aaa.....", "memory_pressure@0 memory_pressure@0+3"},
        {"ttt????.....", "cgroup_throttled@0 cgroup_throttled@0+7"},
        {"uuuuuuuuuu", ""},
        {"?????", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        for (size_t second = 0; cases[i].samples[second]; second++) {
            const int64_t at_ns = (int64_t)second * 1000000000;
            const char letter = cases[i].samples[second];
            struct record sample;
            record_init(&sample, RECORD_KIND_HOST_SAMPLE, at_ns - 1000000000);
            if (letter != '?') {
                record_set_real(&sample, HOST_SAMPLE_MEMORY_PRESSURE,
                                letter == 'p'   ? 0.2
                                : letter == 'o' ? 0.07
                                                : 0.0);
                record_set_int(&sample, HOST_SAMPLE_MEMORY_TOTAL, 1000);
                record_set_int(&sample, HOST_SAMPLE_MEMORY_AVAILABLE, letter == 'a' ? 10 : 500);
                record_set_real(&sample, HOST_SAMPLE_CGROUP_CPU_QUOTA, 1.5);
                record_set_real(&sample, HOST_SAMPLE_CGROUP_THROTTLED,
                                letter == 't'   ? 0.5
                                : letter == 'u' ? 0.05
                                                : 0.0);
            }
            health_detect_host(&detector, &sample, at_ns, &sink);
        }
        health_detector_finish(&detector, &sink);
        if (strcmp(found, cases[i].events) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].samples, found, cases[i].events);
    }
}

// Texts that say the same in words; a clock set back makes no negative duration.
TEST_CASE(test_details)
{
    begin();
    struct gpu_reading reading = reading_at(100);
    apply(&reading, 'h');
    health_detect_device(&detector, &reading, OWN_PID, &sink);
    assert_string_equal(detector.watches[HEALTH_THROTTLING].detail, "hardware thermal");
    for (size_t i = 0; i < 5; i++) {
        reading = reading_at(50 + i);
        apply(&reading, '.');
        health_detect_device(&detector, &reading, OWN_PID, &sink);
    }
    assert_string_equal(found, "throttling@100#64 throttling@100+0#64");
    for (size_t i = 0; i < 5; i++) {
        reading = reading_at(200 + i);
        apply(&reading, 'N');
        health_detect_device(&detector, &reading, OWN_PID, &sink);
    }
    assert_string_equal(detector.watches[HEALTH_PCIE_DOWNGRADE].detail,
                        "generation 5 of 5, 8 of 16 lanes");
}

// A slot of a lower generation than the device is no trouble.
TEST_CASE(test_slot)
{
    begin();
    for (size_t i = 0; i < 10; i++) {
        struct gpu_reading reading = reading_at(i);
        reading.info.pcie.generation_port_max = 1;
        apply(&reading, 'G');
        health_detect_device(&detector, &reading, OWN_PID, &sink);
    }
    assert_string_equal(found, "");
}

TEST_CASE(test_hang)
{
    begin();
    health_detect_hang(&detector, true, INT64_C(5000000000), &sink);
    health_detect_hang(&detector, true, INT64_C(6000000000), &sink);
    health_detect_hang(&detector, false, INT64_C(35000000000), &sink);
    health_detect_hang(&detector, false, INT64_C(36000000000), &sink);
    assert_string_equal(found, "driver_hang@5 driver_hang@5+30");
}

TEST_MAIN(test_devices, test_host, test_details, test_slot, test_hang)
