/* launch_fields.c - the member `launch` of data/frameworks/NAME.json: how a Slurm job starts the
 * framework. */
#include "model/framework/framework.h"

static const char *const task_names[] = {
    [DL_TASKS_DEVICE] = "device", [DL_TASKS_NODE] = "node", [DL_TASKS_ONE] = "one", NULL};
static const char *const helper_names[] = {[DL_HELPERS_NONE] = "none",
                                           [DL_HELPERS_PS] = "parameter-servers",
                                           [DL_HELPERS_KVSTORE] = "kvstore",
                                           NULL};

#define AT(member) .key = #member, .offset = offsetof(struct dl_framework_launch, member)
#define STRING(member, need, text)                                                                 \
    { AT(member), .type = DL_FIELD_STRING, .required = need, .help = text }
static const struct dl_field launch_fields[] = {
    STRING(program, true, "benchmark program, a file of slurm/frameworks"),
    STRING(mode, false, "its --mode; absent: none"),
    {AT(tasks), .type = DL_FIELD_CHOICE, .choices = task_names, .required = true,
     .help = "one task per device, one per node (it drives all its devices), or one in all"},
    {AT(helpers), .type = DL_FIELD_CHOICE, .choices = helper_names, .has_fallback = true,
     .fallback = DL_HELPERS_NONE, .help = "processes next to the tasks"},
    {AT(mpi), .type = DL_FIELD_BOOL, .help = "tasks find each other through MPI (srun --mpi)"},
    STRING(strategy, false, "strategy of the collected runs; absent: `strategy`"),
    STRING(backend, false,
           "backend of the collected runs on GPUs, also the program's; absent: `library`"),
    STRING(cpu_backend, false, "the same on CPUs; absent: `cpu_library`, else none"),
    {AT(environment), .count_offset = offsetof(struct dl_framework_launch, environment_count),
     .type = DL_FIELD_STRINGS, .help = "environment of the tasks, as NAME=VALUE"},
    {.key = NULL},
};

const struct dl_schema dl_framework_launch_schema = {
    .name = "launch",
    .summary = "how a Slurm job starts the framework",
    .size = sizeof(struct dl_framework_launch),
    .fields = launch_fields,
};
