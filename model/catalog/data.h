/* data.h - finding and loading data files by name: devices, systems, workloads, frameworks.
 *
 * A search path holds directories with devices/ systems/ workloads/ frameworks/ below them, first
 * match wins. A name that contains '/' or ends in ".json" is a file; a workload that is in no
 * directory is the file of that name, or the config.json of a folder. "local" is the profile
 * written by calibrate; "4x8xh100_sxm" a system of usual nodes (node_class.h).
 *
 * --set keys: "device.KEY" changes only the device of a system (or its device_profile); "system.",
 * "workload." and "framework." do the same for the other kinds; a key without prefix changes each
 * document that has it, except devices. "framework.NAME.KEY" changes only that object (NAME: a
 * comma-separated list; a name may end in '*'); a release that states its own value keeps it,
 * "framework.NAME@RELEASE.KEY" changes it there. Measured values scale with the datasheet numbers
 * that --set changes (what_if.h, F-WHAT-IF). */
#ifndef DL_MODEL_CATALOG_DATA_H
#define DL_MODEL_CATALOG_DATA_H

#include "model/core/csv.h"
#include "model/framework/framework.h"
#include "model/machine/system.h"
#include "model/workload/workload.h"

struct dl_layer_times; /* layer_times.h */
struct dl_store;       /* store.h */

/* A file that the caller has read or received, used in place of the file of that name. */
struct dl_attachment {
    const char *name, *text;
    size_t length;
    bool if_it_fits;    /* of --measured: a table without runs for the prediction is no error */
    const char *remark; /* of --measured: a warning of each prediction; NULL: none */
};

/* Members that affect loading belong to the key in store.c. */
struct dl_data {
    const char *const *directories;
    int directory_count;
    /* error model of prediction intervals; NULL: unknown */
    const struct dl_interval_model *intervals;
    const char *local_profile; /* path of the profile "local"; NULL: none */
    /* --set; each loader marks those that it used */
    struct dl_override *overrides;
    int override_count;
    /* load workloads for training: sets "pretrain_heads" to 1 where a workload has it */
    bool training;
    const char *release; /* release of frameworks that have it ("1.12"); NULL: the file's own */
    /* release of the framework named in `kernels_from`; NULL: `release` */
    const char *kernels_release;
    /* GPU architecture, which selects the release where none is given; NULL: the file's own */
    const char *architecture;
    /* of compare: profiled layer times for matching runs */
    const struct dl_layer_times *const *layer_times;
    int layer_times_count;
    struct dl_store *store; /* cache of loaded files; NULL: none */
    const struct dl_attachment *attachments;
    int attachment_count;
    bool names_only; /* read only attachments and files of the data directories */
    /* The text of a workload file for a model in another form (ONNX, config.json); *text NULL: the
     * file is a workload. NULL: other forms are not read. */
    enum dl_code (*import_workload)(const struct dl_data *data, const char *path,
                                    struct dl_arena *arena, const char **text, struct dl_err *err);
    void *import_user;
};

enum dl_data_kind {
    DL_DATA_DEVICE,
    DL_DATA_SYSTEM,
    DL_DATA_WORKLOAD,
    DL_DATA_FRAMEWORK,
    DL_DATA_LAYERS,
    DL_DATA_INTERVALS,
    DL_DATA_HASH /* of a file's text */
};

/* The attachment of that name; NULL: none. */
const struct dl_attachment *dl_data_attachment(const struct dl_data *data, const char *name);
/* A name that contains '/' or ends in ".json". */
bool dl_data_is_path(const char *name);
/* The path that results show, the same on each machine: below the data directory for its files,
 * "local" for the profile, else as it is. */
const char *dl_data_shown_path(const struct dl_data *data, const char *path);
/* The file of that name, with a folder where it is in one, of the first data directory that has it;
 * NULL: none has. */
const char *dl_data_file(const struct dl_data *data, const char *name, struct dl_arena *arena);
/* Whether the system "local" exists: an attachment of that name, or the profile's file. */
bool dl_data_has_profile(const struct dl_data *data);
/* A file's whole text, or an attachment's. DL_ERR_USAGE for a path that may not be read, else as
 * dl_file_read. */
enum dl_code dl_data_read(const struct dl_data *data, const char *path, size_t most_bytes,
                          struct dl_arena *arena, char **text, size_t *length, struct dl_err *err);
/* At most `most` bytes from the start of a regular file or an attachment; NULL: it is not read. */
const char *dl_data_head(const struct dl_data *data, const char *path, size_t most,
                         struct dl_arena *arena, size_t *length);
/* FNV-1a hash, 64 bits, of a file's text. Errors as dl_data_read. */
enum dl_code dl_data_hash(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          uint64_t *out, struct dl_err *err);
/* The same as JSON (dl_json_read) and as a table (dl_csv_read). */
enum dl_code dl_data_json(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          struct dl_json **out, struct dl_err *err);
enum dl_code dl_data_csv(const struct dl_data *data, const char *path, struct dl_arena *arena,
                         struct dl_csv *out, struct dl_err *err);

/* intervals.json of the first data directory that has it; NULL in *out without one. */
enum dl_code dl_data_intervals(const struct dl_data *data, struct dl_arena *arena,
                               const struct dl_interval_model **out, struct dl_err *err);

/* Full path of a named file; unknown name: DL_ERR_USAGE with a suggestion. A path is returned
 * unchanged and unchecked. */
enum dl_code dl_data_path(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                          struct dl_arena *arena, const char **path_out, struct dl_err *err);
/* Names in all directories, sorted, each once, NULL-terminated; "local" among the systems when
 * there is one. A missing directory has no names. */
void dl_data_names(const struct dl_data *data, enum dl_data_kind kind, struct dl_arena *arena,
                   const char ***names_out);

/* Appends an override to a copy of the list. */
void dl_data_override(struct dl_data *data, const char *key, const char *value,
                      struct dl_arena *arena);

/* A device with its kernel-time models: its own or those of kernels/NAME.json in the data directory
 * of its file, and those of the device named in kernel_models_from. */
enum dl_code dl_data_device(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_device **out, struct dl_err *err);
/* A system with its device and the derived members of its links. */
enum dl_code dl_data_system(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_system **out, struct dl_err *err);
/* The system's own file, without device and derived members: for lists. */
enum dl_code dl_data_system_alone(const struct dl_data *data, const char *name,
                                  struct dl_arena *arena, const struct dl_system **out,
                                  struct dl_err *err);
/* "resnet50", "gpt:layers=24,hidden=1024,seq=1024,vocab=51200", a file. */
enum dl_code dl_data_workload(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              const struct dl_workload **out, struct dl_err *err);
enum dl_code dl_data_framework(const struct dl_data *data, const char *name, struct dl_arena *arena,
                               const struct dl_framework **out, struct dl_err *err);

#endif
