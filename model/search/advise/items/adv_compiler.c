/* adv_compiler.c - a compiler that fuses operations. */
#include <math.h>

#include "model/search/advise/advise.h"

#include <string.h>

#include "model/plan/plan.h"

/* The first release whose kernels a compiler may fuse; NULL: none. */
static const char *release_with(const struct dl_framework *framework) {
    for (int r = 0; r < framework->release_count; r++) {
        const struct dl_framework_release *release = &framework->releases[r];
        for (int i = 0; i < release->set_count && release->where_count == 0; i++)
            if (strcmp(release->set[i].key, "compiler") == 0) return release->name;
    }
    return NULL;
}

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const int now = s->framework->kernels.compiler;
    const bool has = now > DL_COMPILER_NONE;
    const char *release = has ? NULL : release_with(s->framework);
    int count = 0;
    if (s->plan->compiler > DL_COMPILER_NONE || (!has && release == NULL)) return 0;
    const bool torch = dl_advise_is(s, "pytorch");
    const char *name = has ? dl_compiler_names[now] : torch ? "inductor" : "xla";
    struct dl_advise_change *c = dl_advise_add(
        changes, &count, "compiler", name,
        release == NULL ? "compiler that fuses operations"
                        : dl_arena_printf(s->arena, "release %s with its compiler", release),
        torch ? "torch.compile(model)" : "tf.function(jit_compile=True)");
    if (release != NULL) dl_advise_also(c, "release", release);
    /* data/runs has language models alone with inductor; tests/cli/advise.sh holds that */
    if (strcmp(name, "inductor") == 0 && !dl_known(s->workload->transformer_layers)) {
        c->unmeasured = "no measured run compiles a network that is not a transformer";
        c->text = dl_arena_printf(s->arena, "%s (no such network measured)", c->text);
    }
    return count;
}

const struct dl_advise_item dl_adv_compiler = {
    .name = "compiler",
    .summary = "elementwise operations fused by a compiler",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same operations, intermediate results are not rounded to memory",
    .source = "kernels-of-frameworks",
    .propose = propose,
};
