// Patterns of error texts: what is different in each occurrence of the same error (numbers, ids,
// addresses) becomes "#", so that the occurrences can be counted together.
#pragma once

#include <stddef.h>

// Writes the pattern of `text` (`size` bytes) to `out`, which has room for `size` + 1 bytes, and
// returns its length.  Replaced by one "#" are:
// - UUIDs, and addresses of hexadecimal groups with two colons or more (IPv6)
// - words of ASCII letters and digits that begin with "0x", that have digits in two places
// ("8Hd2k")
//   or that consist of at least four hexadecimal digits, two letters or more among them ("33fa")
// - other digits ("q4" becomes "q#")
// - several of these with one of ". , : -" between them (10.0.0.1:5571)
size_t text_pattern(char *out, const char *text, size_t size);
