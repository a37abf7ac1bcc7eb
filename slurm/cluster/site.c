/* site.c - the fields of slurm/sites/NAME.json and their checks; finds site files and benchmark
 * programs. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "slurm/cluster/site.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const dl_site_devices[] = {"gpu", "cpu", NULL};
const char *const dl_site_runtimes[] = {"apptainer", "singularity", NULL};

#define STRING(type_, member, need, text)                                                          \
    DL_FIELD(type_, member, STRING, .required = need, .help = text)
#define BINDING(member, text) DL_FIELD_IN(struct dl_site, binding, member, STRING, .help = text)
#define INTEGER(member, low, high, text)                                                           \
    DL_FIELD(struct dl_site, member, INTEGER, DL_RANGE(low, high, DL_UNIT_COUNT), .help = text)
#define FLAG(member, initial, text)                                                                \
    DL_FIELD(struct dl_site, member, BOOL, .has_fallback = true, .fallback = initial, .help = text)
#define STRINGS(type_, member, count, text)                                                        \
    DL_FIELD(type_, member, STRINGS, .count_offset = offsetof(type_, count), .help = text)
#define MAP(type_, member, count, text)                                                            \
    DL_FIELD(type_, member, MAP, .count_offset = offsetof(type_, count), .help = text)
#define CONTAINER(type_)                                                                           \
    DL_FIELD(type_, container, OBJECT, .count_offset = offsetof(type_, has_container),             \
             .child = &container_schema, .help = "image in which the programs run")

static const struct dl_field container_fields[] = {
    DL_FIELD(struct dl_site_container, runtime, CHOICE, .choices = dl_site_runtimes,
             .has_fallback = true, .fallback = 0, .help = "container runtime"),
    STRING(struct dl_site_container, image, true, "file or URL of the image"),
    STRINGS(struct dl_site_container, options, option_count, "options of exec: --nv"),
    {.key = NULL},
};
static const struct dl_schema container_schema = {.name = "container",
                                                  .summary = "a container image",
                                                  .size = sizeof(struct dl_site_container),
                                                  .fields = container_fields};

static const struct dl_field framework_fields[] = {
    STRING(struct dl_site_framework, name, true, "framework, or the start of its name: pytorch"),
    STRING(struct dl_site_framework, python, false, "Python interpreter"),
    STRING(struct dl_site_framework, mpi, false, "value of srun --mpi"),
    STRING(struct dl_site_framework, program, false,
           "folder or binary of a framework that is not a Python package"),
    STRINGS(struct dl_site_framework, modules, module_count, "additional modules to load"),
    STRINGS(struct dl_site_framework, setup, setup_count, "additional files to source"),
    MAP(struct dl_site_framework, environment, environment_count,
        "additional environment variables"),
    CONTAINER(struct dl_site_framework),
    {.key = NULL},
};
static const struct dl_schema framework_schema = {.name = "framework",
                                                  .summary = "additional needs of one framework",
                                                  .size = sizeof(struct dl_site_framework),
                                                  .fields = framework_fields};

static const struct dl_field site_fields[] = {
    STRING(struct dl_site, name, true, "name of the file"),
    STRING(struct dl_site, summary, true, "one-line description"),
    STRING(struct dl_site, source, false, "source: a key of SOURCES.md or a URL"),
    STRING(struct dl_site, system, true, "system file of these nodes; recorded with each run"),
    STRING(struct dl_site, partition, false, "sbatch --partition"),
    STRING(struct dl_site, account, false, "sbatch --account"),
    STRING(struct dl_site, qos, false, "sbatch --qos"),
    STRING(struct dl_site, constraint, false, "sbatch --constraint: features of the nodes"),
    STRING(struct dl_site, reservation, false, "sbatch --reservation"),
    STRING(struct dl_site, gres, false, "sbatch --gres without the count: gpu, gpu:volta"),
    DL_FIELD(struct dl_site, device, CHOICE, .choices = dl_site_devices, .required = true,
             .help = "device that trains: gpu or cpu"),
    INTEGER(devices_per_node, 1, 1024, "devices (tasks) per node"),
    INTEGER(cores_per_node, 1, 4096, "cores per node, divided evenly among its tasks"),
    INTEGER(max_nodes, 1, 1e7, "maximum nodes of a job"),
    DL_FIELD(struct dl_site, time_limit_s, NUMBER, .min = 60, .max = 1e7, .unit = DL_UNIT_S,
             .has_fallback = true, .fallback = 3600, .help = "time limit of a job"),
    FLAG(exclusive, 1, "allocate whole nodes, undisturbed by other jobs"),
    FLAG(accounting, 1, "sacct is available"),
    FLAG(login_shell, 0, "run the script in a login shell (where modules need one)"),
    STRING(struct dl_site, mpi, false, "value of srun --mpi for MPI programs: pmix, pmi2"),
    STRING(struct dl_site, python, false, "Python interpreter; default python3"),
    STRING(struct dl_site, interface, false, "network interface for Gloo, NCCL and Open MPI: ib0"),
    BINDING(cpu_bind, "srun --cpu-bind: cores"),
    BINDING(mem_bind, "srun --mem-bind: local"),
    BINDING(gpu_bind, "srun --gpu-bind: none, closest"),
    BINDING(hint, "srun --hint: nomultithread"),
    BINDING(distribution, "srun --distribution: block:block"),
    STRING(struct dl_site, scratch, false,
           "folder for runs, visible to all nodes; default dlmodel-runs"),
    STRINGS(struct dl_site, modules, module_count, "modules to load"),
    STRINGS(struct dl_site, setup, setup_count, "files to source"),
    STRINGS(struct dl_site, options, option_count, "additional options of sbatch"),
    MAP(struct dl_site, environment, environment_count, "environment variables of the programs"),
    CONTAINER(struct dl_site),
    DL_FIELD(struct dl_site, frameworks, LIST,
             .count_offset = offsetof(struct dl_site, framework_count), .child = &framework_schema,
             .help = "additional needs of single frameworks"),
    MAP(struct dl_site, sources, source_count, "field -> source"),
    STRING(struct dl_site, comment, false, "free text"),
    {.key = NULL},
};

const struct dl_schema dl_site_schema = {.name = "dlmodel-site",
                                         .summary = "how jobs run on a Slurm cluster",
                                         .size = sizeof(struct dl_site),
                                         .fields = site_fields,
                                         .top_level = true};

/* Jobs execute these files, and sites name commands: neither is taken from a data folder.
 */
