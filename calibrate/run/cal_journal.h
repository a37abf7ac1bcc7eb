/* cal_journal.h - the journal of a calibration: a header line, then one JSON line per finished
 * sample or fact, each synced to disk before the next starts. A line without its newline (a kill
 * during a write) does not count. */
#ifndef DL_CALIBRATE_RUN_CAL_JOURNAL_H
#define DL_CALIBRATE_RUN_CAL_JOURNAL_H

#include "calibrate/plan/cal_plan.h"
#include "model/machine/system.h"

struct dl_cal_header {
    const char *plan;    /* hash of the plan, hexadecimal */
    const char *host;    /* host name and CPU: no other machine may resume it */
    const char *started; /* date and time */
    const char *load;    /* load average before the first sample */
    struct dl_cal_choice choice;
};

struct dl_cal_fact {
    const char *key, *value;
};
struct dl_cal_report {
    const char *name, *unavailable;
}; /* unavailable NULL: the probe can run */

/* One line of a journal or of a probe's output: exactly one member is present. */
struct dl_cal_line {
    struct dl_cal_header header;
    struct dl_raw_sample sample;
    struct dl_cal_fact fact;
    struct dl_cal_report probe, skipped;
    bool has_header, has_sample, has_fact, has_probe, has_skipped;
};

struct dl_cal_journal {
    const char *path;
    int fd; /* -1: not open for writing */
    struct dl_cal_header header;
    struct dl_raw_sample *samples;
    size_t sample_count;
    struct dl_cal_fact *facts;
    size_t fact_count; /* per key, only the last fact is kept */
    size_t good_bytes; /* length of the complete lines */
};

/* DL_ERR_INPUT with FILE:LINE for any other line. */
enum dl_code dl_cal_line_parse(const char *name, int line_number, const char *text, size_t length,
                               struct dl_arena *arena, struct dl_cal_line *out, struct dl_err *err);

/* Reads all complete lines. DL_ERR_INPUT: the first is not a header, or a line is invalid. */
enum dl_code dl_cal_journal_read(const char *path, struct dl_arena *arena,
                                 struct dl_cal_journal *out, struct dl_err *err);

/* Starts a new journal (replacing an old one), or continues one that was read after its complete
 * lines. Locks the file against a second calibration. DL_ERR_SYSTEM. */
enum dl_code dl_cal_journal_create(const char *path, const struct dl_cal_header *header,
                                   struct dl_arena *arena, struct dl_cal_journal *out,
                                   struct dl_err *err);
enum dl_code dl_cal_journal_continue(struct dl_cal_journal *journal, struct dl_err *err);

/* Appends, syncs, and keeps the content in memory too. */
enum dl_code dl_cal_journal_sample(struct dl_cal_journal *journal,
                                   const struct dl_raw_sample *sample, struct dl_arena *arena,
                                   struct dl_err *err);
enum dl_code dl_cal_journal_fact(struct dl_cal_journal *journal, const char *key, const char *value,
                                 struct dl_arena *arena, struct dl_err *err);
bool dl_cal_journal_has(const struct dl_cal_journal *journal, const struct dl_cal_point *point);
/* a fact, or NULL */
const char *dl_cal_journal_find(const struct dl_cal_journal *journal, const char *key);

void dl_cal_journal_close(struct dl_cal_journal *journal, bool remove_file);

#endif
