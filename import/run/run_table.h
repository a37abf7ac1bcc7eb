/* run_table.h - formats whose keys stand for one thing each: a table of them is all that the format
 * needs. For the files of the readers alone. */
#ifndef DL_IMPORT_RUN_RUN_TABLE_H
#define DL_IMPORT_RUN_RUN_TABLE_H

#include "import/run/imported_run.h"

/* The property of a run that a key sets. */
enum dl_run_slot {
    DL_SLOT_MODEL, /* a name of the model */
    DL_SLOT_NODES,
    DL_SLOT_PER_NODE,
    DL_SLOT_RANKS,
    DL_SLOT_TP,
    DL_SLOT_PP,
    DL_SLOT_CP,
    DL_SLOT_EP,
    DL_SLOT_BATCH,      /* samples of an iteration over all devices */
    DL_SLOT_EACH,       /* samples of a device and iteration */
    DL_SLOT_MICRO,      /* samples of a device and forward pass */
    DL_SLOT_ACCUMULATE, /* micro-batches of an iteration */
    DL_SLOT_SEQ,
    DL_SLOT_STEPS,
    DL_SLOT_GROUP,                       /* devices that share states, of hybrid sharding */
    DL_SLOT_NUMBERS,                     /* those before are numbers, but for MODEL */
    DL_SLOT_PRECISION = DL_SLOT_NUMBERS, /* a word of the pairs */
    DL_SLOT_OPTIMIZER,
    DL_SLOT_SHARDING, /* "0" to "3" */
    DL_SLOT_RECOMPUTE,
    DL_SLOT_COMPILER,
    DL_SLOT_FRAMEWORK,
    DL_SLOT_COMPRESSION, /* of gradients on the wire */
    DL_SLOTS
};
struct dl_run_key {
    const char *names; /* "a|b|c" */
    enum dl_run_slot slot;
    const struct dl_word_pair *words; /* NULL: the value when it is switched on is `on` */
    const char *on;
};
struct dl_run_slots {
    double numbers[DL_SLOT_NUMBERS]; /* NAN: unknown */
    const char *words[DL_SLOTS];     /* NULL: unknown */
};

extern const struct dl_word_pair dl_precision_pairs[], dl_optimizer_pairs[];

/* A number of a model's shape: a key, its workload parameter, and what it is where the file does
 * not say it; NAN: left out. Tables end by names NULL. */
struct dl_run_shape {
    const char *names, *parameter;
    double fallback;
};
/* Adds ",PARAMETER=N" of each row; a number below 1 counts as not given. */
enum dl_code dl_run_shape_add(struct dl_run *run, const struct dl_run_shape *rows,
                              struct dl_text *out);

/* Reads the keys; a later row of a slot counts where the earlier ones are absent. */
enum dl_code dl_run_slots_read(struct dl_run *run, const struct dl_run_key *keys,
                               struct dl_run_slots *out);
/* The workload - text, or what --workload or the model's name gives - and the options. text may be
 * NULL. */
enum dl_code dl_run_slots_plan(struct dl_run *run, struct dl_run_slots *slots, const char *text);

#endif
