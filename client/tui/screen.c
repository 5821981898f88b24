#include "client/tui/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

#include "client/tui/key_bindings.h"
#include "common/sys/clock.h"

struct screen {
    SCREEN *curses;
    bool colours, unicode, repaint;
    sigset_t signals; // of the caller, to wait with
    attr_t attributes[STYLE_COUNT];
    short pairs[STYLE_COUNT];
};

// ---- Looks -------------------------------------------------------------------------

// Foregrounds on the terminal's own background; -1 is the terminal's own.  With 256 colours, with
// others (where a number is RGB, the first 8 are colours all the same), and what is added to each,
// and without colours.
struct look {
    short colour256, colour8;
    attr_t with_colour, without;
};

// Readable on dark and light.
static const struct look looks[STYLE_COUNT] = {
    [STYLE_PLAIN] = {-1, -1, A_NORMAL, A_NORMAL},
    [STYLE_DIM] = {244, -1, A_NORMAL, A_DIM},
    [STYLE_STRONG] = {-1, -1, A_BOLD, A_BOLD},
    [STYLE_TITLE] = {-1, -1, A_BOLD, A_BOLD},
    [STYLE_FOCUS] = {33, COLOR_CYAN, A_BOLD, A_BOLD | A_UNDERLINE},
    [STYLE_HEADING] = {244, -1, A_NORMAL, A_DIM},
    [STYLE_SORTED] = {33, COLOR_CYAN, A_BOLD, A_BOLD},
    [STYLE_KEY] = {33, COLOR_CYAN, A_BOLD, A_BOLD},
    [STYLE_GOOD] = {28, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [STYLE_WARNING] = {136, COLOR_YELLOW, A_BOLD, A_BOLD},
    [STYLE_BAD] = {160, COLOR_RED, A_BOLD, A_REVERSE},
    [STYLE_BAR] = {30, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [STYLE_BAR_REST] = {244, -1, A_NORMAL, A_DIM},
};

// The colours of other themes, with 256 and with 8; a style that is not here has those above.
struct colours {
    short colour256, colour8; // 0: as above
};

static const struct colours themes[THEME_COUNT][STYLE_COUNT] = {
    [THEME_LIGHT] = {[STYLE_DIM] = {240, -1},
                     [STYLE_FOCUS] = {25, COLOR_BLUE},
                     [STYLE_HEADING] = {240, -1},
                     [STYLE_SORTED] = {25, COLOR_BLUE},
                     [STYLE_KEY] = {25, COLOR_BLUE},
                     [STYLE_GOOD] = {22, COLOR_GREEN},
                     [STYLE_WARNING] = {94, COLOR_MAGENTA},
                     [STYLE_BAD] = {124, COLOR_RED},
                     [STYLE_BAR] = {24, COLOR_BLUE},
                     [STYLE_BAR_REST] = {245, -1}},
    // Blue, ochre and magenta: also told apart by those who do not see red or green.
    [THEME_SAFE] = {[STYLE_GOOD] = {33, COLOR_BLUE},
                    [STYLE_WARNING] = {136, COLOR_YELLOW},
                    [STYLE_BAD] = {162, COLOR_MAGENTA},
                    [STYLE_BAR] = {31, COLOR_BLUE}},
};

void screen_set_theme(struct screen *screen, enum theme theme)
{
    const bool has_colours = screen->colours && theme != THEME_MONO;
    for (unsigned style = 0; style < STYLE_COUNT; style++) {
        const struct look *look = &looks[style];
        const struct colours *own = &themes[theme][style];
        const short colour256 = own->colour256 ? own->colour256 : look->colour256;
        const short colour8 = own->colour8 ? own->colour8 : look->colour8;
        const short colour = !has_colours ? -1 : COLORS == 256 ? colour256 : colour8;
        const short pair = (short)(style + 1);
        screen->attributes[style] = look->without;
        screen->pairs[style] = 0;
        if (colour >= 0 && init_pair(pair, colour, -1) == OK) { // eight colours have no grey
            screen->attributes[style] = look->with_colour;
            screen->pairs[style] = pair;
        }
    }
    screen->repaint = true;
}

static void prepare_looks(struct screen *screen, bool colours)
{
    screen->colours = colours && has_colors() && start_color() == OK;
    if (screen->colours && use_default_colors() != OK)
        screen->colours = false; // a background of ours would fight the terminal's
    screen_set_theme(screen, THEME_DEFAULT);
}

// ---- The terminal --------------------------------------------------------------------

// Whether the environment names a locale of UTF-8, installed here or not.
static bool environment_is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"}; // first one set wins
    for (unsigned i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

// Makes the C library and curses speak as the terminal does.  Returns whether that
// is UTF-8.
static bool set_locale(void)
{
    const char *name = environment_is_utf8() && !setlocale(LC_CTYPE, "") ? "C.UTF-8" : "";
    (void)setlocale(LC_CTYPE, name);
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

// Whether the terminal that TERM names is known and can put text anywhere.
static bool terminal_will_do(void)
{
    int found;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    const char *place = tigetstr("cup");
    bool will_do = place && place != (const char *)-1;
    (void)del_curterm(cur_term);
    return will_do;
}

static enum status open_curses(struct screen *screen, struct error *err)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(err, STATUS_INVALID,
                         "the dashboard needs a terminal (for text use: inferstat summary)");
    // newterm would refuse as well, and leave memory behind.
    if (terminal_will_do())
        screen->curses = newterm(NULL, stdout, stdin);
    if (!screen->curses)
        return error_set(err, STATUS_INVALID,
                         "the dashboard cannot draw on a terminal \"%s\" (set TERM to what the "
                         "terminal is, as in TERM=xterm)",
                         name ? name : "");
    return STATUS_OK;
}

// ---- Crashes --------------------------------------------------------------------------

static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

enum { FAULTS = sizeof faults / sizeof *faults };

// The handlers that were installed before.
static struct sigaction handlers_before[FAULTS];

static void restore_handlers(void)
{
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &handlers_before[i], NULL);
}

// Restores the terminal, as well as a program that has crashed can.
static void on_fault(int number)
{
    restore_handlers();
    (void)endwin();
    (void)raise(number); // delivered once this handler returns
}

// ---- Suspending -------------------------------------------------------------------------

static volatile sig_atomic_t suspend_requested;

static void on_suspend(int number)
{
    (void)number;
    suspend_requested = 1;
}

// Replaces the handler of curses, which allocates and draws while any code is interrupted.
static void handle_suspend(void)
{
    const struct sigaction action = {.sa_handler = on_suspend};
    struct sigaction before;
    if (sigaction(SIGTSTP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        (void)sigaction(SIGTSTP, &action, NULL);
}

static void stop_handling_suspend(void)
{
    struct sigaction before;
    if (sigaction(SIGTSTP, NULL, &before) == 0 && before.sa_handler == on_suspend)
        (void)signal(SIGTSTP, SIG_DFL);
}

// Restores the terminal and stops the process; draws the screen again once it continues.
static void suspend(void)
{
    sigset_t suspending;
    (void)sigemptyset(&suspending);
    (void)sigaddset(&suspending, SIGTSTP);
    suspend_requested = 0;
    (void)endwin();
    stop_handling_suspend();
    (void)raise(SIGTSTP); // which is blocked here
    (void)pthread_sigmask(SIG_UNBLOCK, &suspending, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &suspending, NULL);
    handle_suspend();
    (void)refresh();
}

// What terminals send for these keys beside what their description says: PuTTY as xterm, tmux.
static const struct {
    const char *text;
    int key;
} other_sequences[] = {{"\033[1~", KEY_HOME}, {"\033[7~", KEY_HOME}, {"\033[H", KEY_HOME},
                       {"\033OH", KEY_HOME},  {"\033[4~", KEY_END},  {"\033[8~", KEY_END},
                       {"\033[F", KEY_END},   {"\033OF", KEY_END}};

// ---- Opening and closing -----------------------------------------------------------------

enum status screen_open(struct screen **out, bool mouse, bool colours, struct error *err)
{
    struct screen *screen = calloc(1, sizeof *screen);
    if (!screen)
        return error_no_memory(err, "dashboard");
    screen->unicode = set_locale();
    enum status status = open_curses(screen, err);
    if (status != STATUS_OK) {
        screen_close(screen);
        return status;
    }
    // A change of size and suspending are let in only while screen_wait waits: none is missed.
    sigset_t waited;
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, SIGWINCH);
    (void)sigaddset(&waited, SIGTSTP);
    (void)pthread_sigmask(SIG_BLOCK, &waited, &screen->signals);
    (void)sigdelset(&screen->signals, SIGWINCH);
    (void)sigdelset(&screen->signals, SIGTSTP);
    handle_suspend();

    prepare_looks(screen, colours);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)set_escdelay(25); // milliseconds in which a key's sequence arrives
    (void)keypad(stdscr, true);
    for (unsigned i = 0; i < sizeof other_sequences / sizeof *other_sequences; i++)
        (void)define_key(other_sequences[i].text, other_sequences[i].key);
    (void)nodelay(stdscr, true);
    (void)curs_set(0);
    if (mouse) {
        (void)mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED,
                        NULL);
        (void)mouseinterval(0);
    }
    const struct sigaction action = {.sa_handler = on_fault};
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &action, &handlers_before[i]);
    *out = screen;
    return STATUS_OK;
}

