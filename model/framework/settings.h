/* settings.h - settings of a plan that the framework's release or the system decides unless the
 * plan does: overlap of collectives with kernels, the width of gradients in collectives, flat or
 * hierarchical all-reduce, the transport between nodes. F-PLAN-SETTINGS
 *
 * A setting is a change of the constants that the engine reads, so nothing else knows of it. */
#ifndef DL_MODEL_FRAMEWORK_SETTINGS_H
#define DL_MODEL_FRAMEWORK_SETTINGS_H

#include "model/framework/framework.h"
#include "model/machine/system.h"

/* Replaces *system and *framework by copies with the plan's settings, where those differ. A copy of
 * a framework knows the first setting that its release lacks (capabilities.h). A bound (`ideal`)
 * overlaps whatever the plan says. DL_ERR_USAGE: RDMA between nodes of a system without it. */
enum dl_code dl_settings_apply(const struct dl_plan *plan, struct dl_arena *arena,
                               const struct dl_system **system,
                               const struct dl_framework **framework, struct dl_err *err);

/* Settings that `search --vary` takes, by option; the first, "all", stands for those that
 * follow but recompute-*. */
extern const char *const dl_settings_varied[]; /* NULL-terminated */

enum { DL_SETTINGS_VARIANTS = 4096 };
/* What the values to try depend on: layers of the network, whether it has experts. */
struct dl_settings_scope {
    int64_t layers;
    bool has_experts;
};
/* F-SEARCH-SETTINGS: plans that differ from *plan in the settings of `which` (bits by place in
 * dl_settings_varied) that it leaves open, in every combination of values that the framework's
 * release has. The first is the plan itself. DL_ERR_USAGE: more than DL_SETTINGS_VARIANTS. */
enum dl_code dl_settings_variants(const struct dl_framework *framework, const struct dl_plan *plan,
                                  unsigned which, const struct dl_settings_scope *scope,
                                  struct dl_arena *arena, struct dl_plan **out, int *count_out,
                                  struct dl_err *err);

/* Setting n of dl_settings_varied in the plan: the value of its option ("": a flag); NULL: open. */
const char *dl_settings_text(const struct dl_plan *plan, int n, struct dl_arena *arena);

/* DL_ERR_INPUT: the framework's `settings` name what is no setting. */
enum dl_code dl_settings_check(const struct dl_framework *framework, const struct dl_json *doc,
                               struct dl_err *err);

#endif
