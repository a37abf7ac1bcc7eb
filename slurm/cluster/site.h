/* site.h - the description of a cluster for job scripts: slurm/sites/NAME.json ("dlmodel-site"),
 * written once per facility. */
#ifndef DL_SLURM_CLUSTER_SITE_H
#define DL_SLURM_CLUSTER_SITE_H

#include "model/catalog/command.h"

struct dl_site_container {
    int runtime; /* index of dl_site_runtimes; -1: none */
    const char *image;
    const char **options;
    int option_count; /* of "exec" */
};

/* Additional needs of one framework: its fields replace those of the site, its lists extend
 * them. */
struct dl_site_framework {
    const char *name;
    const char *python, *mpi;
    /* path of a framework that is not a Python package (the folder of Megatron, the caffe
     * binary) */
    const char *program;
    const char **modules;
    int module_count;
    const char **setup;
    int setup_count;
    struct dl_map_entry *environment;
    int environment_count;
    struct dl_site_container container;
    bool has_container;
};

/* Options of srun that place tasks; NULL: not given. */
struct dl_site_binding {
    const char *cpu_bind, *mem_bind, *gpu_bind, *hint, *distribution;
};

struct dl_site {
    const char *name, *summary, *source, *system;
    const char *partition, *account, *qos, *constraint, *reservation;
    /* "gpu", "gpu:volta": the number of devices is appended. NULL: no --gres */
    const char *gres;
    int device; /* index of dl_site_devices */
    int64_t devices_per_node, cores_per_node, max_nodes;
    double time_limit_s;
    bool exclusive, accounting, login_shell;
    const char *mpi; /* srun --mpi of programs that use MPI */
    const char *python;
    const char *interface; /* network interface for Gloo, NCCL, Open MPI */
    struct dl_site_binding binding;
    const char *scratch; /* folder of runs without --dir */
    const char **modules;
    int module_count;
    const char **setup;
    int setup_count; /* files to source */
    const char **options;
    int option_count; /* further options of sbatch: "--mail-type=NONE" */
    struct dl_map_entry *environment;
    int environment_count;
    struct dl_site_container container;
    bool has_container;
    struct dl_site_framework *frameworks;
    int framework_count;
    struct dl_map_entry *sources;
    int source_count;
    const char *comment;
};

extern const struct dl_schema dl_site_schema;
extern const char *const dl_site_devices[];  /* "gpu", "cpu" */
extern const char *const dl_site_runtimes[]; /* "apptainer", "singularity" */
enum { DL_SITE_GPU, DL_SITE_CPU };

/* Loads NAME (in slurm/sites next to a data directory) or FILE; NULL: the user's
 * (context->site). DL_ERR_USAGE: no such site; the message lists
 * the names. */
enum dl_code dl_site_load(struct dl_context *context, const char *name, const struct dl_site **out,
                          struct dl_err *err);

/* The entry of that framework, or NULL. */
const struct dl_site_framework *dl_site_framework_find(const struct dl_site *site,
                                                       const char *name);

/* Folder slurm/frameworks of the benchmark programs, absolute; DL_ERR_SYSTEM when it is not found.
 */
enum dl_code dl_site_programs(struct dl_context *context, const char **out, struct dl_err *err);

#endif