void screen_close(struct screen *screen)
{
    if (!screen)
        return;
    if (screen->curses) {
        (void)endwin();
        restore_handlers();
        stop_handling_suspend();
        delscreen(screen->curses);
        (void)pthread_sigmask(SIG_SETMASK, &screen->signals, NULL);
    }
    free(screen);
}

bool screen_has_unicode(const struct screen *screen)
{
    return screen->unicode;
}

void screen_size(const struct screen *screen, int *width, int *height)
{
    (void)screen;
    *width = getmaxx(stdscr);
    *height = getmaxy(stdscr);
}

// ---- Output ------------------------------------------------------------------------

static void show_cell(const struct screen *screen, int x, int y, const struct cell *cell)
{
    wchar_t text[2] = {(wchar_t)cell->code, 0};
    int width = cell->width;
    // Where the C library sees another width than the canvas, columns would shift.
    if (wcwidth(text[0]) != width)
        text[0] = L'?';
    cchar_t shown;
    const attr_t reverse = cell->reversed ? A_REVERSE : A_NORMAL;
    (void)setcchar(&shown, text, screen->attributes[cell->style] | reverse,
                   screen->pairs[cell->style], NULL);
    (void)mvadd_wch(y, x, &shown);
    if (width == 2 && text[0] == L'?')
        (void)mvadd_wch(y, x + 1, &shown);
}

