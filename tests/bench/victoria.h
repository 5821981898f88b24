// victoria-metrics as a yardstick: a process of its own, spoken to over HTTP.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/support/folder.h"

struct victoria {
    pid_t pid;
    uint16_t port;
    char folder[FOLDER_PATH_SIZE];
};

bool victoria_exists(void);

// Starts it with no data, which it will keep under `folder`, and waits until it
// answers; ends the program where it does not.
void victoria_start(struct victoria *victoria, const char *folder);
// Ends it and removes its data.
void victoria_stop(const struct victoria *victoria);

// A connection; -1 where nobody listens.
int victoria_connect(const struct victoria *victoria);
// Posts lines to be stored and waits for the answer, which has no body.
void victoria_post(int fd, const char *bytes, size_t bytes_size);
// The whole answer to a GET, to be freed; NULL where nobody listens.
char *victoria_get(const struct victoria *victoria, const char *path);
