/* capabilities.c - see the header. */
#include "model/framework/capabilities.h"

#include <stdio.h>
#include <string.h>

static bool is_listed(const char *const *list, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0) return true;
    }
    return count == 0;
}

bool dl_framework_has_zero(const struct dl_framework *framework, int stage) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    for (int i = 0; i < c->zero_stage_count; i++) {
        if ((int)c->zero_stages[i] == stage) return true;
    }
    return stage == 0 || (framework->shards && c->zero_stage_count == 0);
}

bool dl_framework_has_schedule(const struct dl_framework *framework, enum dl_schedule schedule) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    if (c->schedule_count == 0) return dl_schedules[schedule]->usual;
    return is_listed(c->schedules, c->schedule_count, dl_schedule_names[schedule]);
}

bool dl_framework_has_precision(const struct dl_framework *framework, enum dl_precision precision) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    return is_listed(c->precisions, c->precision_count, dl_precision_names[precision]);
}

enum dl_precision dl_default_precision(const struct dl_device *device,
                                       const struct dl_framework *const *frameworks, int count) {
    bool trains = false, has_rate = false;
    for (int i = 0; i < count; i++)
        trains = trains || dl_framework_has_precision(frameworks[i], DL_BF16);
    for (int i = 0; i < device->rate_count; i++)
        has_rate = has_rate || device->rates[i].precision == DL_BF16;
    return trains && has_rate ? DL_BF16 : DL_FP32;
}

/* For a network whose layers are split over ranks; NULL: the release has everything. */
static const char *split_lacks(const struct dl_framework_capabilities *c,
                               const struct dl_plan *plan, int zero_stage) {
    if (plan->sp > 1 && c->context_parallel == DL_NO) return "has no context parallelism";
    if (plan->sp > 1 && c->context_parallel != DL_YES)
        return "may have no context parallelism (unknown)";
    if (plan->sp > 1 && zero_stage == 0 && c->context_shards)
        return "has no context parallelism without sharded states";
    if (plan->tp > 1 && !plan->sequence_parallel && c->tensor_sequence)
        return "has no tensor parallelism without sequence parallelism";
    if (plan->pp > 1 && plan->mapping == DL_MAP_PIPELINE_INSIDE && c->pipeline_outermost)
        return "has no pipeline ranks inside of data ranks";
    if (plan->pp > 1 && zero_stage > 1 && c->pipeline_zero1)
        return "has no pipelines with ZeRO stages 2 and 3";
    return NULL;
}

bool dl_framework_lacks(const struct dl_framework *framework, const struct dl_plan *plan,
                        int zero_stage, char out[DL_LACKS_TEXT]) {
    const char *what =
        framework->splits_layers ? split_lacks(&framework->capabilities, plan, zero_stage) : NULL;
    if (!dl_framework_has_zero(framework, zero_stage))
        snprintf(out, DL_LACKS_TEXT, "has no ZeRO stage %d", zero_stage);
    else if (!dl_framework_has_precision(framework, plan->precision))
        snprintf(out, DL_LACKS_TEXT, "has no precision %s", dl_precision_names[plan->precision]);
    else if (plan->pp > 1 && !dl_framework_has_schedule(framework, plan->schedule))
        snprintf(out, DL_LACKS_TEXT, "has no pipeline schedule %s",
                 dl_schedule_names[plan->schedule]);
    else if (framework->capabilities.lacking != NULL)
        snprintf(out, DL_LACKS_TEXT, "%s", framework->capabilities.lacking);
    else if (what != NULL)
        snprintf(out, DL_LACKS_TEXT, "%s", what);
    else
        return false;
    return true;
}

static enum dl_code check_names(const struct dl_json *doc, const char *key, const char **list,
                                int count, const char *const *names, struct dl_err *err) {
    for (int i = 0; i < count; i++) {
        int n = 0;
        while (names[n] != NULL && strcmp(names[n], list[i]) != 0) n++;
        if (names[n] != NULL) continue;
        const char *near = dl_suggest(list[i], names);
        return dl_json_fail(doc, key, err, "expected values of --%s, got \"%.60s\"%s%s",
                            strcmp(key, "schedules") == 0 ? "schedule" : "precision", list[i],
                            near != NULL ? "; did you mean " : "", near != NULL ? near : "");
    }
    return DL_OK;
}

enum dl_code dl_framework_capabilities_check(const struct dl_framework *framework,
                                             const struct dl_json *doc, struct dl_err *err) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    DL_TRY(check_names(doc, "schedules", c->schedules, c->schedule_count, dl_schedule_names, err));
    return check_names(doc, "precisions", c->precisions, c->precision_count, dl_precision_names,
                       err);
}
