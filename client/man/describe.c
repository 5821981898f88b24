// What the record table does not say: the store's own tables.
#include <string.h>

#include "client/man/pages.h"

struct table_text {
    const char *table, *meaning;
};

static const struct table_text tables[] = {
    {"meta", "what is known of the file itself"},
    {"name", "the list of names, each once: models, hosts, devices, operations, stages"},
    {"run_name", "the list of numbers under which a run's batches speak of names"},
    {"stream", "the list of threads of runs that produces records, and number them from 1"},
    {"range", "what tells which numbers of a stream are stored and which are lost; ranges of a "
              "stream follow "
              "each other from 1 without holes"},
    {"unnumbered", "the list of when records were lost that got no number: of a run, what was "
                   "told in ten minutes. stream.unnumbered has the sum; what is missing of it "
                   "here was lost at times that are not known"},
    {"ledger", "the account of a run and kind: the kind's table holds stored - expired - "
               "cleared rows of the run"},
    {"refusal", "the count of messages, connections and names that were not taken, by reason"},
    {"series",
     "the list of what rollups count together: a grouping, and the names that it keeps apart"},
    {"rollup",
     "the sums of many records, kept in advance: of one metric, one bucket of time and one series. "
     "Queries merge them and add the records at the edges of their window"},
    {"rollup_state", "the account of how far rollups go: they hold exactly the records of a "
                     "metric's kind with ids up to the "
                     "watermark"},
    {"rollup_gap", "the list of times for which a level of rollups, and all finer ones, are not "
                   "kept; records or coarser "
                   "levels answer there"},
    {"expiry",
     "the account of up to when records of a kind have expired; rollups of that time stay"},
    {"sealed", "the list of segments of sealed history: old rows of a kind, some thousand in a "
               "segment, packed "
               "by column into less than a sixth of their room. Rows are either in their kind's "
               "table or here, "
               "under the same id. inferstat and inferstatd read both; sqlite3(1) and the views "
               "have the rows "
               "of the table alone, and inferstat export or export --bundle gives it all of them"},
    {"baseline", "the list of measurements kept to compare later ones with"},
    {"baseline_sample", "the list of samples of a baseline, by metric, model and device"},
    {"v_ledger", "the account of everything that a run produced, a row a run"},
    {"v_stream", "the table stream with the run and the host in words"},
    {"v_range", "the table range with the run, the host and the reasons in words"},
};

struct column_text {
    const char *table, *column, *meaning; // table "": of any
};

