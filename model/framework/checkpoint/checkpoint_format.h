/* checkpoint_format.h - what a framework writes as a checkpoint: how many bytes, by whom, and what
 * a restart finds in it. A format is one file of formats/ and one row of dl_checkpoint_formats.
 * Source: code of the frameworks (keys of data/SOURCES.md in each format).
 */
#ifndef DL_MODEL_FRAMEWORK_CHECKPOINT_CHECKPOINT_FORMAT_H
#define DL_MODEL_FRAMEWORK_CHECKPOINT_CHECKPOINT_FORMAT_H

#include "model/plan/plan.h"
#include "model/workload/workload.h"

/* What is saved, by counts: overheads depend on numbers of tensors and lengths of names. */
struct dl_checkpoint_content {
    double layers;       /* with weights or without: Keras keeps a group of each */
    double tensor_count; /* all of them */
    double data_bytes;   /* of all elements */
    double large_bytes;  /* part of data_bytes in tensors larger than DL_CHECKPOINT_CACHED_BYTES */
    double name_char_count; /* mean length of a tensor's name */
    double dim_count;       /* mean number of dimensions */
    double setting_count;   /* of the optimizer (rate, decay, ...): PyTorch's param_groups */
};
/* A tensor of at most this size stays in a core's cache between two passes over it. */
#define DL_CHECKPOINT_CACHED_BYTES 2097152.0

/* Tensors that a platform saves besides weights, batch-norm statistics and optimizer states. */
enum dl_checkpoint_counters {
    DL_COUNTERS_NONE,
    DL_COUNTERS_TORCH, /* a step of each parameter (Adam); batches seen by each batch norm */
    DL_COUNTERS_KERAS, /* iteration and learning rate; a seed of each dropout layer */
};

enum dl_checkpoint_writers {
    DL_WRITER_FIRST, /* rank 0 writes all, the others wait */
    DL_WRITER_SHARD, /* every rank writes its part */
    DL_WRITER_EVERY, /* every rank writes a whole copy */
};
extern const char *const dl_checkpoint_writer_names[]; /* "rank 0", ..., NULL */

/* What a bit-exact restart needs, and whether the format's usual call saves it. */
enum {
    DL_SAVES_WEIGHTS = 1,
    DL_SAVES_OPTIMIZER = 2, /* its states and its step */
    DL_SAVES_RNG = 4,       /* of dropout and augmentation */
    DL_SAVES_POSITION = 8,  /* of the data loader */
    DL_SAVES_SCALE = 16,    /* loss scale of mixed precision */
};

/* A format whose ranks first agree who writes what: each plans all its tensors, the first rank
 * reads all plans, gives each tensor to one rank, and sends each its part. */
struct dl_checkpoint_planning {
    const char *plan_probe;       /* format of the probe's row of what each rank does, */
    const char *coordinate_probe; /* of the first rank's work for one plan and for two, */
    const char *collect_probe;    /* and of a full collection of the process's garbage */
    /* Python objects kept for each tensor: by the first rank, for each rank's plan, on the other
     * ranks, and on any rank for each tensor that it writes */
    double first_object_count, plan_object_count, other_object_count, written_object_count;
};

struct dl_checkpoint_format {
    const char *name, *summary, *source;
    const char *probe; /* format whose measured cost it has, for it calls the same code */
    enum dl_checkpoint_writers writers;
    enum dl_checkpoint_counters counters;
    const struct dl_checkpoint_planning *planning; /* NULL: none */
    bool syncs;                                    /* waits until the disk has it (fsync) */
    bool is_async;                                 /* training goes on after a copy in memory */
    unsigned saves;
    const char *also; /* what a bit-exact restart needs from elsewhere; NULL: nothing */
    /* F-CKPT-BYTES: bytes of the files - data_bytes x ratio */
    double (*overhead_bytes)(const struct dl_checkpoint_content *content, double ranks);
    double ratio; /* size of the data in the file / in memory; below 1: compressed */
};
extern const struct dl_checkpoint_format *const dl_checkpoint_formats[]; /* NULL at the end */
/* The format by that name; NULL: none. */
const struct dl_checkpoint_format *dl_checkpoint_format_find(const char *name);
/* What it saves: "weights, optimizer". In the arena; NULL: out of memory. */
const char *dl_checkpoint_saves_text(const struct dl_checkpoint_format *format,
                                     struct dl_arena *arena);

/* F-CKPT-CONTENT: what the format's platform saves of a network under an optimizer, with
 * weight_bytes [1, 8] for each weight. */
void dl_checkpoint_content(const struct dl_checkpoint_format *format,
                           const struct dl_workload *workload, enum dl_optimizer optimizer,
                           double weight_bytes, struct dl_checkpoint_content *out);

/* F-CKPT-BYTES: all files of one checkpoint of `ranks` ranks. */
double dl_checkpoint_bytes(const struct dl_checkpoint_format *format,
                           const struct dl_checkpoint_content *content, double ranks);

/* A record of a zip archive, with its entry in the central directory: headers of 30 and 46 bytes,
 * each with the name, and what else precedes or follows the data. */
double dl_checkpoint_zip_bytes(double name_chars, double other_bytes);

#endif
