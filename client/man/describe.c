// Descriptions of the store's tables and columns that are not in the record table.
#include <string.h>

#include "client/man/pages.h"

struct table_text {
    const char *table, *meaning;
};

static const struct table_text tables[] = {
    {"meta", "a list of facts about the file itself"},
    {"name", "the list of names (models, hosts, devices, operations, stages), each stored once"},
    {"owner", "the list of those who opened runs"},
    {"tombstone", "the list of the latest runs that were removed; they are not accepted again"},
    {"forgotten", "the sums of the accounts of removed runs, by owner and reason"},
    {"admin", "the list of acts of administrators"},
    {"run_name", "the list of numbers by which a run's batches refer to names"},
    {"stream", "the list of threads of runs that produce records and number them from 1"},
    {"range", "the list of number ranges of a stream that are stored or lost; the ranges of a "
              "stream follow each other from 1 without holes"},
    {"unnumbered", "the list of losses of records that had no number: one row per run and "
                   "period of ten minutes. stream.unnumbered has the total; the difference was "
                   "lost at unknown times"},
    {"ledger", "the account of a run and kind: the kind's table holds stored - expired - "
               "cleared rows of the run"},
    {"refusal", "the count of rejected messages, connections and names, by reason"},
    {"series", "the list of groups that rollups have: a grouping, and the names of the group"},
    {"rollup",
     "the precomputed aggregate of one metric, one time bucket and one series. Queries merge these "
     "and add the records at the edges of their window"},
    {"rollup_state", "the progress of rollups: they hold exactly the records of a metric's kind "
                     "with ids up to the watermark"},
    {"rollup_gap", "the list of periods for which a level of rollups, and all finer ones, do not "
                   "exist; records or coarser levels answer there"},
    {"expiry", "the time up to which records of a kind have expired; their rollups remain"},
    {"baseline", "the list of baselines, measurements kept for comparison"},
    {"baseline_sample", "the list of samples of a baseline, by metric, model and device"},
    {"v_ledger", "the account of everything that a run produced, one row per run"},
    {"v_stream", "the table stream with run and host as text"},
    {"v_range", "the table range with run, host and reasons as text"},
};

struct column_text {
    const char *table, *column, *meaning; // table "": of any
};

