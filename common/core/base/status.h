// Status codes: what functions that can fail return.  A status is the class of the error; the
// message is in struct error (error.h).
#pragma once

// One line per status: X(suffix of the enumerator, text).
#define STATUS_TABLE(X)                                                                            \
    X(OK, "done")                                                                                  \
    X(INVALID, "invalid argument or input")                                                        \
    X(NOMEM, "out of memory")                                                                      \
    X(IO, "input/output failed")                                                                   \
    X(NOT_FOUND, "not found")                                                                      \
    X(BUSY, "in use by another")                                                                   \
    X(TIMEOUT, "took too long")                                                                    \
    X(UNREACHABLE, "no answer")                                                                    \
    X(CORRUPT, "damaged data")                                                                     \
    X(UNSUPPORTED, "not supported")                                                                \
    X(TOO_NEW, "made by a newer version")                                                          \
    X(FULL, "no room left")                                                                        \
    X(DENIED, "not permitted")                                                                     \
    X(CANCELLED, "cancelled")                                                                      \
    X(NO_DATA, "no data")                                                                          \
    X(CHECK_FAILED, "a check said no")                                                             \
    X(UNDECIDED, "lacks evidence")

enum status {
#define STATUS_ENUM(name, text) STATUS_##name,
    STATUS_TABLE(STATUS_ENUM)
#undef STATUS_ENUM
        STATUS_COUNT
};

// For a function's declaration: the compiler warns about a caller that ignores the result.
#define MUST_CHECK __attribute__((warn_unused_result))

// The text of a status ("not found"), for messages.  Never NULL; a static string.
const char *status_text(enum status status);