static const char *shipped(struct dl_context *context, int i, const char *rest) {
    return dl_arena_printf(context->arena, "%s/slurm/%s", context->script_roots[i], rest);
}

static const char *site_names(struct dl_context *context) {
    const char *names = "";
    for (int i = 0; i < context->script_root_count; i++) {
        DIR *folder = opendir(shipped(context, i, "sites"));
        if (folder == NULL) continue;
        for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
            const char *dot = strstr(entry->d_name, ".json");
            if (dot == NULL || dot == entry->d_name || dot[5] != 0) continue;
            names = dl_arena_printf(context->arena, "%s%s%.*s", names, *names != 0 ? ", " : "",
                                    (int)(dot - entry->d_name), entry->d_name);
        }
        closedir(folder);
        break;
    }
    return names;
}

static enum dl_code site_path(struct dl_context *context, const char *name, const char **out,
                              struct dl_err *err) {
    if (name == NULL) name = context->site;
    if (name == NULL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "no site: give --site NAME|FILE, set DLMODEL_SITE, or write "
                       "~/.config/dlmodel/site.json (dlmodel ships: %s)",
                       site_names(context));
    }
    if (dl_data_is_path(name) || dl_data_attachment(&context->data, name) != NULL) {
        *out = name;
        return DL_OK;
    }
    for (int i = 0; i < context->script_root_count; i++) {
        *out = shipped(context, i, dl_arena_printf(context->arena, "sites/%s.json", name));
        if (*out != NULL && access(*out, F_OK) == 0) return DL_OK;
    }
    return dl_fail(err, DL_ERR_USAGE, "--site: unknown site '%.60s'; expected a file or one of %s",
                   name, site_names(context));
}

enum dl_code dl_site_load(struct dl_context *context, const char *name, const struct dl_site **out,
                          struct dl_err *err) {
    const char *path = NULL;
    struct dl_json *doc = NULL;
    DL_TRY(site_path(context, name, &path, err));
    struct dl_site *site = dl_arena_alloc(context->arena, 1, sizeof *site);
    if (dl_data_attachment(&context->data, path) != NULL)
        DL_TRY(dl_data_json(&context->data, path, context->arena, &doc, err));
    else
        DL_TRY(dl_json_read(path, context->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_site_schema, context->arena, site, err));
    if (site->devices_per_node == DL_ABSENT)
        return dl_json_fail(doc, "devices_per_node", err,
                            "expected the number of devices per node");
    if (site->python == NULL) site->python = "python3";
    *out = site;
    return DL_OK;
}

const struct dl_site_framework *dl_site_framework_find(const struct dl_site *site,
                                                       const char *name) {
    const struct dl_site_framework *best = NULL;
    for (int i = 0; i < site->framework_count; i++) {
        const struct dl_site_framework *own = &site->frameworks[i];
        if (strncmp(own->name, name, strlen(own->name)) != 0) continue;
        if (best == NULL || strlen(own->name) > strlen(best->name)) best = own;
    }
    return best;
}

enum dl_code dl_site_programs(struct dl_context *context, const char **out, struct dl_err *err) {
    char resolved[PATH_MAX];
    for (int i = 0; i < context->script_root_count; i++) {
        const char *path = shipped(context, i, "frameworks");
        if (path == NULL || access(path, R_OK) != 0 || realpath(path, resolved) == NULL) continue;
        *out = dl_arena_strdup(context->arena, resolved);
        return DL_OK;
    }
    return dl_fail(
        err, DL_ERR_SYSTEM,
        "the benchmark programs (slurm/frameworks next to the program or installed) are missing; "
        "reinstall dlmodel");
}
