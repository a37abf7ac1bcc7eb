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

/* DL_ERR_INPUT: the framework's `settings` name what is no setting. */
enum dl_code dl_settings_check(const struct dl_framework *framework, const struct dl_json *doc,
                               struct dl_err *err);

#endif