// The first that fits counts.
static const struct column_text columns[] = {
    {"meta", "key",
     "store (the file's identity, a UUID), created_ns, open (a collector has the file open, or it "
     "is the copy of such a file), no_fingerprints_to_run (the last run of a time before ledgers "
     "had fingerprints)"},
    {"meta", "value", "the fact"},
    {"name", "id", "what other tables call it by"},
    {"name", "text", "the name, as it was reported"},
    {"run_name", "number", "the run's own number of the name, from 1"},
    {"run_name", "name", "its id in the table name"},
    {"stream", "next", "the number that is wanted next: all below are stored or lost"},
    {"stream", "produced", "records that the thread says it has made"},
    {"stream", "unnumbered", "records lost before they got a number (the ring was full)"},
    {"stream", "activity", "of a killed run: what the thread was doing then"},
    {"stream", "activity_since_ns", "and since when"},
    {"range", "first", "first number"},
    {"range", "last", "last number"},
    {"range", "state", "0 stored, 1 lost"},
    {"range", "reason", "why, as a number; v_range has the word"},
    {"range", "detail", "why, in words"},
    {"range", "since_ns", "time of the first record of the range, or of the loss"},
    {"range", "until_ns", "and of the last"},
    {"unnumbered", "told_ns", "start of the ten minutes, by the collector's clock"},
    {"unnumbered", "lost", "how many records"},
    {"unnumbered", "since_ns", "they were lost after this, by the host's clock"},
    {"unnumbered", "until_ns", "and before this"},
    {"ledger", "kind", "number of the kind: its place in this page's list of records, from 0"},
    {"ledger", "stored", "rows stored"},
    {"ledger", "expired", "of them, gone for their age"},
    {"ledger", "cleared", "of them, cleared by people"},
    {"ledger", "gone_sum", "a fingerprint of the rows that expired or were cleared; NULL: unknown"},
    {"refusal", "count", "how often"},
    {"refusal", "last_ns", "when last"},
    {"series", "id", "what rollups call it by"},
    {"series", "grouping", "0 by model, host, device and operation; 1 by model; 2 by host; 3 all"},
    {"series", "", "id of the name; 0 where it is not kept apart or there is none"},
    {"rollup", "metric",
     "256 * number of the kind + the column's place in it; or + 128 + its place among the kind's "
     "derived ones"},
    {"rollup", "grouping", "that of its series"},
    {"rollup", "level", "the bucket's length: 0 minute, 1 hour, 2 day, 3 month (calendar, UTC)"},
    {"rollup", "started_ns", "start of the bucket"},
    {"rollup", "series", "id in the table series"},
    {"rollup", "count", "values"},
    {"rollup", "sum", "their sum; of integers the low 64 bits"},
    {"rollup", "carry", "what an integer sum has above 64 bits: carry * 2^64 + sum (unsigned)"},
    {"rollup", "min", "the least value"},
    {"rollup", "max", "the largest"},
    {"rollup", "numerator", "of derived metrics: the numerators, summed"},
    {"rollup", "denominator", "and the denominators"},
    {"rollup", "sketch",
     "four bytes of checksum (CRC-32C of the row), then a quantile sketch of the values, which is "
     "left out where min = max"},
    {"rollup_state", "metric", "as in rollup"},
    {"rollup_state", "watermark", "the highest id that is in"},
    {"rollup_gap", "grouping", "as in series"},
    {"rollup_gap", "level", "the coarsest level that is not kept"},
    {"rollup_gap", "why",
     "0 so few records that reading them is as good, 1 its age, 2 records were cleared"},
    {"rollup_gap", "since_ns", "start of the gap"},
    {"rollup_gap", "until_ns", "its end, not included"},
    {"expiry", "until_ns", "records started before are gone"},
    {"sealed", "first_id", "the lowest id of its rows"},
    {"sealed", "last_id", "the highest; no other segment of the kind has ids between them"},
    {"sealed", "first_started_ns", "the earliest start of its rows"},
    {"sealed", "last_started_ns", "the latest"},
    {"sealed", "rows", "how many rows it holds"},
    {"sealed", "runs",
     "of which runs they are: of each, rising, its number beyond the one before and how many rows "
     "(seven bits a byte, the least first), then their fingerprint (64 bits); a CRC-32C of the "
     "segment's numbers and of that ends it"},
    {"sealed", "checksum",
     "CRC-32C of kind, ids, starts and rows (64 bits each, the least byte "
     "first) and of the data"},
    {"sealed", "data", "the rows; its first byte is the number of the format"},
    {"baseline", "name", "how people call it"},
    {"baseline", "created_ns", "when it was saved"},
    {"baseline", "filter", "what it covers, as the filters of the command line"},
    {"baseline", "since_ns", "start of the window"},
    {"baseline", "until_ns", "its end"},
    {"baseline", "coverage_ratio", "stored / (stored + lost), of its window"},
    {"baseline", "fingerprint", "machines, devices and models, as JSON"},
    {"baseline_sample", "baseline", "id in the table baseline"},
    {"baseline_sample", "metric", "the metric's name"},
    {"baseline_sample", "model", "id of the model's name"},
    {"baseline_sample", "device", "id of the device's name"},
    {"baseline_sample", "count", "how many samples"},
    {"baseline_sample", "samples",
     "64-bit floats in order of time, 16 bits of the run of each, a byte 1, a checksum"},
    {"v_ledger", "id", "the run's number (run.run)"},
    {"v_ledger", "stored", "records stored"},
    {"v_ledger", "produced", "records that its threads say they have made"},
    {"v_range", "state", "stored or dropped"},
    {"v_range", "reason", "why it was dropped"},
    {"v_stream", "", "as in stream"},
    {"v_range", "", "as in range"},
    {"", "id", "rises with arrival"},
    {"", "run", "the run's number (run.run); in views its UUID"},
    {"", "uuid", "the run's UUID"},
    {"", "host", "name of the host"},
    {"", "stream", "which of the run's threads produced it, from 0"},
    {"", "number", "its place among the records of that thread, from 1"},
    {"", "started_ns", "when it began, by the host's clock"},
    {"", "received_ns", "when it was stored, by the collector's clock"},
    {"", "started", "started_ns in words, UTC"},
    {"", "clock_suspect", "1: started_ns is before 2020, or more than a day ahead of received_ns"},
    {"", "heard_ns", "when the collector last heard of the run"},
    {"", "refused", "records that could not be taken"},
    {"", "clock_suspects", "records with an implausible time"},
    {"", "unknown_columns", "columns that were newer than the collector, and left out"},
    {"", "key", "the public key that opened the run; NULL: none"},
    {"", "kind", "number of the kind, as in ledger"},
    {"", "reason", "why"},
    {"", "end", "how the run ended"},
    {"", "dropped", "records lost, with numbers"},
    {"", "unnumbered", "records lost before they got a number"},
    {"", "lost", "both together"},
    {"", "in_flight", "produced, and neither stored nor lost yet"},
    {"", "duplicates", "records that came again, and were skipped"},
    {"", "expired", "rows gone for their age"},
    {"", "cleared", "rows cleared by people"},
    {"", "coverage_ratio", "stored / (stored + lost)"},
    {"", "balanced", "1: all accounts agree; 0: they do not; NULL: the run is not over"},
    {"", "floor_ns",
     "what the load takes at least: its bytes by the slower of storage and bus, where measured"},
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
