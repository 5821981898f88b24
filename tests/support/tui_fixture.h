// Dashboards made by hand: results from text, events, and screens as text.  tui_scenes.h has what
// they show.
#pragma once

#include "client/tui/canvas.h"
#include "client/tui/model.h"
#include "client/tui/update.h"

// A wall clock of 2026-03-29 12:00:00 UTC, and a monotonic clock beside it.
#define FIXTURE_WALL_NS INT64_C(1774785600000000000)
#define FIXTURE_NOW_NS  UINT64_C(1000000000000)

// A result from lines of cells parted by '|'.  The first line has the columns,
// "key" or "key:unit" (names of unit.h); in the others "-" is null, "" an empty
// text, what reads as a number is one.  Fails the test where it cannot be built.
struct result *fixture_result(const char *text);

// Makes `model` a dashboard of that size that has not asked yet.
void fixture_model(struct model *model, int width, int height);

// Returns one with the answers of `fill` (as in tui_scenes.h; NULL: none), for fixture_free.
struct model *fixture_new(int width, int height, void (*fill)(struct model *));
void fixture_free(struct model *model);

// Sends it an event of that kind at the fixture's time.  Return the effects.
unsigned fixture_event(struct model *model, struct event event);
unsigned fixture_key(struct model *model, uint32_t code);
unsigned fixture_type(struct model *model, const char *text); // and Enter
void fixture_answer(struct model *model, enum polled_query polled, const char *text);
void fixture_round(struct model *model, enum status status, const char *text);

// A canvas as text: one line per row, without trailing spaces.  The caller frees it.
char *fixture_text(const struct canvas *canvas);

// The model's screen as text, to be freed.
char *fixture_screen(const struct model *model, bool ascii);

// True if the model's screen has the text.
bool fixture_shows(const struct model *model, const char *text);

// How a terminal without colours shows each character of it, a letter each, to be freed.
char *fixture_looks(const struct model *model);
