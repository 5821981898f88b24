// What the dashboards of tests show: each scene gives a model the answers to its queries.
#pragma once

#include "tests/support/tui_fixture.h"

// A store with one worker at work; one without a run; one that its collector cannot write; one of
// many hosts; one of models on several hosts, by model: one is slow and one is down; one that has
// lost records and whose last load failed; one with names that are long, wide and hostile; one with
// runs of the pipeline, good and bad; one with alerts that fire, wait and are acknowledged, and a
// history.
void scene_normal(struct model *model);
void scene_empty(struct model *model);
void scene_unwritable(struct model *model);
void scene_many(struct model *model);
void scene_fleet(struct model *model);
void scene_losses(struct model *model);
void scene_names(struct model *model);
void scene_pipelines(struct model *model);
void scene_alerts(struct model *model);

// The stages of the load at the cursor of the view Loads, which must be shown: another load's are
// forgotten.
void scene_stages(struct model *model);
