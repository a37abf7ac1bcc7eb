/* data.h - finding and loading data files by name: devices, systems, workloads, frameworks.
 *
 * A search path holds directories with devices/ systems/ workloads/ frameworks/ below them, first match wins. A name
 * that contains '/' or ends in ".json" is a file. "local" is the profile that calibrate wrote.
 */
#ifndef DL_MODEL_DATA_H
#define DL_MODEL_DATA_H

#include "model/framework.h"
#include "model/system.h"
#include "model/workload.h"

struct dl_data {
    const char *const *directories; int directory_count;
    const char *local_profile;       /* path of the profile "local"; NULL: none */
    struct dl_override *overrides; int override_count; /* --set; each loader marks those that it took */
};

enum dl_data_kind { DL_DATA_DEVICE, DL_DATA_SYSTEM, DL_DATA_WORKLOAD, DL_DATA_FRAMEWORK };

/* Full path of a named file; unknown name: DL_ERR_USAGE with a suggestion. */
enum dl_code dl_data_path(const struct dl_data *data, enum dl_data_kind kind, const char *name, struct dl_arena *arena,
                          const char **path_out, struct dl_err *err);
/* Names there are, sorted, NULL-terminated. */
enum dl_code dl_data_names(const struct dl_data *data, enum dl_data_kind kind, struct dl_arena *arena,
                           const char ***names_out, struct dl_err *err);

enum dl_code dl_data_device(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_device **out, struct dl_err *err);
enum dl_code dl_data_system(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_system **out, struct dl_err *err);
/* "resnet50", "gpt:layers=24,hidden=1024,seq=1024,vocab=51200", a file. */
enum dl_code dl_data_workload(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              const struct dl_workload **out, struct dl_err *err);
enum dl_code dl_data_framework(const struct dl_data *data, const char *name, struct dl_arena *arena,
                               const struct dl_framework **out, struct dl_err *err);

#endif