void screen_show(struct screen *screen, const struct canvas *canvas)
{
    if (screen->repaint)
        (void)clearok(curscr, true);
    screen->repaint = false;
    for (int y = 0; y < canvas->height; y++) {
        for (int x = 0; x < canvas->width; x++) {
            const struct cell *cell = canvas_cell(canvas, x, y);
            if (cell->width > 0)
                show_cell(screen, x, y, cell);
        }
    }
    (void)refresh();
}

void screen_repaint(struct screen *screen)
{
    screen->repaint = true;
}

// ---- Input -------------------------------------------------------------------------

bool screen_wait(struct screen *screen, const int fds[2], uint64_t timeout_ns)
{
    struct pollfd waited[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = fds[0], .events = POLLIN},
                              {.fd = fds[1], .events = POLLIN}};
    const struct timespec timeout = clock_timespec(timeout_ns);
    int ready = ppoll(waited, sizeof waited / sizeof *waited, &timeout, &screen->signals);
    const bool is_interrupted = ready < 0 && errno == EINTR;
    if (suspend_requested)
        suspend();
    if (ready < 0)
        return is_interrupted;
    return !(waited[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static const struct {
    int curses;
    uint32_t code;
} special_keys[] = {
    {KEY_UP, KEY_CODE_UP},         {KEY_DOWN, KEY_CODE_DOWN},
    {KEY_PPAGE, KEY_CODE_PAGE_UP}, {KEY_NPAGE, KEY_CODE_PAGE_DOWN},
    {KEY_HOME, KEY_CODE_HOME},     {KEY_END, KEY_CODE_END},
    {KEY_BTAB, KEY_CODE_BACK_TAB}, {KEY_ENTER, KEY_CODE_ENTER},
    {KEY_F(1), KEY_CODE_F1},       {KEY_F(2), KEY_CODE_F2},
    {KEY_F(3), KEY_CODE_F3},       {KEY_F(4), KEY_CODE_F4},
    {KEY_F(6), KEY_CODE_F6},       {KEY_F(10), KEY_CODE_F10},
    {KEY_LEFT, KEY_CODE_LEFT},     {KEY_RIGHT, KEY_CODE_RIGHT},
    {KEY_DC, KEY_CODE_DELETE},     {KEY_BACKSPACE, KEY_CODE_BACKSPACE},
};

static bool read_mouse(struct event *event)
{
    enum { WHEEL_ROWS = 3 };
    MEVENT mouse;
    if (getmouse(&mouse) != OK)
        return false;
    event->x = mouse.x;
    event->y = mouse.y;
    event->kind = EVENT_PRESS;
    if (mouse.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
        return true;
    event->kind = EVENT_WHEEL;
    event->turn = mouse.bstate & BUTTON4_PRESSED ? -WHEEL_ROWS : WHEEL_ROWS;
    return (mouse.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) != 0;
}

// An event of a key that is no character.  False for those that mean nothing here.
static bool read_special(struct screen *screen, int key, struct event *event)
{
    if (key == KEY_RESIZE) {
        event->kind = EVENT_RESIZE;
        screen_size(screen, &event->x, &event->y);
        return true;
    }
    if (key == KEY_MOUSE)
        return read_mouse(event);
    for (unsigned i = 0; i < sizeof special_keys / sizeof *special_keys; i++) {
        if (special_keys[i].curses == key) {
            event->kind = EVENT_KEY;
            event->code = special_keys[i].code;
            return true;
        }
    }
    return false;
}

// After Esc: true if that began the sequence of a key that is not known, which is read to its end.
static bool skip_sequence(void)
{
    wint_t key = 0;
    const int kind = get_wch(&key);
    if (kind == KEY_CODE_YES)
        (void)ungetch((int)key);
    if (kind == OK && key != '[' && key != 'O')
        (void)unget_wch((wchar_t)key);
    if (kind != OK || (key != '[' && key != 'O'))
        return false;
    bool is_over = false;
    while (!is_over && get_wch(&key) == OK)
        is_over = key >= '@' && key <= '~';
    return is_over;
}

bool screen_read(struct screen *screen, struct event *event)
{
    for (;;) {
        wint_t key;
        int kind = get_wch(&key);
        if (kind == ERR)
            return false;
        if (kind == KEY_CODE_YES) {
            if (read_special(screen, (int)key, event))
                return true;
            continue;
        }
        if (key == KEY_CODE_ESCAPE && skip_sequence())
            continue;
        event->kind = EVENT_KEY;
        event->code = (uint32_t)key;
        return true;
    }
}
