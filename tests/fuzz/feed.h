// Input as the file that a function reads by its path.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Makes the bytes what is in the file NAME (or FOLDER/NAME; mode 0600) of a folder
// that goes when the program ends.  A few names a program.  Returns the file's path,
// static; ends the program where that cannot be done.
const char *feed_file(const char *name, const uint8_t *data, size_t size);

// The folder, static.
const char *feed_folder(void);
