#include "server/worker/repeats.h"

#include <assert.h>
#include <math.h>

enum status repeats_init(struct repeats *repeats, double ratio, int64_t most, struct error *err)
{
    *repeats =
        (struct repeats){.ratio = ratio, .most = most > 0 ? (size_t)most : CONVERGENCE_RUNS_MAX};
    convergence_measure(&repeats->convergence, repeats->values, 0);
    assert(repeats->most <= REPEATS_MAX);
    if (most > 0 && !(ratio > 0.0))
        return error_set(err, STATUS_INVALID,
                         "--repeats %lld: until when is not said (give --until-steady RATIO)",
                         (long long)most);
    return STATUS_OK;
}

bool repeats_add(struct repeats *repeats, double speed)
{
    if (!(repeats->ratio > 0.0))
        return false;
    const size_t count = repeats->convergence.count;
    assert(repeats->tries < repeats->most);
    repeats->tries++;
    if (!isnan(speed)) {
        repeats->values[count] = speed;
        convergence_measure(&repeats->convergence, repeats->values, count + 1);
        repeats->is_reached = convergence_is_reached(&repeats->convergence, repeats->ratio);
    }
    return !repeats->is_reached && repeats->tries < repeats->most;
}

void repeats_write(struct json_writer *json, const struct repeats *repeats, const char *metric)
{
    const struct convergence *convergence = &repeats->convergence;
    const struct {
        const char *what;
        double value;
    } members[] = {
        {"median", convergence->median},
        {"trimmed_mean", convergence->trimmed_mean},
        {"iqr_ratio", convergence->iqr_ratio},
        {"interval_ratio", convergence->interval_ratio},
    };
    const bool repeated = repeats->ratio > 0.0;
    json_write_real(json, "repeats", repeated ? (double)repeats->tries : (double)NAN);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "%s_%s", metric, members[i].what);
        json_write_real(json, key, members[i].value);
    }
    if (repeated)
        json_write_bool(json, "steady", repeats->is_reached);
    else
        json_write_text(json, "steady", NULL);
}

void repeats_print(FILE *out, const struct repeats *repeats, enum unit unit)
{
    char text[4][UNIT_TEXT_SIZE];
    const struct convergence *convergence = &repeats->convergence;
    if (!(repeats->ratio > 0.0))
        return;
    (void)fprintf(out,
                  "%zu repeat%s: median %s, trimmed mean %s, IQR / median %s, median known to %s: "
                  "%ssteady\n",
                  repeats->tries, repeats->tries == 1 ? "" : "s",
                  unit_format(text[0], unit, convergence->median),
                  unit_format(text[1], unit, convergence->trimmed_mean),
                  unit_format(text[2], UNIT_RATIO, convergence->iqr_ratio),
                  unit_format(text[3], UNIT_RATIO, convergence->interval_ratio),
                  repeats->is_reached ? "" : "not ");
}
