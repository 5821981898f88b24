// The pipeline on the emulated CUDA runtime at the pace of a device: what its copies hide behind
// kernels, and what reuse behind events saves.
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

enum { CHUNK = 1 << 20, CHUNKS = 64, CALL_NS = 2000 };

// Runs CHUNKS groups of one chunk each; the run's time by the emulated clock.
static double run(double copy_us, double kernel_us, enum pipeline_sync sync,
                  struct pipeline_figures *figures)
{
    const struct emulation_rates rates = {CALL_NS, CHUNK / copy_us * 1e6, CHUNK / copy_us * 1e6,
                                          2 * CHUNK / kernel_us * 1e6};
    struct error err = {0};
    struct rig rig;
    emulation_clock(&rates);
    struct device *device = rig_device(NULL);
    rig_init(&rig, CHUNK, (size_t)CHUNK * CHUNKS, 1);
    rig_lends(&rig); // nothing to fill: the clock knows calls alone
    rig_keeps_results(&rig);
    struct pipeline_plan plan = rig_plan(&rig, 4, 1, 4, 3);
    plan.sync = sync;
    plan.out_bytes = 0;
    const int64_t began = emulation_now();
    if (rig_run(&rig, device, &plan, figures, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    const double ns = (double)(emulation_now() - began);
    rig_deinit(&rig);
    device_close(device);
    emulation_clock(NULL);
    return ns;
}

TEST_CASE(copies_hide_behind_kernels)
{
    static const struct {
        double copy_us, kernel_us;
    } cases[] = {{50, 100}, {100, 100}, {100, 50}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double copy = cases[i].copy_us, kernel = cases[i].kernel_us;
        const double longer = copy > kernel ? copy : kernel;
        struct pipeline_figures events, periodic;
        const double events_ns = run(copy, kernel, PIPELINE_SYNC_EVENTS, &events);
        const double periodic_ns = run(copy, kernel, PIPELINE_SYNC_PERIODIC, &periodic);
        const double ideal_ns = (CHUNKS * longer + copy + kernel - longer) * 1e3;
        double hidden = 0.0, hidden_periodic = 1.0;
        assert_true(overlap_ratio(&events.overlap, &hidden));
        assert_true(overlap_ratio(&periodic.overlap, &hidden_periodic));
        assert_true(hidden > 0.97 && hidden_periodic < 0.8);
        assert_true(events_ns < ideal_ns * 1.1 && periodic_ns > ideal_ns * 1.15);
    }
}

TEST_MAIN(copies_hide_behind_kernels)
