#include "client/cli/output/width.h"

#include <limits.h>
#include <string.h>
#include <wchar.h>

// Steps over one character: its bytes, and its columns in `*columns`.
static size_t next_character(const char *text, size_t left, mbstate_t *state, unsigned *columns)
{
    wchar_t wide;
    size_t n = mbrtowc(&wide, text, left, state);
    if (n == 0 || n > left) { // malformed or cut short
        memset(state, 0, sizeof *state);
        *columns = 1;
        return 1;
    }
    int width = wcwidth(wide);
    *columns = width < 0 ? 1 : (unsigned)width;
    return n;
}

// Measures the longest start of `text` that takes at most `columns`: its bytes, and its columns
// in `*used`.
static size_t measure(const char *text, unsigned columns, unsigned *used)
{
    const size_t size = strlen(text);
    size_t place = 0;
    mbstate_t state = {0};
    *used = 0;
    while (place < size) {
        unsigned more;
        const size_t n = next_character(text + place, size - place, &state, &more);
        if (*used + more > columns)
            break;
        *used += more;
        place += n;
    }
    return place;
}

size_t width_cut(const char *text, unsigned columns)
{
    unsigned used;
    return measure(text, columns, &used);
}

unsigned width_of(const char *text)
{
    unsigned used;
    (void)measure(text, UINT_MAX, &used);
    return used;
}
