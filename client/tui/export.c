#include "client/tui/export.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"

static void put_character(FILE *out, uint32_t code)
{
    char bytes[5];
    const size_t size = text_encode(bytes, code);
    (void)fwrite(bytes, 1, size, out);
}

static void write_text(FILE *out, const struct canvas *canvas)
{
    for (int y = 0; y < canvas->height; y++) {
        int end = canvas->width;
        while (end > 0 && canvas_cell(canvas, end - 1, y)->code == ' ')
            end--;
        for (int x = 0; x < end; x++) {
            const struct cell *cell = canvas_cell(canvas, x, y);
            if (cell->width > 0)
                put_character(out, cell->code);
        }
        (void)fputc('\n', out);
    }
}

enum { CELL_WIDTH = 8, CELL_HEIGHT = 17, BASELINE = 13 }; // pixels

// Colours on a dark ground.
static const char *const colours[STYLE_COUNT] = {
    [STYLE_PLAIN] = "#d8d8d8",    [STYLE_DIM] = "#8a8a8a",   [STYLE_STRONG] = "#ffffff",
    [STYLE_TITLE] = "#ffffff",    [STYLE_FOCUS] = "#4aa3ff", [STYLE_HEADING] = "#8a8a8a",
    [STYLE_SORTED] = "#4aa3ff",   [STYLE_KEY] = "#4aa3ff",   [STYLE_GOOD] = "#3fb950",
    [STYLE_WARNING] = "#e0a030",  [STYLE_BAD] = "#ff5f56",   [STYLE_BAR] = "#35b3ad",
    [STYLE_BAR_REST] = "#8a8a8a",
};

static void put_xml(FILE *out, uint32_t code)
{
    if (code == '<' || code == '>' || code == '&')
        (void)fprintf(out, "&#%u;", (unsigned)code);
    else
        put_character(out, code);
}

// The cells from `x` on that look alike.
static int run_of(const struct canvas *canvas, int x, int y)
{
    const struct cell *first = canvas_cell(canvas, x, y);
    int end = x + 1;
    while (end < canvas->width && canvas_cell(canvas, end, y)->style == first->style &&
           canvas_cell(canvas, end, y)->reversed == first->reversed)
        end++;
    return end;
}

static void put_run(FILE *out, const struct canvas *canvas, int x, int end, int y)
{
    const struct cell *first = canvas_cell(canvas, x, y);
    const int left = x * CELL_WIDTH, width = (end - x) * CELL_WIDTH, top = y * CELL_HEIGHT;
    if (first->reversed)
        (void)fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
                      left, top, width, CELL_HEIGHT, colours[first->style]);
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"%s\" "
                  "xml:space=\"preserve\">",
                  left, top + BASELINE, width, first->reversed ? "#101418" : colours[first->style]);
    for (; x < end; x++)
        if (canvas_cell(canvas, x, y)->width > 0)
            put_xml(out, canvas_cell(canvas, x, y)->code);
    (void)fputs("</text>\n", out);
}

static void write_svg(FILE *out, const struct canvas *canvas)
{
    const int width = canvas->width * CELL_WIDTH, height = canvas->height * CELL_HEIGHT;
    (void)fprintf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "font-family=\"monospace\" font-size=\"13\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#101418\"/>\n",
                  width, height);
    for (int y = 0; y < canvas->height; y++)
        for (int x = 0, end; x < canvas->width; x = end) {
            end = run_of(canvas, x, y);
            put_run(out, canvas, x, end, y);
        }
    (void)fputs("</svg>\n", out);
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t size = strlen(path), needed = strlen(ending);
    return size > needed && strcmp(path + size - needed, ending) == 0;
}

bool export_is_rows(const char *path)
{
    return ends_in(path, ".csv") || ends_in(path, ".json");
}

static enum status write_into(FILE *out, const char *path, const struct canvas *canvas,
                              const struct export_list *list, export_rows *rows, struct error *err)
{
    if (ends_in(path, ".txt"))
        write_text(out, canvas);
    else if (ends_in(path, ".svg"))
        write_svg(out, canvas);
    else
        return rows(out, list, ends_in(path, ".json"), err);
    return STATUS_OK;
}

enum status export_write(const char *path, bool replace, const struct canvas *canvas,
                         const struct export_list *list, export_rows *rows, struct error *err)
{
    if (!export_is_rows(path) && !ends_in(path, ".txt") && !ends_in(path, ".svg"))
        return error_set(err, STATUS_INVALID, "the name must end in .txt, .svg, .csv or .json");
    if (export_is_rows(path) && list->count == 0)
        return error_set(err, STATUS_NO_DATA, "this panel has no rows");
    FILE *out = fopen(path, replace ? "we" : "wxe");
    if (!out)
        return error_set(err, errno == EEXIST ? STATUS_BUSY : STATUS_IO, "%s: %s", path,
                         strerror(errno));
    enum status status = write_into(out, path, canvas, list, rows, err);
    const bool failed = ferror(out);
    if ((fclose(out) != 0 || failed) && status == STATUS_OK)
        status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (status != STATUS_OK)
        (void)unlink(path);
    return status;
}
