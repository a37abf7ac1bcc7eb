/* template.c - see the header. */
#include "predict/manual/template.h"

#include <string.h>

#include "model/core/text.h"

/* What a file of that format needs in practice; the other keys are in `schema`. */
static const struct kept {
    const char *schema, *keys;
} kept[] = {
    {"dlmodel-system",
     " name summary source device nodes devices_per_node host.cpu host.sockets host.cores "
     "host.memory_bytes host.memory_bandwidth_bytes_per_s host.copy_bandwidth_bytes_per_s "
     "links.intra.kind links.intra.bandwidth_bytes_per_s links.intra.latency_s links.inter.kind "
     "links.inter.bandwidth_bytes_per_s links.inter.latency_s links.inter.adapters_per_node "
     "links.inter.gpudirect fabric.topology fabric.oversubscription storage.kind "
     "storage.read_bytes_per_s storage.total_read_bytes_per_s storage.total_write_bytes_per_s "
     "node_mtbf_s price_per_node_hour price_currency price_date nccl_version "},
    {"dlmodel-site",
     " name summary system partition account gres device devices_per_node cores_per_node max_nodes "
     "time_limit_s "},
};

struct filling {
    struct dl_json_writer *w;
    const char *keys;
};

/* Whether the list has the path, or (an object) what is below it. */
static bool is_kept(const struct filling *f, const char *path, bool object) {
    const char *word = dl_arena_printf(f->w->arena, " %s%c", path, object ? '.' : ' ');
    return strstr(f->keys, word) != NULL;
}

static void fill(void *context, const char *path, const struct dl_field *field, int depth) {
    const struct filling *f = context;
    const bool object = field->type == DL_FIELD_OBJECT;
    if (!is_kept(f, path, object)) return;
    while (f->w->depth > depth + 1) dl_jw_end(f->w);
    if (object) {
        dl_jw_object(f->w, field->key);
        return;
    }
    char expected[400];
    dl_field_expected(field, expected, sizeof expected);
    dl_jw_string(f->w, field->key,
                 dl_arena_printf(f->w->arena, "%s: %s; %s",
                                 field->required ? "REQUIRED" : "or omit", expected, field->help));
}

const char *dl_template_text(const struct dl_schema *schema, struct dl_arena *arena) {
    const struct kept *k = NULL;
    struct dl_json_writer w;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(kept[i].schema, schema->name) == 0) k = &kept[i];
    if (k == NULL) return NULL;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", schema->name);
    dl_jw_integer(&w, "version", 1);
    struct filling f = {&w, k->keys};
    dl_schema_visit(schema, fill, &f);
    return dl_jw_text(&w);
}