// The first match is used.
static const struct column_text columns[] = {
    {"meta", "key",
     "store (the file's identity, a UUID), created_ns, open (a collector has the file open, or it "
     "is the copy of such a file), no_fingerprints_to_run (the last run of a time before ledgers "
     "had set hashes)"},
    {"meta", "value", "the fact"},
    {"name", "id", "id of the name in other tables"},
    {"name", "text", "the name, as it was reported"},
    {"name", "owner",
     "who reported it first, in the table owner; 0: unknown (imported, or of an older version)"},
    {"owner", "who", "key: with the public key, user: with the user's number, or loopback"},
    {"owner", "horizon_ns", "runs unknown to the store that started until then are refused"},
    {"tombstone", "run_ns", "time of the run: the earlier of its start and its first message"},
    {"forgotten", "why", "0 retention, 1 on request, 2 limit of bytes"},
    {"forgotten", "runs", "runs removed"},
    {"forgotten", "names", "names removed"},
    {"forgotten", "replays", "attempts to send records of removed runs again"},
    {"forgotten", "since_ns", "time of the first run"},
    {"forgotten", "until_ns", "time of the last run"},
    {"admin", "at_ns", "when"},
    {"admin", "actor", "who: the name of a key, or a user"},
    {"admin", "action", "what was asked for"},
    {"admin", "detail", "its arguments"},
    {"admin", "outcome", "its result"},
    {"admin", "rows", "number of rows changed"},
    {"run_name", "number", "the run's own number of the name, from 1"},
    {"run_name", "name", "id in the table name"},
    {"stream", "next", "the next number expected: all below are stored or lost"},
    {"stream", "produced", "records produced, as reported by the thread"},
    {"stream", "unnumbered", "records lost before they got a number (the ring was full)"},
    {"stream", "no_room", "of these: the thread had no ring, since the run file had no room"},
    {"stream", "activity", "of a killed run: what the thread was doing"},
    {"stream", "activity_since_ns", "start of that activity"},
    {"range", "first", "first number"},
    {"range", "last", "last number"},
    {"range", "state", "0 stored, 1 lost"},
    {"range", "reason", "reason of the loss, as a number; v_range has the text"},
    {"range", "detail", "reason of the loss, as text"},
    {"range", "since_ns", "time of the first record of the range, or of the loss"},
    {"range", "until_ns", "time of the last record of the range, or of the loss"},
    {"unnumbered", "told_ns", "start of the ten minutes, by the collector's clock"},
    {"unnumbered", "lost", "number of records"},
    {"unnumbered", "since_ns", "earliest time of the loss, by the host's clock"},
    {"unnumbered", "until_ns", "latest time of the loss"},
    {"ledger", "kind", "number of the kind: its place in this page's list of records, from 0"},
    {"ledger", "stored", "rows stored"},
    {"ledger", "expired", "stored rows that have expired"},
    {"ledger", "cleared", "stored rows that were cleared"},
    {"ledger", "gone_sum", "a set hash of the rows that expired or were cleared; NULL: unknown"},
    {"refusal", "count", "number of occurrences"},
    {"refusal", "last_ns", "time of the last one"},
    {"series", "id", "id of the series in rollups"},
    {"series", "grouping", "0 by model, host, device and operation; 1 by model"},
    {"series", "", "id of the name; 0 where the grouping does not use it or there is none"},
    {"rollup", "metric",
     "256 * number of the kind + the column's place in it; or + 128 + its place among the kind's "
     "derived ones"},
    {"rollup", "grouping", "grouping of the series"},
    {"rollup", "level", "the bucket's length: 0 minute, 1 hour, 2 day, 3 month (calendar, UTC)"},
    {"rollup", "started_ns", "start of the bucket"},
    {"rollup", "series", "id in the table series"},
    {"rollup", "count", "number of values"},
    {"rollup", "sum", "sum of the values; of integers the low 64 bits"},
    {"rollup", "carry", "high bits of an integer sum: carry * 2^64 + sum (unsigned)"},
    {"rollup", "min", "minimum"},
    {"rollup", "max", "maximum"},
    {"rollup", "numerator", "of derived metrics: sum of the numerators"},
    {"rollup", "denominator", "of derived metrics: sum of the denominators"},
    {"rollup", "sketch",
     "four bytes of checksum (CRC-32C of the row), then a quantile sketch of the values, which is "
     "left out where min = max"},
    {"rollup_state", "metric", "as in rollup"},
    {"rollup_state", "watermark", "highest id included"},
    {"rollup_gap", "grouping", "as in series"},
    {"rollup_gap", "level",
     "coarsest level that does not exist; 4: months, but not days and finer levels"},
    {"rollup_gap", "why",
     "0 too few records a rollup, 1 expired, 2 records were cleared: the days are rebuilt, "
     "3 the sums of days are built before records expire, 4 a damaged row of "
     "expired records"},
    {"rollup_gap", "since_ns", "start of the gap"},
    {"rollup_gap", "until_ns", "end of the gap, exclusive"},
    {"expiry", "until_ns", "records started before this time have expired"},
    {"baseline", "name", "the baseline's name"},
    {"baseline", "created_ns", "when it was saved"},
    {"baseline", "filter", "filters of the baseline, as on the command line"},
    {"baseline", "since_ns", "start of the window"},
    {"baseline", "until_ns", "end of the window"},
    {"baseline", "coverage_ratio", "stored / (stored + lost), in its window"},
    {"baseline", "fingerprint", "machines, devices and models, as JSON"},
    {"baseline_sample", "baseline", "id in the table baseline"},
    {"baseline_sample", "metric", "the metric's name"},
    {"baseline_sample", "model", "id of the model's name"},
    {"baseline_sample", "device", "id of the device's name"},
    {"baseline_sample", "count", "number of samples"},
    {"baseline_sample", "samples",
     "64-bit floats in order of time, 16 bits of each one's run, a byte 1, a checksum"},
    {"v_ledger", "id", "the run's number (run.run)"},
    {"v_range", "state", "stored or dropped"},
    {"v_range", "reason", "reason of the loss"},
    {"v_stream", "", "as in stream"},
    {"v_range", "", "as in range"},
    {"", "id", "ascending in order of arrival"},
    {"", "run", "the run's number (run.run); in views its UUID"},
    {"", "uuid", "the run's UUID"},
    {"", "host", "name of the host"},
    {"", "stream", "which of the run's threads produced it, from 0"},
    {"", "number", "position among the records of that thread, from 1"},
    {"", "started_ns", "start, by the host's clock"},
    {"", "received_ns", "time of storing, by the collector's clock"},
    {"", "started", "started_ns as text, UTC"},
    {"", "clock_suspect", "1: started_ns is before 2020, or more than a day ahead of received_ns"},
    {"", "heard_ns", "time of the run's last message"},
    {"", "refused", "records refused"},
    {"", "clock_suspects", "records with an implausible time"},
    {"", "unknown_columns", "columns unknown to the collector and ignored"},
    {"", "owner", "who opened the run, in the table owner; 0: unknown"},
    {"", "key", "the public key that opened the run; NULL: none"},
    {"", "kind", "number of the kind, as in ledger"},
    {"", "reason", "reason of the rejection"},
    {"", "end", "how the run ended"},
    {"", "dropped", "records lost, with numbers"},
    {"", "unnumbered", "records lost before they got a number"},
    {"", "no_room", "of the unnumbered: lost by threads without a ring"},
    {"", "produced", "records produced, as reported by the run's threads"},
    {"", "stored", "records stored"},
    {"", "lost", "dropped + unnumbered"},
    {"", "in_flight", "records produced and neither stored nor lost yet"},
    {"", "duplicates", "repeated records skipped"},
    {"", "expired", "expired rows"},
    {"", "cleared", "cleared rows"},
    {"", "coverage_ratio", "stored / (stored + lost)"},
    {"", "balanced", "1: the ledger balances; 0: it does not; NULL: the run is open"},
    {"", "floor_ns",
     "minimum duration of the load: its bytes / the slower of storage and bus, where measured"},
    {"", "model", "of the load that the stage belongs to"},
    {"", "device", "of the load that the stage belongs to"},
};

const char *describe_table(const char *table)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i].table, table) == 0)
            return tables[i].meaning;
    return NULL;
}

const char *describe_column(const char *table, const char *column)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct column_text *text = &columns[i];
        if ((!*text->table || strcmp(text->table, table) == 0) &&
            (!*text->column || strcmp(text->column, column) == 0))
            return text->meaning;
    }
    return NULL;
}
