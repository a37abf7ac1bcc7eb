/* launch.c - see the header. Details outside the entry (rendezvous of the tasks, devices of a
 * task) are in the programs, which share slurm/frameworks/common.py. */
#include "slurm/launch.h"

#include <string.h>

#include "model/catalog/data.h"
#include "model/network/collective.h"

static const char custom_name[] = "custom";
static const struct dl_launch custom = {.framework = custom_name,
                                        .tasks = DL_TASKS_DEVICE,
                                        .mpi = true,
                                        .strategy = "data",
                                        .backend_gpu = "unknown",
                                        .backend_cpu = "unknown"};

bool dl_launch_is_custom(const char *framework) { return strcmp(framework, custom_name) == 0; }

static const char *or_else(const char *text, const char *otherwise) {
    return text != NULL ? text : otherwise;
}

static const char *library_name(int library) {
    return library >= 0 ? dl_library_names[library] : "none";
}

enum dl_code dl_launch_find(struct dl_context *context, const char *name,
                            const struct dl_launch **out, struct dl_err *err) {
    const struct dl_framework *framework = NULL;
    *out = &custom;
    if (dl_launch_is_custom(name)) return DL_OK;
    DL_TRY(dl_data_framework(&context->data, name, context->arena, &framework, err));
    if (dl_framework_is_bound(framework))
        return dl_fail(err, DL_ERR_USAGE,
                       "--framework: '%.60s' is a bound, not a program that could run", name);
    if (!framework->has_launch)
        return dl_fail(err, DL_ERR_USAGE,
                       "--framework: the file of '%.60s' does not say how to launch it (member "
                       "launch, 'dlmodel schema framework')",
                       name);
    struct dl_launch *launch = dl_arena_alloc(context->arena, 1, sizeof *launch);
    const struct dl_framework_launch *entry = &framework->launch;
    *launch = (struct dl_launch){
        .framework = framework->name,
        .file = framework,
        .program = entry->program,
        .mode = entry->mode,
        .tasks = (enum dl_launch_tasks)entry->tasks,
        .helpers = (enum dl_launch_helpers)entry->helpers,
        .mpi = entry->mpi,
        .strategy = or_else(entry->strategy, or_else(framework->strategy, "data")),
        .backend_gpu = or_else(entry->backend, library_name(framework->sync.library)),
        .backend_cpu = or_else(entry->cpu_backend, library_name(framework->sync.cpu_library)),
        .environment = entry->environment,
        .environment_count = entry->environment_count,
    };
    *out = launch;
    return DL_OK;
}
