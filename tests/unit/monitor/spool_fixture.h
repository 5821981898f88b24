// A folder, a run's names and a model beside them: what tests of the spool begin with.
#pragma once

#include "tests/support/folder.h"
#include "tests/support/spool_rig.h"

struct fixture {
    char folder[FOLDER_PATH_SIZE];
    char path[FOLDER_PATH_SIZE]; // of the run's spool
    struct names *names;
    struct spool_settings settings;
    struct rig_model model;
};

// For cmocka: `*state` is a struct fixture, and no call of the rig fails.
int spool_set_up(void **state);
int spool_tear_down(void **state);

// A spool that has nothing yet, and the one at `path`, of which the process is dead; the model is
// begun anew.
struct spool *open_spool(struct fixture *fixture);
struct spool *attach(struct fixture *fixture);
