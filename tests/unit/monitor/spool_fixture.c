#include "tests/unit/monitor/spool_fixture.h"

#include "tests/support/test.h"

int spool_set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    folder_make(fixture->folder);
    (void)folder_path(fixture->path, fixture->folder, "10111213-1415-1617-1819-1a1b1c1d1e1f");
    fixture->names = rig_names();
    fixture->settings = (struct spool_settings){
        .folder = fixture->folder, .bytes_max = SPOOL_BYTES_MIN, .io = &rig_io};
    rig_faults = (struct rig_faults){.calls = 0};
    *state = fixture;
    return 0;
}

int spool_tear_down(void **state)
{
    struct fixture *fixture = *state;
    rig_names_free(fixture->names);
    folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

struct spool *open_spool(struct fixture *fixture)
{
    const struct runfile_run run = rig_run();
    struct spool *spool;
    struct error err;
    expect_ok(spool_open(&spool, &fixture->settings, &run, fixture->names, &err), &err);
    memset(&fixture->model, 0, sizeof fixture->model);
    return spool;
}

struct spool *attach(struct fixture *fixture)
{
    const struct runfile_run run = rig_run();
    struct spool *spool;
    struct error err;
    expect_ok(spool_attach(&spool, &fixture->settings, fixture->path, &run, &err), &err);
    rig_attach(&fixture->model, spool);
    return spool;
}
